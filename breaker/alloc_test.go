package breaker

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// everyRule never trips here.
var everyRule = []Option{
	WithMinRequests(1 << 30), WithErrorRatio(0.5), WithErrorCount(1 << 30), WithConsecutiveFailures(1 << 30),
	WithErrorRatio(0.3, Over(time.Minute)),
}

// slowRule makes it read the clock.
var slowRule = WithSlowCallRatio(time.Second, 0.5)

func nothing(context.Context) error { return nil }
func failing(context.Context) error { return errDown }

func TestAllocs_AdmitAndSettleWhileClosed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, b := range map[string]*Breaker{
		"defaults":        build(t, WithMinRequests(1<<30)),
		"every rule":      build(t, append(everyRule, slowRule)...),
		"no slow rule":    build(t, everyRule...),
		"only slow calls": build(t, WithMinRequests(1<<30), slowRule),
		"count window":    build(t, WithErrorRatio(0.9), WithConsecutiveFailures(1<<30), WithCountWindow(100), slowRule, WithMinRequests(100)),
		"in flight":       build(t, WithMinRequests(1<<30), slowRule, WithInFlightSlow()),
		"forced closed":   with(t, build(t, everyRule...), func(b *Breaker) error { return b.Force(ForcedClosed, 0) }),
		"disabled":        with(t, build(t, everyRule...), func(b *Breaker) error { return b.Force(Disabled, 0) }),
		"none":            nil,
	} {
		t.Run(name, func(t *testing.T) {
			for what, call := range map[string]func(){
				"success": func() {
					p, _ := b.Allow(ctx)
					p.Done(nil)
				},
				"failure": func() {
					p, _ := b.Allow(ctx)
					p.Done(errDown)
					q, _ := b.Allow(ctx)
					q.Done(nil)
				},
				"settled": func() {
					p, _ := b.Allow(ctx)
					defer p.Close()
					p.Settle(sluice.Success)
				},
				"throttled": func() {
					p, _ := b.Allow(ctx)
					p.Settle(sluice.Throttled)
				},
				"cancelled": func() {
					p, _ := b.Allow(ctx)
					p.Cancel()
				},
				"Do":          func() { _ = b.Do(ctx, nothing) },
				"Do, failing": func() { _ = b.Do(ctx, failing); _ = b.Do(ctx, nothing) },
				"State, Peek": func() { _, _ = b.State(), b.Peek() },
				"Do, capturing": func() {
					n := 0
					_ = b.Do(ctx, func(context.Context) error { n++; return nil })
				},
			} {
				assert.Zero(t, testing.AllocsPerRun(500, call), what)
			}
			assert.Equal(t, Closed, b.State())
		})
	}
}

// with returns b after it has been put where a test wants it.
func with(t *testing.T, b *Breaker, do func(*Breaker) error) *Breaker {
	t.Helper()
	require.NoError(t, do(b))
	return b
}

func TestAllocs_Refuse(t *testing.T) {
	trip := func(b *Breaker) error { return b.Trip(time.Hour) }
	probe := func(b *Breaker) error { // leaves one out
		if err := b.Trip(time.Nanosecond); err != nil {
			return err
		}
		for b.State() == Open {
		}
		_, err := b.Allow(t.Context())
		return err
	}
	recovered := func(b *Breaker) error {
		if err := b.Trip(time.Nanosecond); err != nil {
			return err
		}
		for b.State() == Open {
		}
		return b.Do(t.Context(), nothing)
	}
	for reason, b := range map[string]*Breaker{
		ReasonOpen:       with(t, build(t), trip),
		ReasonHalfOpen:   with(t, build(t), probe),
		ReasonRecovering: with(t, build(t, WithRecovery(Step{0.000001, time.Hour})), recovered),
		ReasonForcedOpen: with(t, build(t), func(b *Breaker) error { return b.Force(ForcedOpen, 0) }),
	} {
		t.Run(reason, func(t *testing.T) {
			_, err := b.Allow(t.Context())
			var refused sluice.Rejection
			require.ErrorAs(t, err, &refused)
			require.Equal(t, reason, refused.Reason())
			assert.Zero(t, testing.AllocsPerRun(500, func() { _, _ = b.Allow(t.Context()) }), "Allow")
			assert.Zero(t, testing.AllocsPerRun(500, func() { _ = b.Do(t.Context(), nothing) }), "Do")
			assert.Zero(t, testing.AllocsPerRun(500, func() { _, _ = b.State(), b.Peek() }), "State, Peek")
			assert.Zero(t, testing.AllocsPerRun(500, func() { _, _ = sluice.Call(t.Context(), b, value) }), "Call")
			assert.Zero(t, testing.AllocsPerRun(500, func() { _ = refused.RetryAfter() }), "RetryAfter")
		})
	}
	t.Run("a ctx that is done", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b := build(t)
		assert.Zero(t, testing.AllocsPerRun(500, func() { _, _ = b.Allow(ctx); _ = b.Do(ctx, nothing) }))
	})
}

func value(context.Context) (int, error) { return 7, nil }

// Composition adds nothing: a closure that captures is its caller's, and so is the
// variable that it assigns.
func TestAllocs_CallAndChain(t *testing.T) {
	ctx := t.Context()
	b := build(t, append(everyRule, slowRule)...)
	chain := sluice.Chain(b, build(t, WithMinRequests(1<<30)), build(t, WithMinRequests(1<<30)))
	for name, g := range map[string]sluice.Guard{"one breaker": b, "three in a chain": chain} {
		t.Run(name, func(t *testing.T) {
			assert.Zero(t, testing.AllocsPerRun(500, func() { _ = g.Do(ctx, nothing) }), "Do")
			assert.Zero(t, testing.AllocsPerRun(500, func() { _, _ = sluice.Call(ctx, g, value) }), "Call")
			assert.Zero(t, testing.AllocsPerRun(500, func() {
				_, _ = sluice.CallOr(ctx, g, value, func(context.Context, error) (int, error) { return 0, nil })
			}), "CallOr")
			n := 7
			assert.EqualValues(t, 1, testing.AllocsPerRun(500, func() {
				k := n
				_, _ = sluice.Call(ctx, g, func(context.Context) (int, error) { return k, nil })
			}), "a closure that reads a variable: itself")
			assert.EqualValues(t, 2, testing.AllocsPerRun(500, func() {
				var k int
				_, _ = sluice.Call(ctx, g, func(context.Context) (int, error) { k++; return k, nil })
			}), "a closure that assigns a variable: itself and the variable")
		})
	}
}
