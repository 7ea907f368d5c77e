// Package guardtest examines whether a wrapper of an http.RoundTripper or of an
// http.Handler keeps the contracts of net/http, over HTTP/1.1 and HTTP/2, with
// real servers on loopback. It is what this module's own are tested with, and
// works for any other one and for a whole stack of them:
//
//	func TestClient(t *testing.T) {
//		guardtest.TestTransport(t, func(base http.RoundTripper) http.RoundTripper {
//			return otelhttp.NewTransport(newRetries(base))
//		})
//	}
//
//	func TestServer(t *testing.T) {
//		guardtest.TestMiddleware(t, func(next http.Handler) http.Handler {
//			return logging(limits(next))
//		})
//	}
//
// Each rule is a subtest, whose failure says what the rule is and what was seen.
// Wrapping nothing passes all of them: no rule asks for more than to leave alone
// what works without the wrapper, and for refusals that are well formed.
//
// # What a wrapper must do to be examined
//
// It is made anew for each check, sometimes more than once, and must not share a
// state with those made before, or one check's failures are refused in another.
// It must let a first few calls pass, also such as fail, and must not give up a
// call in less than some seconds. Waits between attempts of a retry, and the time
// that a breaker stays open, should be some milliseconds, because they are waited
// for.
//
// The rules for what opens a circuit breaker, and what must not, need one that
// opens within 100 calls that fail; for a wrapper that refuses nothing they are
// skipped. In the checks of handlers every request has a Pattern.
//
// # Without testing
//
// TransportChecks and MiddlewareChecks return the single checks, to be run and
// reported in another way than by package testing.
package guardtest
