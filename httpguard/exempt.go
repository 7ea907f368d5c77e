package httpguard

import (
	"errors"
	"fmt"
	"net/http"
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
	return method, path, strings.HasPrefix(path, "/") && !strings.HasSuffix(path, "/") && !strings.ContainsAny(path, "{%")
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
	if strings.HasPrefix(path, "/grpc.") && isProbing(path) {
		return true
	}
	if e.paths != nil {
		if of, ok := e.paths[path]; ok && of.include(r.Method) {
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

// isProbing reports whether path is of the services with which gRPC is asked whether
// it is alive and what it can do.
func isProbing(path string) bool {
	return strings.HasPrefix(path, "/grpc.health.v1.Health/") ||
		strings.HasPrefix(path, "/grpc.reflection.v1.ServerReflection/") ||
		strings.HasPrefix(path, "/grpc.reflection.v1alpha.ServerReflection/")
}
