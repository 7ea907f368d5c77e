package ratelimit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// drained has no token, and gets none during a test.
func drained(t *testing.T) *Limiter { return build(t, Every(time.Hour), WithInitial(0)) }

func free(t *testing.T, opts ...Option) *Limiter {
	return build(t, PerSecond(1_000_000), append([]Option{WithBurst(1_000_000_000)}, opts...)...)
}

func value(context.Context) (int, error) { return 7, nil }

func TestAllocs_Limiter(t *testing.T) {
	ctx := t.Context()
	for name, l := range map[string]*Limiter{
		"admits":             free(t),
		"admits, uncounted":  free(t, WithoutTotals()),
		"refuses":            drained(t),
		"refuses, uncounted": build(t, Every(time.Hour), WithInitial(0), WithoutTotals()),
		"unlimited":          build(t, Unlimited()),
		"blocked":            build(t, Blocked()),
		"none":               nil,
	} {
		for what, do := range map[string]func(){
			"Allow":    func() { l.Allow() },
			"AllowN":   func() { l.AllowN(3); l.AllowN(-1); l.AllowN(1 << 60) },
			"Take":     func() { d := l.Take(1); _, _, _, _ = d.Remaining(), d.RetryAfter(), d.ResetAfter(), d.Never() },
			"Peek":     func() { d := l.Peek(2); _, _, _, _ = d.Limit(), d.Policy(), d.Resource(), d.Capacity() },
			"TakeUpTo": func() { l.TakeUpTo(1, 3) },
			"Debit":    func() { l.Debit(1) },
			"Refund":   func() { l.Refund(l.Take(1)) },
			"Do":       func() { _ = l.Do(ctx, nothing) },
			"Do, given back": func() {
				_ = l.Do(ctx, func(context.Context) error { return sluice.ErrRejected })
			},
			"Call":     func() { _, _ = sluice.Call(ctx, l, value) },
			"Snapshot": func() { l.Snapshot() },
			"Config":   func() { l.Config() },
		} {
			assert.Zero(t, testing.AllocsPerRun(200, do), "%s, %s", name, what)
		}
	}
	l := free(t)
	assert.Zero(t, testing.AllocsPerRun(200, func() { _ = l.Wait(ctx) }), "a Wait that need not wait")
	empty := drained(t)
	assert.EqualValues(t, 1, testing.AllocsPerRun(200, func() { _ = empty.Take(1).Err() }), "an error is for one caller")
}

func TestAllocs_Layers(t *testing.T) {
	one, two, three, none := free(t), free(t), free(t), drained(t)
	q := sluice.Must(NewPriorities("test", PerSecond(1_000_000)))
	var taken [3]Decision
	for what, do := range map[string]func(){
		"admitted":          func() { TakeAll(1, one.Layer(), two.Layer(), three.Layer()) },
		"refused":           func() { TakeAll(1, one.Layer(), two.Layer(), none.Layer()) },
		"refused midway":    func() { TakeAll(1, one.Layer(), none.Layer(), three.Layer()) },
		"with priorities":   func() { TakeAll(1, one.Layer(), q.Layer(sluice.P2)) },
		"TakeEach":          func() { TakeEach(taken[:], 1, one.Layer(), two.Layer(), three.Layer()) },
		"TakeEach, refused": func() { TakeEach(taken[:], 1, one.Layer(), two.Layer(), none.Layer()) },
		"given back": func() {
			layers := [3]Layer{one.Layer(), two.Layer(), q.Layer(sluice.P0)}
			TakeEach(taken[:], 1, layers[:]...)
			for i, l := range layers {
				l.Refund(taken[i])
			}
		},
	} {
		assert.Zero(t, testing.AllocsPerRun(200, do), what)
	}
}

func TestAllocs_Priorities(t *testing.T) {
	full := sluice.Must(NewPriorities("test", PerSecond(1_000_000), WithBurst(1_000_000_000)))
	empty := sluice.Must(NewPriorities("test", Every(time.Hour), WithBurst(10)))
	for empty.Allow(sluice.P0) || empty.Allow(sluice.P1) || empty.Allow(sluice.P2) {
	}
	for name, q := range map[string]*Priorities{"admits": full, "refuses": empty, "none": nil} {
		for p := sluice.P0; p <= sluice.P2; p++ {
			ctx := sluice.WithPriority(t.Context(), p)
			for what, do := range map[string]func(){
				"Allow":    func() { q.Allow(p) },
				"Take":     func() { d := q.Take(p, 2); _, _, _ = d.Remaining(), d.RetryAfter(), d.ResetAfter() },
				"Peek":     func() { q.Peek(p, 1) },
				"Refund":   func() { q.Refund(q.Take(p, 1)) },
				"Do":       func() { _ = q.Do(ctx, nothing) },
				"Call":     func() { _, _ = sluice.Call(ctx, q, value) },
				"Snapshot": func() { q.Snapshot() },
			} {
				assert.Zero(t, testing.AllocsPerRun(200, do), "%s, %v, %s", name, p, what)
			}
		}
	}
}

// In a chain a limiter adds nothing to what others cost.
func TestAllocs_Chain(t *testing.T) {
	chain := sluice.Chain(free(t), sluice.Must(NewPriorities("test", PerSecond(1_000_000))), free(t))
	refusing := sluice.Chain(free(t), drained(t))
	for _, g := range []sluice.Guard{chain, refusing} {
		assert.Zero(t, testing.AllocsPerRun(200, func() { _ = g.Do(t.Context(), nothing) }))
		assert.Zero(t, testing.AllocsPerRun(200, func() { _, _ = sluice.Call(t.Context(), g, value) }))
	}
	require.ErrorIs(t, refusing.Do(t.Context(), nothing), ErrLimited)
}
