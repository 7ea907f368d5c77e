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
//	time limits       their end counts for the breaker
//	base
//
// A ctx made by sluice.Bypass passes by all of them: for health checks.
//
// # What counts as what
//
// The verdict falls when the base returns, at the headers of the response. With
// WithFinishAt(Body) that of a call which goes well waits for the end of the body:
// one that breaks off is then an error like any other, and one that is closed before
// its end is a success. A half-open probe never waits, nor does a stream.
//
//	how the call ended                                   outcome
//	101, from 200 to 499 but 429; 501, 505, 511          success
//	429                                                  throttled
//	500, 502, 503, 504 and every other from 500; a       failure
//	 status below 200 but 101, which ends no call
//	one of the time limits, or one of ours further out   failure
//	the caller's own deadline                            failure, see breaker.WithMinBudget
//	the caller cancelled, whatever the error says        ignored
//	a guard further in refused                           ignored
//	the request could not be sent as it is: no host,     ignored
//	 no such scheme, invalid method or header, a body
//	 that failed or was not as long as promised
//	a time limit or deadline, while the request's own    ignored
//	 body, without a GetBody, was still to come
//	every other error                                    failure
//
// Throttled calls do not count against the upstream. When a half-open probe is
// throttled, the next one waits for the Retry-After of the response, in seconds or
// as a date. WithClassifier changes all of this but refusals. A breaker's own
// classifier is asked about responses too, as a *StatusError that is marked with
// the outcome above.
//
// Ignored calls leave no trace and give a probe's place back. But a caller who
// gives up after more than the slow limit is evidence for a slow-call rule. A call is
// not slow for the time that its own body took to come: the slow clients of a proxy
// are not its upstream's doing.
//
// # In front of handlers
//
// Middleware, and the Gate that it is made of, do the same for a server: a request
// passes, from outside to inside, exemptions, the drain, the bound of requests in
// flight, the breaker of its route, and a deadline. What a handler's status means is
// as above, except that a 429 is ignored: it is about one client and not about the
// route. A panic is a failure and goes on; where the client has left, what is no
// success is ignored. Fail and Ignore let the handler say otherwise. A refusal is a 503 with a
// Retry-After and nothing of the inside; Refuse writes the same for refusals that a
// handler meets further in.
//
// The verdict falls when the handler returns. It falls earlier when the handler takes
// over the connection, and at the first Flush of a stream of events or of a half-open
// probe. Where a response was flushed, a success took as long as it took until then. A
// large download that is not flushed takes as long as its client makes it take, and so
// does a handler that reads an upload: a slow-call rule will see it, and a slot is taken
// for so long. What bounds that are the ReadTimeout and WriteTimeout of http.Server, or
// the deadlines of http.ResponseController.
//
// Breakers are keyed by route: ByPattern where a mux has been passed already, ByRoute
// around one. A request without a route is never refused by a breaker.
//
// # Contexts and bodies
//
// A time limit needs a context of its own for each call. It is not cancelled when
// RoundTrip returns, but when the body was read to its end, when reading failed, or
// when it was closed, so a response must be closed, as always. One that is dropped
// instead keeps its connection; with WithFinishAt(Body) it is found and counted, and
// what it held is let go. A response with status 101 can still be written to and
// half-closed.
//
// # Time limits
//
// There are three, for three questions:
//
//	WithAttemptTimeout    is anybody there? until the headers
//	WithBodyIdleTimeout   is it still coming? each Read of the body
//	WithTotalTimeout      can I still use it? until the end of the body
//
// The first two let a download or a stream of events go on for as long as it lives,
// the third is for calls with an answer of a known size. Prefer any of them, or a
// deadline on the request's context, to http.Client.Timeout: around a RoundTripper
// that is not net/http's own that one costs a goroutine for each call in flight.
//
// # Logs and names
//
// What is logged of a URL is where it leads: never user, password or query, also
// where they are part of an error. Metrics have no label that a request could fill
// in, but for the keys of its breakers, of which there is a bounded number.
//
// # Choosing numbers
//
// Attempt timeout: what the caller can still use, and at most 2–3 times the
// upstream's P99; it is also how long a hanging upstream can hold each caller
// before the breaker has seen enough. Total timeout: the attempt timeout and the
// time that the longest body may take. Idle timeout: a few times the longest pause
// of a healthy body. Slow limit of the breaker: 1.5–2 times the P99, and below the
// attempt timeout, or nothing is ever merely slow. Number of keys: ByHost for a few
// upstreams; a KeyFunc where a host serves several that fail apart, or where hosts
// come from outside.
//
// # Concurrency
//
// Everything here is safe for concurrent use. The limits of a Transport are timers of
// the runtime. It starts a goroutine only to empty a response of HTTP/1 that a fallback
// has replaced, which takes 50 ms at most if its body ends with its context.
package httpguard
