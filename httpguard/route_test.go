package httpguard

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
)

// keysOf are the routes that have a breaker.
func keysOf(g *breaker.Group) []string {
	return slices.Sorted(maps.Keys(maps.Collect(g.All())))
}

// Inside of a mux a request has a pattern.
func TestK2_ByPatternInsideTheMux(t *testing.T) {
	group := newGroup(t)
	g := newGate(t, WithBreakers(group, ByPattern))
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", g.Wrap(writing(200)))
	mux.Handle("/orders/", g.Wrap(writing(200)))
	for _, path := range []string{"/users/1", "/users/2", "/orders/1", "/orders/1/items", "/nowhere"} {
		serve(mux, httptest.NewRequest("GET", path, nil))
	}
	assert.Equal(t, []string{"/orders/", "GET /users/{id}"}, keysOf(group))
	assert.Zero(t, g.Snapshot().Unmatched)

	require.NoError(t, group.Get("GET /users/{id}").Trip(0))
	assert.Equal(t, 503, serve(mux, httptest.NewRequest("GET", "/users/1", nil)).Code)
	assert.Equal(t, 200, serve(mux, httptest.NewRequest("GET", "/orders/1", nil)).Code, "routes fail apart")
}

// Outside of it there is none. No request may be refused for that, and none may go
// unsaid, since a breaker that never sees a request looks like one that is well.
func TestK2_ByPatternOutsideRefusesNothingAndWarnsOnce(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", writing(500))
	var lines strings.Builder
	group := newGroup(t, breaker.WithConsecutiveFailures(1))
	g := newGate(t, WithName("front"), WithBreakers(group, ByPattern), WithLogger(slog.New(slog.NewTextHandler(&lines, nil))))
	for range 100 {
		assert.Equal(t, 500, serve(g.Wrap(mux), httptest.NewRequest("GET", "/users/1", nil)).Code)
	}
	assert.Zero(t, group.Len())
	assert.EqualValues(t, 100, g.Snapshot().Unmatched)
	assert.Equal(t, 1, strings.Count(lines.String(), "\n"))
	assert.Contains(t, lines.String(), `level=WARN msg="request without a route passes without a breaker; this is said once" resource=front method=GET`)
	assert.Contains(t, lines.String(), "ByRoute")

	var unmatched float64
	for s := range g.Collect {
		if s.Desc.Name == "server_unguarded" && s.Labels[1] == "_unmatched" {
			unmatched = s.Value
		}
	}
	assert.EqualValues(t, 100, unmatched)
}

// Outside, the mux can be asked.
func TestK2_ByRouteOutsideTheMux(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", writing(500))
	mux.Handle("/tree/", writing(200))
	var lines strings.Builder
	group := newGroup(t, breaker.WithConsecutiveFailures(3))
	g := newGate(t, WithBreakers(group, ByRoute(mux)), WithLogger(slog.New(slog.NewTextHandler(&lines, nil))))
	h := g.Wrap(mux)
	for i := range 3 {
		assert.Equal(t, 500, serve(h, httptest.NewRequest("GET", fmt.Sprint("/users/", i), nil)).Code)
	}
	assert.Equal(t, 503, serve(h, httptest.NewRequest("GET", "/users/4", nil)).Code)
	assert.Empty(t, lines.String())
	for range 10 {
		assert.Equal(t, 404, serve(h, httptest.NewRequest("GET", "/nowhere", nil)).Code)
		assert.Equal(t, 405, serve(h, httptest.NewRequest("POST", "/users/4", nil)).Code)
	}
	assert.EqualValues(t, 20, g.Snapshot().Unmatched)
	assert.Equal(t, 1, strings.Count(lines.String(), "\n"))
	assert.Contains(t, lines.String(), "the mux has no route for it")
	assert.Equal(t, []string{"GET /users/{id}"}, keysOf(group))
}

// A redirect to a cleaner path is the mux's own answer: it must not close the breaker of
// a route that it never reached. For a CONNECT the mux even reports the path of the
// client as the pattern, and that would be a key for each path.
func TestK2_RedirectsOfTheMuxHaveNoKey(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/tree/{leaf}/", writing(200))
	key := ByRoute(mux)
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/tree/1/", "/tree/{leaf}/"},
		{"GET", "/tree/1", ""},
		{"GET", "/tree//1/", ""},
		{"CONNECT", "/tree/1", ""},
		{"CONNECT", "/tree/1/", "/tree/{leaf}/"},
	} {
		r := httptest.NewRequest("GET", c.path, nil)
		r.Method = c.method
		assert.Equal(t, c.want, key.Key(r), "%s %s", c.method, c.path)
	}
}

// A mux in a mux: inside, the pattern is that of the innermost one that has seen the
// request; outside, that of the innermost one that will.
func TestK2_NestedMuxes(t *testing.T) {
	var last string
	noting := func(k Key) Key {
		return KeyFunc(func(r *http.Request) string {
			last = k.Key(r)
			return last
		})
	}
	group := newGroup(t)
	byPattern, inner, outer := newGate(t, WithBreakers(group, noting(ByPattern))), http.NewServeMux(), http.NewServeMux()
	inner.Handle("GET /api/users/{id}", byPattern.Wrap(writing(200)))
	stripped := http.NewServeMux()
	stripped.Handle("GET /items/{id}", byPattern.Wrap(writing(200)))
	between := http.NewServeMux()
	between.Handle("GET /between/{id}", writing(200))
	outer.Handle("/api/", inner)
	outer.Handle("/shop/", http.StripPrefix("/shop", stripped))
	outer.Handle("/between/", byPattern.Wrap(between))

	for path, want := range map[string]string{
		"/api/users/7":  "GET /api/users/{id}",
		"/shop/items/7": "GET /items/{id}",
		"/between/7":    "/between/",
	} {
		last = "none"
		assert.Equal(t, 200, serve(outer, httptest.NewRequest("GET", path, nil)).Code, path)
		assert.Equal(t, want, last, path)
	}

	byRoute := newGate(t, WithBreakers(group, noting(ByRoute(outer)))).Wrap(outer)
	for path, want := range map[string]string{
		"/api/users/7":  "GET /api/users/{id}",
		"/api/nowhere":  "", // the inner mux has no route for it
		"/shop/items/7": "/shop/",
		"/between/7":    "/between/",
	} {
		r := httptest.NewRequest("GET", path, nil)
		assert.Equal(t, want, ByRoute(outer).Key(r), path)
		serve(byRoute, r)
	}

	itself := http.NewServeMux()
	itself.Handle("/", itself)
	assert.Empty(t, ByRoute(itself).Key(httptest.NewRequest("GET", "/", nil)), "it has no answer, and asking has an end")
}

// Both ways over real servers.
func TestK2_OverBothProtocols(t *testing.T) {
	for name, wrap := range map[string]func(g func(Key) *Gate) http.Handler{
		"inside": func(gate func(Key) *Gate) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("GET /users/{id}", gate(ByPattern).Wrap(writing(500)))
			return mux
		},
		"outside": func(gate func(Key) *Gate) http.Handler {
			mux := http.NewServeMux()
			mux.Handle("GET /users/{id}", writing(500))
			return gate(ByRoute(mux)).Wrap(mux)
		},
	} {
		group := newGroup(t, breaker.WithErrorCount(10))
		h := wrap(func(k Key) *Gate { return newGate(t, WithBreakers(group, k)) })
		t.Run(name, func(t *testing.T) {
			overBoth(t, h.ServeHTTP, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
				group.Get("GET /users/{id}").Reset()
				codes := map[int]int{}
				for i := range 15 {
					resp, err := base.RoundTrip(getFrom(t, t.Context(), fmt.Sprint(srv.URL, "/users/", i)))
					require.NoError(t, err)
					readAll(t, resp)
					codes[resp.StatusCode]++
					if i == 9 {
						assert.Eventually(t, func() bool { return group.Get("GET /users/{id}").State() == breaker.Open }, time.Minute, time.Millisecond)
					}
				}
				assert.Equal(t, map[int]int{500: 10, 503: 5}, codes)
			})
		})
	}
}

// Names that clients make up are neither keys nor labels: a flood of them costs memory,
// and series, for ever. CVE-2023-45142, https://github.com/golang/vulndb/issues/2113
func TestVulndb2113_MadeUpNamesMakeNoKeys(t *testing.T) {
	requests := 100_000
	if testing.Short() {
		requests = 10_000
	}
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", writing(200))
	mux.Handle("example.com/", writing(200))
	group := newGroup(t)
	g := newGate(t, WithBreakers(group, ByRoute(mux)), WithExempt("GET /metrics"))
	h := g.Wrap(mux)
	w := newPlain()
	r := incoming(t.Context())
	for i := range requests {
		r.Method = fmt.Sprint("M", i)
		r.Host = fmt.Sprint("host", i, ".test")
		r.URL.Path = fmt.Sprint("/path/", i)
		switch i % 4 {
		case 1:
			r.Method, r.URL.Path = "GET", fmt.Sprint("/users/", i)
		case 2:
			r.Host = "example.com"
		case 3:
			r.Method, r.Host = "CONNECT", "example.com"
		}
		*w = *newPlain()
		h.ServeHTTP(w, r)
	}
	assert.Equal(t, []string{"GET /users/{id}", "example.com/"}, keysOf(group))
	samples := 0
	for range g.Collect {
		samples++
	}
	assert.Equal(t, 4, samples)
}
