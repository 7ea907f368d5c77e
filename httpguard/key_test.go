package httpguard

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
)

func TestK1_KeyIsTheCanonicalOrigin(t *testing.T) {
	for raw, want := range map[string]string{
		"http://example.com":                       "http://example.com:80",
		"https://example.com":                      "https://example.com:443",
		"HTTP://Example.COM/Path?Query#f":          "http://example.com:80",
		"http://example.com:80/":                   "http://example.com:80",
		"http://example.com:/":                     "http://example.com:80",
		"http://example.com:8080/a/b":              "http://example.com:8080",
		"https://example.com:80":                   "https://example.com:80",
		"https://user:secret@example.com/private":  "https://example.com:443",
		"http://127.0.0.1/":                        "http://127.0.0.1:80",
		"http://[2001:DB8::1]/":                    "http://[2001:db8::1]:80",
		"http://[2001:db8::1]:8080/":               "http://[2001:db8::1]:8080",
		"ftp://example.com/":                       "ftp://example.com",
		"ftp://[::1]/":                             "ftp://[::1]",
		"unix:///run/app.sock":                     "",
		"http:///path":                             "",
		"/path":                                    "",
		"mailto:somebody@example.com":              "",
		"http://" + strings.Repeat("a", 63) + ".x": "http://" + strings.Repeat("a", 63) + ".x:80",
	} {
		u, err := url.Parse(raw)
		require.NoError(t, err, raw)
		assert.Equal(t, want, ByHost.Key(&http.Request{URL: u, Host: "other.example"}), raw)
		h := newHostKeys()
		for range 2 {
			assert.Equal(t, want, h.of(u), raw)
		}
	}
	assert.Empty(t, ByHost.Key(&http.Request{}))
	byHand := &url.URL{Scheme: "HTTPS", Host: "A.test"} // url.Parse would have lowered the scheme
	assert.Equal(t, "https://a.test:443", ByHost.Key(&http.Request{URL: byHand}))
}

// The same origin in other letters is the same breaker, and the path, the Host header
// and the user make no difference.
func TestK1_OneBreakerForAnOrigin(t *testing.T) {
	g := newGroup(t)
	tr := newTransport(t, answering(200, ""), WithBreakers(g, ByHost))
	for _, u := range []string{"http://a.test", "http://A.test:80/x?y", "http://me:pw@a.TEST/z", "HTTP://a.test"} {
		req := getFrom(t, t.Context(), u)
		req.Host = "whatever.the.client.sent"
		_, err := tr.RoundTrip(req)
		require.NoError(t, err)
	}
	assert.Equal(t, 1, g.Len())
	assert.EqualValues(t, 4, g.Get("http://a.test:80").Snapshot().Totals.Success)
	_, err := tr.RoundTrip(getFrom(t, t.Context(), "https://a.test"))
	require.NoError(t, err)
	assert.Equal(t, 2, g.Len(), "another scheme is another upstream")
}

func TestKeyFunc_KeysAndLeavesOut(t *testing.T) {
	g := newGroup(t, breaker.WithConsecutiveFailures(1))
	tr := newTransport(t, answering(500, ""), WithBreakers(g, KeyFunc(func(r *http.Request) string { return r.Header.Get("X-Operation") })))
	req := get(t.Context())
	req.Header.Set("X-Operation", "charge")
	_, err := tr.RoundTrip(req)
	require.NoError(t, err)
	_, err = tr.RoundTrip(req)
	require.ErrorIs(t, err, breaker.ErrOpen)

	for range 3 {
		_, err = tr.RoundTrip(get(t.Context()))
		require.NoError(t, err, "no key, no breaker")
	}
	assert.EqualValues(t, 3, tr.Snapshot().Unkeyed)
	assert.Equal(t, 1, g.Len())
}

// Every kind of name that strangers can send is bounded, or it is a way to fill the
// memory: https://github.com/golang/vulndb/issues/2113
func TestK3_AFloodOfHostsCostsBoundedMemory(t *testing.T) {
	hosts := 100_000
	if testing.Short() {
		hosts = 10_000
	}
	g := newGroup(t, breaker.WithMaxKeys(64), breaker.WithConsecutiveFailures(1), breaker.WithOpenFor(time.Hour))
	fail := baseFunc(func(req *http.Request) (*http.Response, error) {
		return response(req, 500, ""), nil
	})
	tr := newTransport(t, fail, WithBreakers(g, ByHost))
	sick := getFrom(t, t.Context(), "http://sick.test/")
	_, err := tr.RoundTrip(sick)
	require.NoError(t, err)
	for i := range hosts {
		req := &http.Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: fmt.Sprintf("h%d.test", i)}, Header: http.Header{}}
		_, _ = tr.RoundTrip(req)
	}
	assert.LessOrEqual(t, g.Len(), 64)
	known := 0
	for i := range tr.hosts.slots {
		if tr.hosts.slots[i].Load() != nil {
			known++
		}
	}
	assert.LessOrEqual(t, known, hostSlots)
	assert.Positive(t, tr.Snapshot().ReplacedHosts, "and it is counted")
	_, err = tr.RoundTrip(sick)
	require.ErrorIs(t, err, breaker.ErrOpen, "an open breaker is never forgotten for that")
}

// The table only ever answers what building the key would: two hosts are never taken
// for each other, whoever stores and replaces meanwhile.
func TestHostKeys_NeverMixUpHosts(t *testing.T) {
	h := newHostKeys()
	hosts := make([]*url.URL, 3*hostSlots)
	for i := range hosts {
		hosts[i] = &url.URL{Scheme: []string{"http", "https"}[i%2], Host: fmt.Sprintf("Host-%d", i/2)}
	}
	var all sync.WaitGroup
	for seed := range uint64(4) {
		all.Go(func() {
			pick := rand.New(rand.NewPCG(seed, 1))
			for range 20_000 {
				u := hosts[pick.IntN(len(hosts))]
				if got, want := h.of(u), origin(u); got != want {
					t.Errorf("%v: got %q, want %q", u, got, want)
					return
				}
			}
		})
	}
	all.Wait()
}
