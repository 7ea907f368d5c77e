package sluice

import (
	"context"

	"github.com/sluicego/sluice/internal/stage"
)

// Guard decides whether and how a call is made. Every guard of this module is
// one, and yours can be.
//
// An implementation keeps these promises. It never runs call twice at once, and
// Do returns only when the last call it began has returned, so a caller may read
// what call wrote. It returns call's error as it is, or a refusal of its own,
// which matches ErrRejected. When call's error says that something further in
// refused locally, it gives back what it took and counts nothing. It does not
// keep a panic or a runtime.Goexit from its caller. It is safe for concurrent
// use.
//
// The ctx that call is given derives from the one given to Do.
type Guard interface {
	Do(ctx context.Context, call func(context.Context) error) error
}

// Chain returns a Guard that puts the given ones inside one another, the first
// outermost. Nil entries are skipped; without any left it lets everything pass.
//
// Up to four guards of this module that stand next to one another are run in two
// steps, with one reading of the clock on the way in and one on the way out, and
// allocate nothing. Each four more, and every other Guard, cost a closure.
func Chain(guards ...Guard) Guard {
	var c chain
	for _, g := range guards {
		c.add(g)
	}
	return &c
}

// chain runs its steps from first to last around a call.
type chain struct{ steps []step }

// step is one Guard that needs a closure, or stages that need none.
type step struct {
	guard  Guard
	stages []stage.Stage
}

// Do runs call inside all guards of the chain.
func (c *chain) Do(ctx context.Context, call func(context.Context) error) error {
	return runSteps(ctx, c.steps, call)
}

// add puts g inside what the chain has; another chain is laid flat.
func (c *chain) add(g Guard) {
	switch g := g.(type) {
	case nil:
	case *chain:
		for _, inner := range g.steps {
			if inner.guard != nil {
				c.add(inner.guard)
			}
			for _, s := range inner.stages {
				c.addStage(s)
			}
		}
	case stage.Stage:
		c.addStage(g)
	default:
		c.steps = append(c.steps, step{guard: g})
	}
}

// addStage puts s into the last step if it has stages and a place for one more.
func (c *chain) addStage(s stage.Stage) {
	last := len(c.steps) - 1
	if last < 0 || c.steps[last].guard != nil || len(c.steps[last].stages) == maxStages {
		c.steps = append(c.steps, step{})
		last++
	}
	c.steps[last].stages = append(c.steps[last].stages, s)
}

func runSteps(ctx context.Context, steps []step, call func(context.Context) error) error {
	if len(steps) == 0 || stage.Bypassed(ctx) { // a Guard further out may have marked it
		return call(ctx)
	}
	first, rest := steps[0], steps[1:]
	if len(rest) > 0 {
		last := call
		call = func(ctx context.Context) error { return runSteps(ctx, rest, last) }
	}
	if first.guard != nil {
		return first.guard.Do(ctx, call)
	}
	_, err := runStages(ctx, first.stages, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, call(ctx)
	})
	return err
}
