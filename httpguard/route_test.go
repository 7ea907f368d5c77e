package httpguard

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/metrics"
)

// shop is a mux with a mux inside: /api/ leads to users and orders, of which orders
// are down.
func shop(guard func(http.Handler) http.Handler) (outer, inner *http.ServeMux) {
	outer, inner = http.NewServeMux(), http.NewServeMux()
	inner.Handle("GET /api/users/{id}", guard(writing(http.StatusOK)))
	inner.Handle("GET /api/orders/{id}", guard(writing(http.StatusInternalServerError)))
	outer.Handle("/api/", inner)
	outer.Handle("GET /about", guard(writing(http.StatusOK)))
	return outer, inner
}

func visiting(t *testing.T, path string) *http.Request {
	return httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
}

func routes(t *testing.T) *breaker.Group {
	t.Helper()
	return sluice.Must(breaker.NewGroup("routes", breaker.WithErrorCount(20), breaker.WithOpenFor(30*time.Second), breaker.WithJitter(0)))
}

// The key of a route is its pattern, whether the Gate stands inside of the muxes,
// around them, or between: never the path, of which clients can make up any number.
func TestK2_RoutesHaveBreakersOfTheirOwn(t *testing.T) {
	none := func(h http.Handler) http.Handler { return h }
	for name, build := range map[string]func(*testing.T, *breaker.Group) (http.Handler, string){
		"inside, by pattern": func(t *testing.T, g *breaker.Group) (http.Handler, string) {
			outer, _ := shop(newGate(t, WithBreakers(g, ByPattern)).Wrap)
			return outer, "GET /api/orders/{id}"
		},
		"around, by route": func(t *testing.T, g *breaker.Group) (http.Handler, string) {
			outer, _ := shop(none)
			return newGate(t, WithBreakers(g, ByRoute(outer))).Wrap(outer), "GET /api/orders/{id}"
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := routes(t)
			h, down := build(t, g)
			for i := range 20 {
				require.Equal(t, http.StatusInternalServerError, serve(h, visiting(t, fmt.Sprint("/api/orders/", i))).Code)
			}
			refused := serve(h, visiting(t, "/api/orders/21"))
			assert.Equal(t, http.StatusServiceUnavailable, refused.Code)
			assert.Equal(t, "30", refused.Header().Get("Retry-After"))
			assert.Equal(t, http.StatusOK, serve(h, visiting(t, "/api/users/1")).Code, "another route")
			assert.Equal(t, http.StatusOK, serve(h, visiting(t, "/about")).Code, "a route of the outer mux")
			keys := map[string]breaker.State{}
			for key, b := range g.All() {
				keys[key] = b.State()
			}
			assert.Equal(t, map[string]breaker.State{down: breaker.Open, "GET /api/users/{id}": breaker.Closed, "GET /about": breaker.Closed}, keys)
		})
	}
}

// Between two muxes the pattern is the outer one's: all that is behind it shares one
// breaker.
func TestK2_BetweenTwoMuxesThePatternIsTheOuterOnes(t *testing.T) {
	g := routes(t)
	_, inner := shop(func(h http.Handler) http.Handler { return h })
	outer := http.NewServeMux()
	outer.Handle("/api/", newGate(t, WithBreakers(g, ByPattern)).Wrap(inner))
	serve(outer, visiting(t, "/api/users/1"))
	serve(outer, visiting(t, "/api/orders/1"))
	assert.Equal(t, 1, g.Len())
	for key := range g.All() {
		assert.Equal(t, "/api/", key)
	}
}

// A request without a pattern is never refused by a breaker, is counted, and is
// warned about once: a Gate by pattern that stands around its mux would otherwise
// put all routes behind one breaker, or none, and nobody would know.
func TestK2_WithoutAPatternNothingIsRefused(t *testing.T) {
	for name, build := range map[string]func(*testing.T, *slog.Logger) *Gate{
		"by pattern, around the mux": func(t *testing.T, l *slog.Logger) *Gate {
			return newGate(t, WithBreakers(routes(t), ByPattern), WithLogger(l))
		},
		"by route, of another mux": func(t *testing.T, l *slog.Logger) *Gate {
			return newGate(t, WithBreakers(routes(t), ByRoute(http.NewServeMux())), WithLogger(l))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			gate := build(t, slog.New(slog.NewTextHandler(&log, nil)))
			outer, _ := shop(func(h http.Handler) http.Handler { return h })
			h := gate.Wrap(outer)
			for i := range 50 {
				require.Equal(t, http.StatusInternalServerError, serve(h, visiting(t, fmt.Sprint("/api/orders/", i))).Code)
			}
			assert.EqualValues(t, 50, gate.Snapshot().Unmatched)
			assert.Equal(t, 1, strings.Count(log.String(), "request without a route"), log.String())
		})
	}
}

// https://github.com/golang/vulndb/issues/2113 (CVE-2023-45142): labels made of what
// clients send are a way to fill a server's memory.
func TestVulndb2113_KeysDoNotComeFromClients(t *testing.T) {
	g := routes(t)
	outer, _ := shop(func(h http.Handler) http.Handler { return h })
	gate := newGate(t, WithBreakers(g, ByRoute(outer)))
	h := gate.Wrap(outer)
	const n = 20_000
	for i := range n {
		r := visiting(t, fmt.Sprint("/api/users/", i))
		if i%2 == 0 {
			r.Method = fmt.Sprint("M", i)
		}
		r.Host = fmt.Sprint("host", i)
		serve(h, r)
	}
	assert.Equal(t, 1, g.Len())
	assert.EqualValues(t, n/2, gate.Snapshot().Unmatched)
}

// https://github.com/dragonflyoss/dragonfly/issues/5015,
// https://github.com/grafana/mimir/pull/5650: a server that is full must still be
// able to say that it is alive.
func TestDragonfly5015_HealthChecksPassAFullHouse(t *testing.T) {
	gate := newGate(t, WithMaxInFlight(1), WithExempt("GET /healthz", "/metrics/{what}"))
	inside, leave := make(chan struct{}), make(chan struct{})
	h := gate.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/busy" {
			close(inside)
			<-leave
		}
	}))
	done := make(chan struct{})
	go func() { defer close(done); serve(h, visiting(t, "/busy")) }()
	<-inside
	assert.Equal(t, http.StatusServiceUnavailable, serve(h, visiting(t, "/other")).Code)
	for _, path := range []string{"/healthz", "/metrics/go", "/grpc.health.v1.Health/Check"} {
		assert.Equal(t, http.StatusOK, serve(h, visiting(t, path)).Code, path)
	}
	close(leave)
	<-done
	s := gate.Snapshot()
	assert.EqualValues(t, 3, s.Exempt)
	assert.Equal(t, &InFlightSnapshot{Now: 0, Peak: 1, Limit: 1, Refused: 1}, s.InFlight)
}

// https://github.com/sony/gobreaker/pull/121,
// https://github.com/apache/dubbo-go-pixiu/issues/869: statuses must reach the
// breaker, and what the client did wrong must not.
func TestGobreaker121_NotFoundIsNoFailureOfTheServer(t *testing.T) {
	g := routes(t)
	mux := http.NewServeMux()
	gate := newGate(t, WithBreakers(g, ByPattern))
	mux.Handle("/{status}", gate.Wrap(writing(http.StatusNotFound)))
	for range 100 {
		require.Equal(t, http.StatusNotFound, serve(mux, visiting(t, "/404")).Code)
	}
	assert.Equal(t, breaker.Closed, g.Get("/{status}").State())
	assert.EqualValues(t, 100, g.Get("/{status}").Snapshot().Totals.Success)
}

// https://github.com/traefik/traefik/pull/13459: one failure of one request is no
// ratio.
func TestTraefik13459_OneFailureOfOneIsNoRatio(t *testing.T) {
	g := sluice.Must(breaker.NewGroup("routes"))
	mux := http.NewServeMux()
	mux.Handle("/", newGate(t, WithBreakers(g, ByPattern)).Wrap(writing(http.StatusInternalServerError)))
	serve(mux, visiting(t, "/"))
	assert.Equal(t, breaker.Closed, g.Get("/").State())
	assert.Equal(t, "errors 100 % of 50 %, 1 of 1 calls, below min requests (1/20)", g.Get("/").Snapshot().Reason)
}

// https://github.com/temporalio/temporal/pull/5867: a new threshold must not close
// what is open. https://github.com/traefik/traefik/issues/3590: nor may its name be
// missing where its state is read.
func TestTemporal5867_Traefik3590_AnUpdateKeepsWhatIsOpen(t *testing.T) {
	g := routes(t)
	mux := http.NewServeMux()
	mux.Handle("/down", newGate(t, WithBreakers(g, ByPattern)).Wrap(writing(http.StatusBadGateway)))
	for range 20 {
		serve(mux, visiting(t, "/down"))
	}
	c := g.Config()
	c.Rules[0].Count = 1000
	require.NoError(t, g.Update(c))
	assert.Equal(t, http.StatusServiceUnavailable, serve(mux, visiting(t, "/down")).Code)
	var set metrics.Set
	require.NoError(t, set.Add("routes", g))
	var text strings.Builder
	require.NoError(t, set.WriteText(&text))
	assert.Contains(t, text.String(), `breaker_state{resource="routes//down",state="open"}`)
}

// A request behind a breaker costs one allocation; without anybody who wants its
// status, none.
func TestGate_Allocations(t *testing.T) {
	g := routes(t)
	r := visiting(t, "/")
	r.Pattern = "/"
	w := discarding{http.Header{}}
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	guarded, bounded := newGate(t, WithBreakers(g, ByPattern), WithMaxInFlight(10)).Wrap(ok), newGate(t, WithMaxInFlight(10)).Wrap(ok)
	for range 1000 { // until the group has published the key
		guarded.ServeHTTP(w, r)
	}
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() { guarded.ServeHTTP(w, r) }), 1.0)
	assert.Zero(t, testing.AllocsPerRun(1000, func() { bounded.ServeHTTP(w, r) }))
}

// discarding is a ResponseWriter that keeps nothing.
type discarding struct{ header http.Header }

func (d discarding) Header() http.Header         { return d.header }
func (d discarding) Write(p []byte) (int, error) { return len(p), nil }
func (d discarding) WriteHeader(int)             {}

func ExampleMiddleware() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /orders/{id}", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the database is down", http.StatusInternalServerError)
	})
	routes := sluice.Must(breaker.NewGroup("routes", breaker.WithErrorCount(3), breaker.WithOpenFor(30*time.Second), breaker.WithJitter(0)))
	guard := sluice.Must(Middleware(
		WithBreakers(routes, ByRoute(mux)), // around the mux; inside of it, use ByPattern
		WithMaxInFlight(200),
		WithExempt("GET /healthz"),
	))
	handler := guard(mux)
	for i := range 4 {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), http.MethodGet, fmt.Sprint("/orders/", i), nil))
		fmt.Println(w.Code, w.Header()["Retry-After"])
	}
	// Output:
	// 500 []
	// 500 []
	// 500 []
	// 503 [30]
}
