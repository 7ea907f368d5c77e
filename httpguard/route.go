package httpguard

import (
	"net/http"
	"reflect"
)

// ByPattern keys requests by the pattern that led them here, r.Pattern, such as
// "GET /users/{id}". A mux sets it, so this is for a Gate inside: around the handler
// of a route, or between two muxes, where it is the pattern of the outer one. Two
// muxes that have the same pattern share its key; give each Gate its own group if
// they should not.
//
// Outside of the mux no request has a pattern yet: use ByRoute there. A request
// without a pattern is never refused by a breaker, is counted as unmatched, and is
// warned about once.
var ByPattern Key = byPattern{}

type byPattern struct{}

// Key returns the pattern.
func (byPattern) Key(r *http.Request) string { return r.Pattern }

// ByRoute keys requests by the pattern with which mux will find their handler, for a
// Gate that stands around the mux. If that handler is a mux itself, it is the pattern
// there, and so on.
//
// What mux answers by itself (not found, method not allowed, a redirect to a cleaner
// path) has no route. Such a request is never refused by a breaker, is counted as
// unmatched, and is warned about once.
//
// The request is matched twice, here and in the mux. That costs about as much again
// as the mux does, and an allocation for a pattern with wildcards.
func ByRoute(mux *http.ServeMux) Key { return byRoute{mux} }

type byRoute struct{ mux *http.ServeMux }

// maxNesting bounds how deep muxes may lie in one another. One that holds itself has
// no answer.
const maxNesting = 16

// Key returns the pattern of the innermost mux.
func (k byRoute) Key(r *http.Request) string {
	mux := k.mux
	for range maxNesting {
		handler, pattern := mux.Handler(r)
		inner, nested := handler.(*http.ServeMux)
		switch {
		case isRedirect(handler):
			return ""
		case !nested:
			return pattern
		}
		mux = inner
	}
	return ""
}

// isRedirect reports whether a mux made handler to redirect a request. It must not
// have a key: nothing of the route runs, so its end proves nothing, and for a CONNECT
// the mux reports the path of the client as the pattern.
func isRedirect(handler http.Handler) bool { return reflect.TypeOf(handler) == redirect }

var redirect = reflect.TypeOf(http.RedirectHandler("/", http.StatusTemporaryRedirect))
