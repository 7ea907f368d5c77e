package sluice_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stage"
)

// A turnstile is a stage that allocates nothing, so that what is left is ours.
type turnstile struct {
	turns int
	shut  error
}

func (s *turnstile) Do(context.Context, func(context.Context) error) error {
	panic("a stage is to be run in two steps")
}

func (s *turnstile) Admit(_ context.Context, now int64) (stage.Ticket, error) {
	return stage.Ticket{Ref: s, At: now}, s.shut
}

func (s *turnstile) Settle(t stage.Ticket, _ context.Context, _ int64, _ error, _ bool) {
	t.Ref.(*turnstile).turns++
}

// passes is a foreign Guard that allocates nothing.
type passes struct{}

func (passes) Do(ctx context.Context, call func(context.Context) error) error { return call(ctx) }

func spoons(context.Context) (int, error)   { return 12, nil }
func noSpoons(context.Context) (int, error) { return 0, errDown }
func works(context.Context) error           { return nil }

func turnstiles(n int) []sluice.Guard {
	guards := make([]sluice.Guard, n)
	for i := range guards {
		guards[i] = &turnstile{}
	}
	return guards
}

func TestCall_AllocatesNothing(t *testing.T) {
	ctx := t.Context()
	one, three, none := turnstiles(1)[0], sluice.Chain(turnstiles(3)...), sluice.Chain()
	four := sluice.Chain(sluice.Chain(turnstiles(2)...), nil, sluice.Chain(turnstiles(2)...))
	shut := sluice.Chain(append(turnstiles(2), &turnstile{shut: sluice.ErrRejected})...)
	bypass, bypassed := sluice.Bypass(ctx), sluice.Chain(append(turnstiles(6), passes{})...)
	guess := func(context.Context, error) (int, error) { return 1, nil }
	sum := 0
	for name, do := range map[string]func(){
		"no guard":               func() { v, _ := sluice.Call(ctx, nil, spoons); sum += v },
		"an empty chain":         func() { v, _ := sluice.Call(ctx, none, spoons); sum += v },
		"a stage":                func() { v, _ := sluice.Call(ctx, one, spoons); sum += v },
		"a chain of three":       func() { v, _ := sluice.Call(ctx, three, spoons); sum += v },
		"a chain of two chains":  func() { v, _ := sluice.Call(ctx, four, spoons); sum += v },
		"a failure":              func() { v, _ := sluice.Call(ctx, three, noSpoons); sum += v },
		"a refusal":              func() { v, _ := sluice.Call(ctx, shut, spoons); sum += v },
		"a call that passes by":  func() { v, _ := sluice.Call(bypass, bypassed, spoons); sum += v },
		"a fallback":             func() { v, _ := sluice.CallOr(ctx, shut, spoons, guess); sum += v },
		"a fallback, not needed": func() { v, _ := sluice.CallOr(ctx, three, spoons, guess); sum += v },
		"Do of an empty chain":   func() { _ = none.Do(ctx, works) },
		"Do of a chain of three": func() { _ = three.Do(ctx, works) },
		"Do of two chains":       func() { _ = four.Do(ctx, works) },
		"Do, refused":            func() { _ = shut.Do(ctx, works) },
		"Do, passing by":         func() { _ = bypassed.Do(bypass, works) },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, do), name)
	}
	require.Positive(t, sum)
}

// Call must be able to hand the call to any Guard, so the compiler cannot keep a
// closure on the stack: one that captures costs its caller the closure, and each
// variable that it assigns.
func TestCall_AClosureThatCapturesIsTheCallersToPay(t *testing.T) {
	ctx, price := t.Context(), 3
	one, three := turnstiles(1)[0], sluice.Chain(turnstiles(3)...)
	for name, guard := range map[string]sluice.Guard{"a stage": one, "a chain of three": three} {
		assert.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
			price := price
			_, _ = sluice.Call(ctx, guard, func(context.Context) (int, error) { return price, nil })
		}), "%s: the closure", name)
		assert.EqualValues(t, 2, testing.AllocsPerRun(100, func() {
			calls := 0
			_, _ = sluice.Call(ctx, guard, func(context.Context) (int, error) { calls++; return price, nil })
		}), "%s: the closure, and calls", name)
	}
}

// A foreign Guard knows only Do, so its call is a closure that leaves the result
// in a variable. In a chain it costs one more for what is behind it.
func TestCall_AForeignGuardCostsClosures(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct {
		name     string
		guard    sluice.Guard
		do, call float64
	}{
		{"alone", passes{}, 0, 2},
		{"alone in a chain", sluice.Chain(passes{}), 0, 2},
		{"outside a stage", sluice.Chain(passes{}, &turnstile{}), 1, 3},
		{"inside a stage", sluice.Chain(&turnstile{}, passes{}), 1, 3},
		{"between stages", sluice.Chain(&turnstile{}, passes{}, &turnstile{}), 2, 4},
		{"no foreign one, but five stages", sluice.Chain(turnstiles(5)...), 1, 3},
		{"eight stages, nested", sluice.Chain(&turnstile{}, sluice.Chain(turnstiles(5)...), &turnstile{}, &turnstile{}), 1, 3},
	} {
		assert.Equal(t, c.do, testing.AllocsPerRun(100, func() { _ = c.guard.Do(ctx, works) }), "Do, "+c.name)
		assert.Equal(t, c.call, testing.AllocsPerRun(100, func() { _, _ = sluice.Call(ctx, c.guard, spoons) }), "Call, "+c.name)
	}
}

// It is asked of every call that has an end.
func TestClassify_AllocatesNothingForASuccess(t *testing.T) {
	ctx := t.Context()
	assert.Zero(t, testing.AllocsPerRun(100, func() { sluice.Classify(ctx, nil) }))
}
