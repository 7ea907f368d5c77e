package httpguard

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestS18_ExemptPatterns(t *testing.T) {
	e, err := newExempt([]string{"GET /healthz", "POST /healthz", "/metrics", "GET /metrics", "/debug/", "GET /users/{id}/health", "admin.test/up", "/healthz%2F", "GET /healthz", "GET /up/now", "/twice//x"})
	require.NoError(t, err)
	for _, c := range []struct {
		method, target string
		want           bool
	}{
		{"GET", "/healthz", true},
		{"HEAD", "/healthz", true},
		{"POST", "/healthz", true},
		{"PUT", "/healthz", false},
		{"GET", "/healthz/", false},
		{"GET", "/HEALTHZ", false},
		{"GET", "/healthz?deep=1", true},
		{"GET", "/metrics", true},
		{"DELETE", "/metrics", true},
		{"GET", "/debug/pprof/heap", true},
		{"GET", "/debug/", true},
		{"GET", "/debug", false}, // the mux would redirect
		{"GET", "//debug/x", false},
		{"GET", "/users/7/health", true},
		{"HEAD", "/users/7/health", true},
		{"POST", "/users/7/health", false},
		{"GET", "/users/7", false},
		{"GET", "http://admin.test/up", true},
		{"GET", "http://other.test/up", false},
		{"GET", "/%68ealthz", true},
		{"GET", "/up/now", true},
		{"GET", "/up%2Fnow", false}, // one segment, which another route may take
		{"GET", "/up%2fnow", false},
		{"GET", "/%75p/now", true},
		{"GET", "/up//now", false},
		{"GET", "/twice//x", false}, // as the pattern, but the mux would redirect
	} {
		assert.Equal(t, c.want, e.has(httptest.NewRequest(c.method, c.target, nil)), "%s %s", c.method, c.target)
	}
}

// Anybody can ask for a path. What passes by all guards because of it must be what it
// is for: behind a Gate around all that a server has, all else would be a way round.
func TestS18_OnlyProbesOfGRPCAreExemptByThemselves(t *testing.T) {
	var e exempt
	for _, c := range []struct {
		method, target string
		major          int
		want           bool
	}{
		{"POST", "/grpc.health.v1.Health/Check", 2, true},
		{"POST", "/grpc.health.v1.Health/List", 2, true},
		{"POST", "/grpc.health.v1.Health/Watch", 2, true},
		{"POST", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", 2, true},
		{"POST", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", 2, true},
		{"POST", "/grpc.health.v1.Healthy/Check", 2, false},
		{"POST", "/grpc.other/Method", 2, false},
		{"POST", "/grpc.health.v1.Health/Check", 1, false},
		{"GET", "/grpc.health.v1.Health/Check", 2, false},
		{"POST", "/grpc.health.v1.Health/", 2, false},
		{"POST", "/grpc.health.v1.Health/orders", 2, false},
		{"POST", "/grpc.health.v1.Health/../orders", 2, false},
		{"POST", "/grpc.health.v1.Health/..%2Forders", 2, false},
		{"POST", "/grpc.health.v1.Health%2FCheck", 2, false},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.ProtoMajor = c.major
		assert.Equal(t, c.want, e.has(r), "HTTP/%d %s %s", c.major, c.method, c.target)
	}
}

// A server that is busy and answers no health check is killed for being busy:
// https://github.com/dragonflyoss/dragonfly/issues/5015, https://github.com/grafana/mimir/issues/5650
func TestDragonfly5015_HealthChecksPassAFullHouse(t *testing.T) {
	g := newGate(t, WithMaxInFlight(1), WithBreaker(openBreaker(t, time.Minute)), WithExempt("/healthz"))
	require.True(t, g.slots.take())
	overBoth(t, g.Wrap(writing(200)).ServeHTTP, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		before := g.Snapshot().Exempt
		grpc, exempt := 503, before+1
		if srv.EnableHTTP2 {
			grpc, exempt = 200, before+2
		}
		for path, want := range map[string]int{"/": 503, "/healthz": 200, "/grpc.health.v1.Health/Check": grpc} {
			req := getFrom(t, t.Context(), srv.URL+path)
			req.Method = http.MethodPost
			resp, err := base.RoundTrip(req)
			require.NoError(t, err)
			readAll(t, resp)
			assert.Equal(t, want, resp.StatusCode, path)
		}
		assert.Equal(t, exempt, g.Snapshot().Exempt)
	})
}

// Plain patterns are looked up in a map. That must say what a mux would.
func FuzzExempt_IsWhatAMuxWouldSay(f *testing.F) {
	patterns := []string{"GET /a", "/b", "POST /b/c", "/d/", "GET /e/{x}", "host.test/a", "/f%41", "DELETE /a", "/g//h"}
	f.Add("GET", "host.test", "/a")
	f.Add("HEAD", "other.test", "/d/x")
	f.Add("PUT", "h", "/e/%2F")
	f.Add("GET", "h", "/fA")
	f.Add("POST", "h", "/b%2Fc")
	f.Add("POST", "h", "/%62/c")
	f.Add("GET", "h", "/g//h")
	e, err := newExempt(patterns)
	require.NoError(f, err)
	mux := http.NewServeMux()
	for _, p := range patterns {
		require.NoError(f, handle(mux, p))
	}
	f.Fuzz(func(t *testing.T, method, host, path string) {
		r, err := http.NewRequest(method, "http://x"+path, nil)
		if err != nil || !strings.HasPrefix(path, "/") || strings.HasPrefix(r.URL.Path, "/grpc.") {
			return // no request of HTTP, or exempt anyhow
		}
		r.Host, r.URL.Host = host, ""
		found, _ := mux.Handler(r)
		_, want := found.(pass)
		if got := e.has(r); got != want {
			t.Fatalf("%s %s %s: exempt is %v, a mux says %v", method, host, path, got, want)
		}
	})
}
