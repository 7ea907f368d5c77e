package main

import (
	"net/http"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/felixge/httpsnoop"
	"github.com/hashicorp/go-retryablehttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
)

// A library is a column of one of the tables: a wrapper and how it was set up.
type library struct {
	name    string // of the column and the process
	module  string // whose version the page names; "" for the standard library
	setup   string
	breaker bool // it was given a breaker, so refusing nothing is a failure

	client func(http.RoundTripper) http.RoundTripper // or
	server func(http.Handler) http.Handler
}

const (
	long   = time.Minute          // of timeouts, which must not strike
	short  = 5 * time.Millisecond // of open breakers and between attempts, which are waited for
	span   = 10 * time.Second
	enough = 20
)

func clients() []library {
	return []library{
		{name: "bare client", setup: "the `http.Transport` with nothing around it", client: func(base http.RoundTripper) http.RoundTripper { return base }},
		{name: "sluice client", module: sluiceModule, breaker: true,
			setup: "`httpguard.NewTransport` with a breaker for each host and an attempt timeout",
			client: func(base http.RoundTripper) http.RoundTripper {
				return sluice.Must(httpguard.NewTransport(base, httpguard.WithBreakers(newGroup(), httpguard.ByHost), httpguard.WithAttemptTimeout(long)))
			}},
		{name: "failsafehttp client", module: failsafeModule, breaker: true,
			setup: "`failsafehttp.NewRoundTripper` with a circuit breaker, which handles errors and statuses from 500, and a timeout",
			client: func(base http.RoundTripper) http.RoundTripper {
				return failsafehttp.NewRoundTripper(base, newFailsafe(), timeout.New[*http.Response](long))
			}},
		{name: "failsafehttp client with retries", module: failsafeModule, breaker: true,
			setup: "the same inside the retry policy of `failsafehttp.NewRetryPolicyBuilder`, with its defaults",
			client: func(base http.RoundTripper) http.RoundTripper {
				return failsafehttp.NewRoundTripper(base, failsafehttp.NewRetryPolicyBuilder().Build(), newFailsafe(), timeout.New[*http.Response](long))
			}},
		{name: "retryablehttp client", module: "github.com/hashicorp/go-retryablehttp",
			setup: "`retryablehttp.NewClient` with its defaults but for waits of 1 to 2 ms and no log, as a `RoundTripper`",
			client: func(base http.RoundTripper) http.RoundTripper {
				client := retryablehttp.NewClient()
				client.HTTPClient = &http.Client{Transport: base}
				client.RetryWaitMin, client.RetryWaitMax = time.Millisecond, 2*time.Millisecond
				client.Logger = nil
				return &retryablehttp.RoundTripper{Client: client}
			}},
		{name: "otelhttp client", module: otelModule, setup: "`otelhttp.NewTransport` without a provider",
			client: func(base http.RoundTripper) http.RoundTripper { return otelhttp.NewTransport(base) }},
	}
}

func servers() []library {
	return []library{
		{name: "bare server", setup: "the handler with nothing around it", server: func(next http.Handler) http.Handler { return next }},
		{name: "sluice server", module: sluiceModule, breaker: true,
			setup: "`httpguard.Middleware` with a breaker for each route and a bound of requests in flight",
			server: func(next http.Handler) http.Handler {
				return sluice.Must(httpguard.Middleware(httpguard.WithBreakers(newGroup(), httpguard.ByPattern), httpguard.WithMaxInFlight(100)))(next)
			}},
		{name: "failsafehttp server", module: failsafeModule, breaker: true,
			setup: "`failsafehttp.NewHandler` with a circuit breaker, which handles errors and statuses from 500, and a timeout",
			server: func(next http.Handler) http.Handler {
				return failsafehttp.NewHandler(next, newFailsafe(), timeout.New[*http.Response](long))
			}},
		{name: "otelhttp server", module: otelModule, setup: "`otelhttp.NewHandler` without a provider",
			server: func(next http.Handler) http.Handler { return otelhttp.NewHandler(next, "served") }},
		{name: "httpsnoop server", module: "github.com/felixge/httpsnoop", setup: "a handler that calls `httpsnoop.CaptureMetrics`",
			server: func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { httpsnoop.CaptureMetrics(next, w, r) })
			}},
	}
}

const (
	sluiceModule   = "github.com/sluicego/sluice"
	failsafeModule = "github.com/failsafe-go/failsafe-go"
	otelModule     = "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
)

// Both breakers trip when half of at least 20 calls in 10 s failed.
func newGroup() *breaker.Group {
	return sluice.Must(breaker.NewGroup("examined",
		breaker.WithWindow(span, 10), breaker.WithMinRequests(enough), breaker.WithErrorRatio(0.5),
		breaker.WithOpenFor(short), breaker.WithBackoff(1, time.Second)))
}

func newFailsafe() failsafe.Policy[*http.Response] {
	return circuitbreaker.NewBuilder[*http.Response]().
		HandleIf(func(resp *http.Response, err error) bool { return err != nil || resp != nil && resp.StatusCode >= 500 }).
		WithFailureRateThreshold(0.5, enough, span).
		WithDelay(short).
		Build()
}
