package sluice

import (
	"context"
	"errors"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Call runs call inside g and returns its result: Do with a value. A refusal
// returns g's error and the zero T, or what an earlier attempt returned if g tries
// more than once. A nil g lets everything pass.
//
// The ctx given to call may end when call has returned, as that of a timeout does: what
// belongs to it, such as the body of an HTTP response, must be read within call. And
// what no error tells, no guard knows: a response of status 500 is a success unless
// call returns an error for it. For an http.Client, httpguard.NewTransport minds both.
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
	defer func() {
		if !completed { // call panicked, or its goroutine is ending
			s.Settle(t, ctx, clock.Now(), nil, false)
		}
	}()
	inner := ctx
	if t.Probe() {
		inner = stage.WithProbe(ctx)
	}
	v, err = call(inner)
	completed = true
	s.Settle(t, ctx, clock.Now(), err, true)
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
	taken := 0
	defer func() {
		if taken > 0 { // call or a stage panicked, or the goroutine is ending
			cutOff(stages[:taken], &tickets, ctx)
		}
	}()
	inner, now := ctx, clock.Now()
	var told error // what the stages are told
	for taken < len(stages) {
		var t stage.Ticket
		if t, err = stages[taken].Admit(inner, now); err != nil {
			told = refusal(err)
			break
		}
		tickets[taken] = t
		taken++
		now = max(now, t.At)
		if t.Probe() {
			inner = stage.WithProbe(inner)
		}
	}
	if err == nil {
		v, err = call(inner)
		told, now = err, clock.Now()
	}
	for taken > 0 {
		taken--
		stages[taken].Settle(tickets[taken], ctx, now, told, true)
	}
	return v, err
}

// cutOff tells the stages around a panic or the end of the goroutine, be it in the
// call or in a stage further in, the innermost first. A panic in one (its
// classifier is foreign code) keeps none of the others from being told.
func cutOff(stages []stage.Stage, tickets *[maxStages]stage.Ticket, ctx context.Context) {
	last := len(stages) - 1
	if last > 0 {
		defer cutOff(stages[:last], tickets, ctx)
	}
	stages[last].Settle(tickets[last], ctx, clock.Now(), nil, false)
}

// refusal is what the stages further out are told of an error that one gave instead
// of admitting. It may be the ctx's own, when the ctx ended while that one waited:
// to them it is a refusal all the same, for no call was made.
func refusal(err error) error {
	if errors.Is(err, ErrRejected) {
		return err
	}
	return notMade{err}
}

type notMade struct{ error }

func (n notMade) Unwrap() error      { return n.error }
func (notMade) Is(target error) bool { return target == ErrRejected }
