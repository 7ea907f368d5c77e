package httpguard

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	pathpkg "path"
	"slices"
	"strings"
)

// exempt is which requests pass by all guards.
type exempt struct {
	paths map[string]methods // of plain patterns
	mux   *http.ServeMux     // of the others; nil if there are none
}

// methods are those that a plain pattern is for; none stands for all.
type methods []string

// newExempt joins what is wrong with the patterns.
func newExempt(patterns []string) (e exempt, err error) {
	var errs []error
	for i, p := range patterns {
		if slices.Contains(patterns[:i], p) {
			continue
		}
		method, path, plain := split(p)
		if !plain {
			if e.mux == nil {
				e.mux = http.NewServeMux()
			}
			errs = append(errs, handle(e.mux, p))
			continue
		}
		errs = append(errs, handle(http.NewServeMux(), p))
		if e.paths == nil {
			e.paths = map[string]methods{}
		}
		e.paths[path] = e.paths[path].add(method)
	}
	return e, errors.Join(errs...)
}

// split takes a pattern apart, and reports whether it stands for one path.
func split(pattern string) (method, path string, plain bool) {
	method, path, found := strings.Cut(pattern, " ")
	if !found {
		method, path = "", pattern
	}
	path = strings.TrimLeft(path, " \t")
	clean := strings.HasPrefix(path, "/") && pathpkg.Clean(path) == path // so there is no slash at its end
	return method, path, clean && path != "/" && !strings.ContainsAny(path, "{%")
}

// add returns m with one more; the empty method stands for all.
func (m methods) add(method string) methods {
	switch {
	case method == "":
		return methods{}
	case m != nil && len(m) == 0:
		return m // all already
	case method == http.MethodGet:
		return append(m, method, http.MethodHead)
	}
	return append(m, method)
}

// handle adds a pattern to mux, which panics at a bad one.
func handle(mux *http.ServeMux, pattern string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("httpguard: WithExempt: pattern %q: %v", pattern, p)
		}
	}()
	mux.Handle(pattern, pass{})
	return nil
}

// pass marks what a mux found because of a pattern, and not because it redirects or
// answers by itself. It is never called.
type pass struct{}

func (pass) ServeHTTP(http.ResponseWriter, *http.Request) {}

// has reports whether r is exempt.
func (e *exempt) has(r *http.Request) bool {
	path := r.URL.Path
	if strings.HasPrefix(path, "/grpc.") && isProbing(r) {
		return true
	}
	if e.paths != nil {
		if of, ok := e.paths[path]; ok && of.include(r.Method) && !hidesSlash(r.URL) {
			return true
		}
	}
	if e.mux == nil {
		return false
	}
	h, _ := e.mux.Handler(r)
	_, ok := h.(pass)
	return ok
}

func (m methods) include(method string) bool { return len(m) == 0 || slices.Contains(m, method) }

// hidesSlash reports whether a slash of u's path was written as %2F. To a mux that is
// not one that parts two segments, so the request is another one than it looks.
func hidesSlash(u *url.URL) bool {
	return u.RawPath != "" && strings.Count(u.EscapedPath(), "/") != strings.Count(u.Path, "/")
}

// isProbing reports whether r is a call of gRPC by which a server is asked whether it
// is alive and what it can do. Nothing else may go by all guards: behind a Gate for
// all paths, anybody's request for such a path would reach the handler.
func isProbing(r *http.Request) bool {
	if r.ProtoMajor < 2 || r.Method != http.MethodPost || r.URL.RawPath != "" {
		return false
	}
	switch r.URL.Path {
	case "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/List", "/grpc.health.v1.Health/Watch",
		"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
		"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo":
		return true
	}
	return false
}
