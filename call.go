package sluice

import (
	"context"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Call runs call inside g and returns its result: Do with a value. A refusal
// returns the zero T and g's error. A nil g lets everything pass.
//
// Through the guards of this module, and through a Chain of them, it allocates
// nothing of its own. A call that captures variables costs its caller the closure
// and each variable it assigns.
func Call[T any](ctx context.Context, g Guard, call func(context.Context) (T, error)) (T, error) {
	if g == nil || stage.Bypassed(ctx) {
		return call(ctx)
	}
	switch g := g.(type) {
	case stage.Stage:
		return runStage(ctx, g, call)
	case *chain:
		switch {
		case len(g.steps) == 0:
			return call(ctx)
		case len(g.steps) == 1 && g.steps[0].guard == nil:
			return runStages(ctx, g.steps[0].stages, call)
		}
	}
	return callDo(ctx, g, call)
}

// CallOr is Call with a fallback: whatever error Call returns, be it a refusal or
// call's own, fallback is given as the cause, and its result is returned instead.
// A fallback that has nothing for this cause returns the cause. It runs outside
// g, so it is neither refused nor counted, with the ctx given to CallOr.
func CallOr[T any](ctx context.Context, g Guard, call func(context.Context) (T, error), fallback func(ctx context.Context, cause error) (T, error)) (T, error) {
	v, err := Call(ctx, g, call)
	if err != nil {
		return fallback(ctx, err)
	}
	return v, nil
}

// Must returns v, and panics if err is not nil: for package variables and tests.
func Must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// callDo hands call to a Guard that knows only Do. It stands apart so that only
// calls that come here pay for v living on the heap.
func callDo[T any](ctx context.Context, g Guard, call func(context.Context) (T, error)) (T, error) {
	var v T
	err := g.Do(ctx, func(ctx context.Context) (err error) {
		v, err = call(ctx)
		return err
	})
	return v, err
}

// runStage runs call inside one stage.
func runStage[T any](ctx context.Context, s stage.Stage, call func(context.Context) (T, error)) (v T, err error) {
	if err = ctx.Err(); err != nil {
		return v, err
	}
	t, err := s.Admit(ctx, clock.Now())
	if err != nil {
		return v, err
	}
	completed := false
	defer func() { s.Settle(t, ctx, clock.Now(), err, completed) }()
	inner := ctx
	if t.Probe {
		inner = stage.WithProbe(ctx)
	}
	v, err = call(inner)
	completed = true
	return v, err
}

// maxStages is how many stages share one array of tickets on the stack. A longer
// chain is cut into pieces of this size.
const maxStages = 4

// runStages runs call inside all stages, the first outermost. A refusal by one
// settles those before it with that refusal, so they give back what they took.
func runStages[T any](ctx context.Context, stages []stage.Stage, call func(context.Context) (T, error)) (v T, err error) {
	if err = ctx.Err(); err != nil {
		return v, err
	}
	var tickets [maxStages]stage.Ticket
	taken, completed := 0, false
	defer func() { settle(stages[:taken], &tickets, ctx, clock.Now(), err, completed) }()
	inner, now := ctx, clock.Now()
	for _, s := range stages {
		if tickets[taken], err = s.Admit(inner, now); err != nil {
			completed = true
			return v, err
		}
		t := &tickets[taken]
		taken++
		now = max(now, t.At)
		if t.Probe {
			inner = stage.WithProbe(inner)
		}
	}
	v, err = call(inner)
	completed = true
	return v, err
}

// settle tells every stage how the call ended, the innermost first. A panic in one
// (its classifier is foreign code) keeps none of the others from being told.
func settle(stages []stage.Stage, tickets *[maxStages]stage.Ticket, ctx context.Context, now int64, err error, completed bool) {
	n := len(stages)
	defer func() {
		if n > 0 {
			settle(stages[:n], tickets, ctx, now, err, completed)
		}
	}()
	for n > 0 {
		n--
		stages[n].Settle(tickets[n], ctx, now, err, completed)
	}
}
