// Package httpguard puts the guards of this module around net/http. Transport is
// an http.RoundTripper for clients and proxies; ProxyErrorHandler turns what it
// refuses into the answers of a gateway.
//
//	breakers, err := breaker.NewGroup("upstream", breaker.WithSlowCallRatio(500*time.Millisecond, 0.5))
//	…
//	transport, err := httpguard.NewTransport(nil,
//		httpguard.WithBreakers(breakers, httpguard.ByHost),
//		httpguard.WithAttemptTimeout(time.Second),
//	)
//	…
//	client := &http.Client{Transport: transport}
//
// # Order
//
// Whatever the order of the options, a request passes, from outside to inside:
//
//	fallback          sees every kind of end, once
//	breaker           innermost of all that may refuse, so that no probe is wasted
//	attempt timeout   its end counts for the breaker
//	base
//
// A ctx made by sluice.Bypass passes by all of them: for health checks.
//
// # What counts as what
//
// The verdict falls when the base returns, at the headers of the response. What
// happens to the body after that is not counted.
//
//	how the call ended                                   outcome
//	any status below 500 but 429; 501, 505, 511          success
//	429                                                  throttled
//	500, 502, 503, 504 and every other from 500          failure
//	the attempt timeout, or a limit of ours further out  failure
//	the caller's own deadline                            failure, see breaker.WithMinBudget
//	the caller cancelled, whatever the error says        ignored
//	a guard further in refused                           ignored
//	the request could not be sent as it is: no host,     ignored
//	 no such scheme, invalid method or header, a body
//	 that failed or was not as long as promised
//	every other error                                    failure
//
// Throttled calls do not count against the upstream. When a half-open probe is
// throttled, the next one waits for the Retry-After of the response, in seconds or
// as a date. WithClassifier changes all of this but refusals. A breaker's own
// classifier is asked about responses too, as a *StatusError that is marked with
// the outcome above.
//
// Ignored calls leave no trace and give a probe's place back. But a caller who
// gives up after more than the slow limit is evidence for a slow-call rule.
//
// # Contexts and bodies
//
// An attempt timeout needs a context of its own for each call. It is not cancelled
// when RoundTrip returns, but when the body was read to its end, when reading
// failed, or when it was closed, so a response must be closed, as always. The
// timeout itself ends at the headers: a download may take as long as it likes.
// A response with status 101 can still be written to and half-closed.
//
// # Time limits
//
// Prefer WithAttemptTimeout, or a deadline on the request's context, to
// http.Client.Timeout. That one covers the body as well, and around any
// RoundTripper that is not net/http's own it costs a goroutine and a timer for
// each call in flight.
//
// # Choosing numbers
//
// Attempt timeout: what the caller can still use, and at most 2–3 times the
// upstream's P99; it is also how long a hanging upstream can hold each caller
// before the breaker has seen enough. Slow limit of the breaker: 1.5–2 times the
// P99, and below the attempt timeout, or nothing is ever merely slow. Number of
// keys: ByHost for a few upstreams; a KeyFunc where a host serves several that fail
// apart, or where hosts come from outside.
//
// # Concurrency
//
// Everything here is safe for concurrent use. A Transport starts no goroutine; its
// attempt timeout is a timer of the runtime.
package httpguard
