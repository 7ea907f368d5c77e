package bench

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/felixge/httpsnoop"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/httpguard"
)

// sink is a ResponseWriter that can do what that of a server of HTTP/1.1 can, and
// throws away what it gets.
type sink struct{ header http.Header }

func (s *sink) Header() http.Header                          { return s.header }
func (s *sink) WriteHeader(int)                              {}
func (s *sink) Write(p []byte) (int, error)                  { return len(p), nil }
func (s *sink) WriteString(text string) (int, error)         { return len(text), nil }
func (s *sink) ReadFrom(src io.Reader) (int64, error)        { return io.Copy(io.Discard, src) }
func (s *sink) Flush()                                       {}
func (s *sink) FlushError() error                            { return nil }
func (s *sink) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, http.ErrNotSupported }

// served is the handler that is wrapped.
func served(w http.ResponseWriter, _ *http.Request) {
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, "body")
}

// requests serves the same request again and again.
func requests(b *testing.B, h http.Handler) loops {
	request := func() *http.Request {
		r := sluice.Must(http.NewRequestWithContext(requestContext(b), http.MethodGet, "/items/7", nil))
		r.Pattern = "GET /items/{id}" // as a mux around the handler sets it
		return r
	}
	return loops{
		serial: func(b *testing.B) {
			w, r := &sink{http.Header{}}, request()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		},
		parallel: func(_ *testing.B, pb *testing.PB) {
			w, r := &sink{http.Header{}}, request()
			for pb.Next() {
				h.ServeHTTP(w, r)
			}
		},
	}
}

// A request through a middleware that has to know the status. sluice has a breaker
// for each route, with three rules; httpsnoop decides nothing, but measures status,
// size and duration.
func BenchmarkMiddleware(b *testing.B) {
	run(b, "bare", func(b *testing.B) loops { return requests(b, http.HandlerFunc(served)) })
	run(b, "sluice", func(b *testing.B) loops {
		group := sluice.Must(breaker.NewGroup("bench", threeRules(ratio)...))
		mw := sluice.Must(httpguard.Middleware(httpguard.WithBreakers(group, httpguard.ByPattern)))
		return requests(b, mw(http.HandlerFunc(served)))
	})
	run(b, "httpsnoop", func(b *testing.B) loops {
		return requests(b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			httpsnoop.CaptureMetrics(http.HandlerFunc(served), w, r)
		}))
	})
}
