package adaptive

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

func nothingToDo(context.Context) error { return nil }

func refusing(context.Context) error { return errRefused }

func TestAllocs_BeginAndSettle(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, opts := range map[string][]TimeoutOption{
		"ours": {ours}, "compact": {WithCompact()}, "mean": {threeMeans}, "quantile": {twiceP99}, "RFC 6298": {likeTCP}, "fixed": {aSecond},
		"own": {WithEstimator(func() Estimator { return always{} })},
	} {
		to := sluice.Must(NewTimeout("x", ms, time.Second, opts...))
		if name == "fixed" {
			to = sluice.Must(NewTimeout("x", ms, 5*time.Second, opts...))
		}
		for what, call := range map[string]func(){
			"value": func() { _ = to.Value() },
			"done": func() {
				a, _ := to.Begin(ctx)
				a.Done(nil)
			},
			"failed": func() {
				a, _ := to.Begin(ctx)
				a.Done(errRefused)
			},
			"settled": func() {
				a, _ := to.Begin(ctx)
				defer a.Close()
				a.Settle(sluice.Success)
			},
			"cancelled": func() {
				a, _ := to.Begin(ctx)
				a.Cancel()
			},
			"meter": func() { _ = to.Meter().Do(ctx, nothingToDo) },
		} {
			assert.Zerof(t, testing.AllocsPerRun(500, call), "%s, %s", name, what)
		}
	}
}

// Where the caller's deadline is the nearer one no context is made.
func TestAllocs_ContextOfACallerInAHurry(t *testing.T) {
	to := sluice.Must(NewTimeout("x", ms, time.Hour))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	assert.Zero(t, testing.AllocsPerRun(500, func() {
		a, _ := to.Begin(ctx)
		inner, done := a.Context(ctx)
		if inner != ctx {
			t.Error("another context")
		}
		done()
		a.Done(nil)
	}))
	assert.Zero(t, testing.AllocsPerRun(500, func() { _ = to.Do(ctx, nothingToDo) }))
	assert.Zero(t, testing.AllocsPerRun(500, func() { _ = to.Do(ctx, refusing) }))
}

func TestAllocs_Refuse(t *testing.T) {
	to := settled(t)
	ctx := &caller{Context: t.Context(), deadline: 1}
	refusals := 0
	assert.Zero(t, testing.AllocsPerRun(500, func() {
		a, err := to.begin(ctx, at(time.Second))
		if err != nil {
			refusals++
		}
		a.Cancel()
	}))
	assert.Equal(t, 500, refusals)
}

func TestAllocs_CallThroughAMeter(t *testing.T) {
	to := sluice.Must(NewTimeout("x", ms, time.Second))
	value := func(context.Context) (int, error) { return 7, nil }
	for name, g := range map[string]sluice.Guard{"alone": to.Meter(), "in a chain": sluice.Chain(to.Meter(), to.Meter())} {
		assert.Zero(t, testing.AllocsPerRun(500, func() { _, _ = sluice.Call(t.Context(), g, value) }), name)
	}
}

// sizeOf is what n objects take on the heap, each.
func sizeOf(t *testing.T, n int, build func() *Timeout) int {
	t.Helper()
	keep := make([]*Timeout, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range keep {
		keep[i] = build()
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(keep)
	return int(after.HeapAlloc-before.HeapAlloc) / n
}

// A Timeout that has seen everything, in every second of five minutes, takes at most
// 33 KiB, and a compact one 5 KiB.
func TestMemory_IsBounded(t *testing.T) {
	full := func(opts ...TimeoutOption) func() *Timeout {
		return func() *Timeout {
			s := newTimeoutSettings(10*ms, 5*time.Second)
			s.apply(opts)
			require.NoError(t, s.check())
			to := newTimeout("backend", &s.TimeoutConfig, s.hooks.keep(), t0)
			for i := range 310 {
				for _, d := range []time.Duration{ms, 20 * ms, time.Second} {
					now := at(time.Duration(i) * time.Second)
					a, _ := to.begin(context.Background(), now-int64(d))
					a.done(now, nil)
					a, _ = to.begin(context.Background(), now-int64(to.Value()))
					a.done(now, context.DeadlineExceeded)
				}
			}
			return to
		}
	}
	const n = 60
	assert.LessOrEqual(t, sizeOf(t, n, full()), 33<<10)
	assert.LessOrEqual(t, sizeOf(t, n, full(WithCompact())), 5<<10)
	assert.LessOrEqual(t, sizeOf(t, n, full(threeMeans)), 2<<10)
	fresh := func() *Timeout { return sluice.Must(NewTimeout("backend", ms, time.Second)) }
	assert.LessOrEqual(t, sizeOf(t, n, fresh), 3<<10, "an idle one is small")
}
