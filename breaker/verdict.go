package breaker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicego/sluice"
)

// verdict is what the end of one call means to the breaker.
type verdict struct {
	outcome sluice.Outcome
	// gaveUp: the caller went away, so there is no verdict, but if the call was slow
	// it still counts as that.
	gaveUp bool
	// unspent: the call was refused further in or not made at all, so not even its
	// duration means anything.
	unspent bool
	// unfinished: the call panicked or its goroutine ended. A probe that did proves
	// nothing to any rule.
	unfinished bool
	// wait is what a throttled call asks for, negative if it does not say.
	wait    time.Duration
	tripFor time.Duration
}

// done settles the call in seat s by its error.
func (s *seat) done(ctx context.Context, start, now int64, err error) {
	if err == nil && s.probe == nil {
		s.succeed(ctx, start, now)
		return
	}
	if err == nil {
		s.settle(ctx, start, now, verdict{outcome: sluice.Success})
		return
	}
	s.settle(ctx, start, now, s.judge(ctx, start, now, err))
}

// abandon settles a call that did not complete.
func (s *seat) abandon(ctx context.Context, start, now int64) {
	v := verdict{outcome: sluice.Failure, unfinished: true}
	if ctx.Err() != nil {
		v = verdict{outcome: sluice.Ignored, gaveUp: true}
	}
	s.settle(ctx, start, now, v)
}

// judge finds out what a non-nil err means: as the classifier says, or the list of
// successes, or sluice.Classify. A local refusal is shown to neither of the first
// two. If the classifier panics, the call is settled as a failure here, and the
// panic goes on.
func (s *seat) judge(ctx context.Context, start, now int64, err error) verdict {
	h := s.ep.b.hooks
	var said Verdict
	o := sluice.Outcome(0)
	if (h.classify != nil || len(h.successes) > 0) && !errors.Is(err, sluice.ErrRejected) {
		if h.classify != nil {
			said = s.ask(ctx, start, now, err)
			o = said.Outcome
		}
		if o == 0 && slices.ContainsFunc(h.successes, func(success error) bool { return errors.Is(err, success) }) {
			o = sluice.Success
		}
	}
	if o == 0 {
		o = s.ep.b.classify(ctx, elapsed(start, now), err)
	}
	v := verdict{outcome: o, tripFor: said.TripFor}
	switch o {
	case sluice.Ignored:
		v.unspent = errors.Is(err, sluice.ErrRejected)
		v.gaveUp = !v.unspent && ctx.Err() != nil
	case sluice.Throttled:
		v.wait = -1
		if d, ok := sluice.RetryAfter(err); ok {
			v.wait = max(d, 0)
		}
	}
	return v
}

// ask calls the classifier.
func (s *seat) ask(ctx context.Context, start, now int64, err error) Verdict {
	answered := false
	defer func() {
		if !answered {
			s.settle(ctx, start, now, verdict{outcome: sluice.Failure, unfinished: true})
		}
	}()
	said := s.ep.b.hooks.classify(ctx, err)
	answered = true
	return said
}

// classify is what an error means by default.
func (b *Breaker) classify(ctx context.Context, took int64, err error) sluice.Outcome {
	if budget := b.plan.Load().minBudget; took >= 0 && took < budget && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		ctx = hurried{ctx}
	}
	return sluice.Classify(ctx, err)
}

// hurried is the ctx of a caller whose deadline left the call too little time to
// prove anything: to be judged as if the caller had gone away.
type hurried struct{ context.Context }

func (hurried) Err() error { return context.Canceled }

// elapsed is how long a call took, -1 if that was not measured.
func elapsed(start, now int64) int64 {
	if start == 0 {
		return -1
	}
	return now - start
}
