package retry

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

func succeed(context.Context) error      { return nil }
func failing(context.Context) error      { return errDown }
func refusing(context.Context) error     { return errOpen }
func value(context.Context) (int, error) { return 7, nil }
func ignoring(context.Context) error     { return errIgnored }

var errIgnored = sluice.Ignore(errDown)

// A call that succeeds, or is refused further in, or is not worth another attempt,
// costs no allocation; nor does one that the budget does not let repeat, but for its
// error.
func TestAllocs(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	none, err := NewBudget("payments", WithRatio(0), WithMinPerSecond(0))
	require.NoError(t, err)
	for name, p := range map[string]*Policy{
		"own budget": build(t), "no budget": build(t, WithBudget(nil)), "an empty one": build(t, WithBudget(none)), "nil": nil,
	} {
		t.Run(name, func(t *testing.T) {
			for what, call := range map[string]func(context.Context) error{"success": succeed, "refused": refusing, "ignored": ignoring} {
				assert.Zero(t, testing.AllocsPerRun(500, func() { _ = p.Do(ctx, call) }), what)
				assert.Zero(t, testing.AllocsPerRun(500, func() {
					a, _ := p.Begin(ctx)
					_, _ = a.Next(ctx, call(ctx))
					_ = a.Err()
				}), what+", by steps")
			}
			n := 0
			assert.Zero(t, testing.AllocsPerRun(500, func() {
				_ = p.Do(ctx, func(context.Context) error { n++; return nil })
			}), "a closure that captures")
		})
	}
	p := build(t, WithBudget(none))
	assert.EqualValues(t, 1, testing.AllocsPerRun(500, func() { _ = p.Do(ctx, failing) }), "the error")
	done, cancelDone := context.WithCancel(ctx)
	cancelDone()
	assert.Zero(t, testing.AllocsPerRun(500, func() { _ = p.Do(done, succeed) }), "a ctx that is done")
}

// Through a Guard the caller pays for his closure, and a result for its variable.
func TestAllocs_Call(t *testing.T) {
	var g sluice.Guard = build(t)
	assert.EqualValues(t, 2, testing.AllocsPerRun(500, func() { _, _ = sluice.Call(t.Context(), g, value) }))
	assert.Zero(t, testing.AllocsPerRun(500, func() { _ = g.Do(t.Context(), succeed) }))
}

// Asking the budget costs nothing either.
func TestAllocs_Budget(t *testing.T) {
	b := budget(t)
	assert.Zero(t, testing.AllocsPerRun(2000, func() { b.Deposit(); b.Withdraw() }))
}

// What a retry costs is told here, so that it is seen when it changes: the ctx that is
// marked, and nothing else if there is no wait.
func TestAllocs_Retry(t *testing.T) {
	p := build(t, WithBudget(nil), WithBackoff(0, 0), WithAttempts(2))
	n := 0
	assert.EqualValues(t, 1, testing.AllocsPerRun(500, func() {
		_ = p.Do(t.Context(), func(context.Context) error {
			if n++; n%2 == 1 {
				return errDown
			}
			return nil
		})
	}))
	limited := build(t, WithAttemptTimeout(time.Hour))
	assert.LessOrEqual(t, testing.AllocsPerRun(500, func() { _ = limited.Do(t.Context(), succeed) }), 7.0, "a context with a deadline and its cause")
}
