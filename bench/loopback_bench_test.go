package bench

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// A call to a server on loopback and back, HTTP/1.1 on a kept connection, to see a
// Transport beside what a call costs at the least. Guards stand on the client's side
// only.
func BenchmarkLoopback(b *testing.B) {
	loopback := func(b *testing.B, wrap func(http.RoundTripper) http.RoundTripper) loops {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
		b.Cleanup(srv.Close)
		base := &http.Transport{MaxIdleConnsPerHost: 64}
		b.Cleanup(base.CloseIdleConnections)
		return roundTrips(b, wrap(base), srv.URL)
	}
	run(b, "bare", func(b *testing.B) loops {
		return loopback(b, func(base http.RoundTripper) http.RoundTripper { return base })
	})
	run(b, "sluice", func(b *testing.B) loops {
		return loopback(b, func(base http.RoundTripper) http.RoundTripper { return newGuarded(base) })
	})
}
