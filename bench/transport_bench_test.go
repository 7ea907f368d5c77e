package bench

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/hashicorp/go-retryablehttp"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
)

// memory is a RoundTripper that answers at once. Like a real one it makes a response
// for each call, because some wrappers write to it; that is in all figures.
type memory struct {
	status string
	header http.Header
	body   emptyBody
}

func (m *memory) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		Status: m.status, StatusCode: http.StatusOK,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: m.header, Body: &m.body, ContentLength: -1, Request: req,
	}, nil
}

// emptyBody is a body that nobody can know to be empty.
type emptyBody struct{}

func (*emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (*emptyBody) Close() error             { return nil }

func newMemory() http.RoundTripper {
	return &memory{status: "200 OK", header: http.Header{"Content-Type": {"text/plain"}}}
}

// newGuarded is ours with a breaker for each host, which has three rules.
func newGuarded(base http.RoundTripper, opts ...httpguard.Option) http.RoundTripper {
	group := sluice.Must(breaker.NewGroup("bench", threeRules(ratio)...))
	opts = append([]httpguard.Option{httpguard.WithBreakers(group, httpguard.ByHost)}, opts...)
	return sluice.Must(httpguard.NewTransport(base, opts...))
}

// newFailsafeHTTP has one breaker for all hosts, which does not look at how long calls
// take.
func newFailsafeHTTP(base http.RoundTripper) http.RoundTripper {
	return failsafehttp.NewRoundTripper(base, circuitbreaker.NewBuilder[*http.Response]().
		HandleIf(func(resp *http.Response, err error) bool { return err != nil || resp != nil && resp.StatusCode >= 500 }).
		WithFailureRateThreshold(ratio, minRequests, span).
		WithDelay(time.Hour).
		Build())
}

// newRetryable has retries and no breaker; none of the calls is repeated.
func newRetryable(base http.RoundTripper) http.RoundTripper {
	client := retryablehttp.NewClient()
	client.HTTPClient = &http.Client{Transport: base}
	client.Logger = nil
	return &retryablehttp.RoundTripper{Client: client}
}

// roundTrips makes calls whose body is closed and not read.
func roundTrips(b *testing.B, rt http.RoundTripper, url string) loops {
	request := func() *http.Request {
		return sluice.Must(http.NewRequestWithContext(requestContext(b), http.MethodGet, url, nil))
	}
	return loops{
		serial: func(b *testing.B) {
			req := request()
			for b.Loop() {
				resp, err := rt.RoundTrip(req)
				if err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			req := request()
			for pb.Next() {
				resp, err := rt.RoundTrip(req)
				if err != nil {
					b.Error(err)
					return
				}
				resp.Body.Close()
			}
		},
	}
}

// A call through a RoundTripper over one that answers at once. sluice is finished at
// the headers, sluice-body when the body is closed, and sluice-timeout gives each call
// a context and a timer of its own.
func BenchmarkTransport(b *testing.B) {
	const url = "http://upstream.test/path"
	run(b, "bare", func(b *testing.B) loops { return roundTrips(b, newMemory(), url) })
	run(b, "sluice", func(b *testing.B) loops { return roundTrips(b, newGuarded(newMemory()), url) })
	run(b, "sluice-body", func(b *testing.B) loops {
		return roundTrips(b, newGuarded(newMemory(), httpguard.WithFinishAt(httpguard.Body)), url)
	})
	run(b, "sluice-timeout", func(b *testing.B) loops {
		return roundTrips(b, newGuarded(newMemory(), httpguard.WithAttemptTimeout(time.Minute)), url)
	})
	run(b, "failsafehttp", func(b *testing.B) loops { return roundTrips(b, newFailsafeHTTP(newMemory()), url) })
	run(b, "retryablehttp", func(b *testing.B) loops { return roundTrips(b, newRetryable(newMemory()), url) })
}
