package httpguard

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/metrics"
)

// A breaker that never hears of statuses never opens; one that hears of all opens for
// clients that ask for what is not there. https://github.com/sony/gobreaker/pull/121,
// https://github.com/apache/dubbo-go-pixiu/issues/869,
// https://github.com/dapr/components-contrib/issues/1026
func TestGobreaker121_StatusesOfHandlersReachTheBreaker(t *testing.T) {
	group := newGroup(t)
	g := newGate(t, WithBreakers(group, ByPattern))
	mux := http.NewServeMux()
	mux.Handle("/404", g.Wrap(http.NotFoundHandler()))
	mux.Handle("/500", g.Wrap(writing(500)))
	mux.Handle("/429", g.Wrap(writing(429)))
	overBoth(t, mux.ServeHTTP, func(t *testing.T, srv *httptest.Server, base *http.Transport) {
		ask := func(path string) *http.Response {
			resp, err := base.RoundTrip(getFrom(t, t.Context(), srv.URL+path))
			require.NoError(t, err)
			readAll(t, resp)
			return resp
		}
		for range 100 {
			require.Equal(t, 404, ask("/404").StatusCode)
			require.Equal(t, 429, ask("/429").StatusCode)
		}
		assert.Equal(t, breaker.Closed, group.Get("/404").State())
		assert.Equal(t, breaker.Closed, group.Get("/429").State())

		group.Get("/500").Reset()
		for range 20 {
			require.Equal(t, 500, ask("/500").StatusCode)
		}
		require.Eventually(t, func() bool { return group.Get("/500").State() == breaker.Open }, time.Minute, time.Millisecond)
		resp := ask("/500")
		assert.Equal(t, 503, resp.StatusCode)
		assert.NotEmpty(t, resp.Header.Get("Retry-After"))
		assert.Equal(t, 404, ask("/404").StatusCode, "the other routes are as before")
	})
}

// An open breaker must be seen, with its name: https://github.com/traefik/traefik/issues/3590
func TestTraefik3590_AnOpenBreakerIsSeenByItsName(t *testing.T) {
	var lines strings.Builder
	logger := slog.New(slog.NewTextHandler(&lines, nil))
	group, err := breaker.NewGroup("front", breaker.WithConsecutiveFailures(1), breaker.WithLogger(logger))
	require.NoError(t, err)
	g := newGate(t, WithName("front"), WithBreakers(group, ByPattern), WithMaxInFlight(10))
	mux := http.NewServeMux()
	mux.Handle("GET /users/{id}", g.Wrap(writing(500)))
	var set metrics.Set
	require.NoError(t, set.Add("front", g))
	require.NoError(t, set.Add("front breakers", group))

	serve(mux, httptest.NewRequest("GET", "/users/1", nil))
	serve(mux, httptest.NewRequest("GET", "/users/1", nil))
	state := map[string]float64{}
	for s := range set.Collect {
		if len(s.Labels) == 0 {
			continue // of the Set itself
		}
		assert.Contains(t, s.Labels[0], "front", "each sample of %s names its guard", s.Desc.Name)
		if s.Desc.Name == "breaker_state" {
			state[strings.Join(s.Labels, " ")] = s.Value
		}
	}
	assert.EqualValues(t, 1, state["front/GET /users/{id} open"], "%v", state)
	assert.Contains(t, lines.String(), `front/GET /users/{id}`)
}

// Half of two requests is no ratio, and a few of a thousand are no outage:
// https://github.com/traefik/traefik/pull/13459, https://github.com/traefik/traefik/issues/10963
func TestTraefik13459_FewFailuresOpenNoRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBreaker(t)
		h := newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.RawQuery == "fail" {
				w.WriteHeader(500)
			}
		}))
		failing, ok := httptest.NewRequest("GET", "/?fail", nil), httptest.NewRequest("GET", "/", nil)
		serve(h, failing)
		assert.Equal(t, breaker.Closed, b.State(), "1 of 1")

		const perSecond, seconds = 800, 20
		failures := 0
		for i := range perSecond * seconds {
			r := ok
			if i%714 == 0 { // 0.14 %
				r = failing
				failures++
			}
			serve(h, r)
			time.Sleep(time.Second / perSecond)
		}
		assert.Equal(t, breaker.Closed, b.State())
		assert.Equal(t, outcomes{success: int64(perSecond*seconds - failures), failure: int64(failures + 1)}, outcomesOf(b))
	})
}

// A new threshold is no new breaker: https://github.com/temporalio/temporal/pull/5867
func TestTemporal5867_UpdateKeepsAnOpenRouteOpen(t *testing.T) {
	group := newGroup(t, breaker.WithConsecutiveFailures(1))
	mux := http.NewServeMux()
	mux.Handle("/", newGate(t, WithBreakers(group, ByPattern)).Wrap(writing(500)))
	assert.Equal(t, 500, serve(mux, incoming(t.Context())).Code)
	assert.Equal(t, 503, serve(mux, incoming(t.Context())).Code)
	c := group.Config()
	c.Rules[0].Count = 100
	require.NoError(t, group.Update(c))
	assert.Equal(t, 503, serve(mux, incoming(t.Context())).Code)
}
