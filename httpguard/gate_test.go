package httpguard

import (
	"context"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

func newGate(t testing.TB, opts ...Option) *Gate {
	t.Helper()
	g, err := NewGate(opts...)
	require.NoError(t, err)
	return g
}

// writing is a handler that sends one status.
func writing(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// serve lets handler answer one request, without a network.
func serve(handler http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// incoming is a request as a server would make it.
func incoming(ctx context.Context) *http.Request {
	return httptest.NewRequestWithContext(ctx, http.MethodGet, "/path?q=1", nil)
}

// gone is the context of a client that has left.
func gone(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// apart runs f in a goroutine of its own and returns what it panicked with.
func apart(f func()) (panicked any) {
	var wg sync.WaitGroup
	wg.Go(func() {
		defer func() { panicked = recover() }()
		f()
	})
	wg.Wait()
	return panicked
}

func TestGate_WithoutOptionsOnlyCallsTheHandler(t *testing.T) {
	type mine struct{ http.ResponseWriter }
	w, r := &mine{httptest.NewRecorder()}, incoming(t.Context())
	calls := 0
	newGate(t).Wrap(http.HandlerFunc(func(got http.ResponseWriter, gotR *http.Request) {
		calls++
		assert.Same(t, w, got, "the writer is the same")
		assert.Same(t, r, gotR, "and so is the request")
	})).ServeHTTP(w, r)
	assert.Equal(t, 1, calls)
}

func TestMiddleware_RefusesOptionsThatMakeNoSense(t *testing.T) {
	group := newGroup(t)
	for name, c := range map[string]struct {
		opts []Option
		want string
	}{
		"bound 0":          {[]Option{WithMaxInFlight(0)}, "httpguard: WithMaxInFlight: 0 is not in [1, 4294967295]"},
		"bound -1":         {[]Option{WithMaxInFlight(-1)}, "httpguard: WithMaxInFlight: -1 is not in [1, 4294967295]"},
		"deadline 0":       {[]Option{WithDeadline(0)}, "httpguard: WithDeadline: 0s is not positive"},
		"hosts":            {[]Option{WithBreakers(group, ByHost)}, "httpguard: WithBreakers: ByHost tells upstreams apart, and requests to a server have none; use ByPattern or ByRoute"},
		"no mux":           {[]Option{WithBreakers(group, ByRoute(nil))}, "httpguard: WithBreakers: the mux of ByRoute is nil"},
		"no key":           {[]Option{WithBreakers(group, nil)}, "httpguard: WithBreakers: the key is nil"},
		"for the other":    {[]Option{WithAttemptTimeout(time.Second)}, "httpguard: WithAttemptTimeout has no meaning for a Middleware"},
		"exempt nothing":   {[]Option{WithExempt("")}, `httpguard: WithExempt: pattern "": http: invalid pattern`},
		"exempt bad":       {[]Option{WithExempt("/a/{b")}, `httpguard: WithExempt: pattern "/a/{b": parsing "/a/{b": at offset 3: bad wildcard segment (must end with '}')`},
		"exempt conflicts": {[]Option{WithExempt("/a/{b}", "/{a}/b")}, `httpguard: WithExempt: pattern "/{a}/b": pattern "/{a}/b"`},
	} {
		mw, err := Middleware(c.opts...)
		assert.ErrorContains(t, err, c.want, name)
		assert.Nil(t, mw, name)
	}
	_, err := Middleware(WithMaxInFlight(0), WithDeadline(-1), WithExempt("", "/{"), WithName(""), WithFallbackLimit(1))
	for _, want := range []string{"WithMaxInFlight", "WithDeadline", `pattern ""`, `pattern "/{"`, "WithName", "WithFallbackLimit"} {
		assert.ErrorContains(t, err, want, "all complaints come at once")
	}
}

// A mistake in the wiring should not wait for the first request.
func TestGate_WrapsNoNilHandler(t *testing.T) {
	const want = "httpguard: Gate.Wrap: the handler is nil"
	assert.PanicsWithValue(t, want, func() { newGate(t).Wrap(nil) })
	assert.PanicsWithValue(t, want, func() { newGate(t).Wrap(http.HandlerFunc(nil)) })
}

// What a request has taken outside is given back when a guard further in refuses; an
// exempt or bypassing request takes nothing.
func TestGate_OrderIsExemptDrainBoundBreaker(t *testing.T) {
	open := openBreaker(t, time.Minute)
	var drain Drain
	g := newGate(t, WithBreaker(open), WithMaxInFlight(1), WithDrain(&drain), WithExempt("/healthz"))
	h := g.Wrap(writing(200))

	for range 3 {
		w := serve(h, incoming(t.Context()))
		assert.Equal(t, 503, w.Code)
		assert.Zero(t, drain.InFlight())
		assert.Zero(t, g.Snapshot().InFlight.Now)
	}
	assert.EqualValues(t, 3, open.Snapshot().Refused.Open)
	assert.Equal(t, 1, g.Snapshot().InFlight.Peak)

	full := newGate(t, WithMaxInFlight(1), WithBreaker(open))
	require.True(t, full.slots.take())
	assert.Equal(t, 503, serve(full.Wrap(writing(200)), incoming(t.Context())).Code)
	assert.EqualValues(t, 3, open.Snapshot().Refused.Open, "a full house does not ask the breaker")
	assert.EqualValues(t, 1, full.Snapshot().InFlight.Refused)

	drain.Begin()
	assert.Equal(t, 503, serve(h, incoming(t.Context())).Code)
	assert.EqualValues(t, 3, open.Snapshot().Refused.Open, "nor does a drain")
	assert.EqualValues(t, 1, g.Snapshot().Drain.Refused)

	assert.Equal(t, 200, serve(h, httptest.NewRequest("GET", "/healthz", nil)).Code)
	assert.Equal(t, 200, serve(h, incoming(sluice.Bypass(t.Context()))).Code)
	assert.EqualValues(t, 1, g.Snapshot().Exempt)
	assert.EqualValues(t, 1, g.Snapshot().Bypassed)
	assert.Zero(t, open.Snapshot().Totals)
}

func TestGate_SharesItsBoundAmongItsHandlers(t *testing.T) {
	g := newGate(t, WithMaxInFlight(1))
	other := g.Wrap(writing(200))
	var inner int
	w := serve(g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		inner = serve(other, r).Code
	})), incoming(t.Context()))
	assert.Equal(t, 200, w.Code)
	assert.Equal(t, 503, inner)
}

// A handler in a probe can tell, and its request is a copy; all others get their own.
func TestGate_MarksProbes(t *testing.T) {
	b := openBreaker(t, time.Nanosecond)
	r := incoming(t.Context())
	var probes, copies int
	h := newGate(t, WithBreaker(b)).Wrap(http.HandlerFunc(func(_ http.ResponseWriter, got *http.Request) {
		if sluice.IsProbe(got.Context()) {
			probes++
		}
		if got != r {
			copies++
		}
	}))
	require.Eventually(t, func() bool { return b.State() == breaker.HalfOpen }, time.Minute, time.Nanosecond)
	serve(h, r)
	assert.Equal(t, breaker.Closed, b.State())
	serve(h, r)
	assert.Equal(t, 1, probes)
	assert.Equal(t, 1, copies)
}

// Whatever handlers do, what was admitted is settled once and what was taken is given
// back: the breaker's books close, and nothing is in flight at the end.
func TestGate_BooksCloseUnderConcurrency(t *testing.T) {
	const requests, workers, most = 4000, 8, 5
	b := neverTrips(t)
	var drain Drain
	g := newGate(t, WithBreaker(b), WithMaxInFlight(most), WithDrain(&drain), WithDeadline(time.Hour))
	var mu sync.Mutex
	inside, peak, ran := 0, 0, 0
	var want outcomes
	h := g.Wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		inside++
		ran++
		peak = max(peak, inside)
		n := ran
		switch n := ran % 7; {
		case n < 4:
			want.failure++
		case n == 4:
			want.ignored++
		default:
			want.success++
		}
		mu.Unlock()
		defer func() {
			mu.Lock()
			inside--
			mu.Unlock()
		}()
		runtime.Gosched()
		switch n % 7 {
		case 0:
			panic("handler")
		case 1:
			panic(http.ErrAbortHandler)
		case 2:
			runtime.Goexit()
		case 3:
			w.WriteHeader(500)
		case 4:
			Ignore(w)
		case 5:
			_ = http.NewResponseController(w).Flush()
		}
	}))
	var wg sync.WaitGroup
	var refused [workers]int
	for i := range workers {
		wg.Go(func() {
			for range requests / workers {
				apart(func() {
					if serve(h, incoming(context.Background())).Code == 503 {
						refused[i]++
					}
				})
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range refused {
		total += n
	}
	assert.Equal(t, requests, ran+total)
	assert.LessOrEqual(t, peak, most)
	s := g.Snapshot()
	assert.Zero(t, s.InFlight.Now)
	assert.EqualValues(t, total, s.InFlight.Refused)
	assert.GreaterOrEqual(t, s.InFlight.Peak, peak)
	assert.Zero(t, drain.InFlight())
	assert.Equal(t, want, outcomesOf(b))
}

// settled waits until the breaker has been told of one request more: the server ends a
// request only after its client has seen the answer.
func settled(t *testing.T, b *breaker.Breaker, before, more outcomes) {
	t.Helper()
	want := outcomes{before.success + more.success, before.failure + more.failure, before.ignored + more.ignored, before.throttled + more.throttled}
	assert.Eventually(t, func() bool { return outcomesOf(b) == want }, time.Minute, time.Millisecond,
		"%v and %v", before, more)
}
