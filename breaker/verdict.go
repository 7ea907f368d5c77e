package breaker

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicego/sluice"
)

// verdict is what the end of one call means to the breaker. It is small, so that it
// is passed on in registers.
type verdict struct {
	outcome sluice.Outcome
	manner  manner
	wish    *wish // nil for nearly all calls
}

// manner is how a call ended; zero is that it returned.
type manner uint8

const (
	// abandoned: the caller went away, so there is no verdict, but if the call was slow
	// it still counts as that.
	abandoned manner = iota + 1
	// unmade: the call was refused further in or not made at all, so not even its
	// duration means anything.
	unmade
	// cutOff: the call panicked or its goroutine ended. A probe that did proves
	// nothing to any rule.
	cutOff
)

// wish is what a call asks for besides.
type wish struct {
	tripFor    time.Duration // open for so long, if positive
	retryAfter time.Duration // a throttled call's, negative if it has none
}

// tripFor is how long the breaker shall open, 0 if that is not asked for.
func (v verdict) tripFor() time.Duration {
	if v.wish == nil {
		return 0
	}
	return max(0, v.wish.tripFor)
}

// retryAfter is how long a throttled call asks to wait, negative if it does not say.
func (v verdict) retryAfter() time.Duration {
	if v.wish == nil {
		return -1
	}
	return v.wish.retryAfter
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
	s.settle(ctx, start, now, s.judged(ctx, start, now, err))
}

// abandon settles a call that did not complete.
func (s *seat) abandon(ctx context.Context, start, now int64) {
	v := verdict{outcome: sluice.Failure, manner: cutOff}
	if ctx.Err() != nil {
		v = verdict{outcome: sluice.Ignored, manner: abandoned}
	}
	s.settle(ctx, start, now, v)
}

// judged is verdict, which runs foreign code: the classifier, and the methods of
// err and ctx. If that panics, the call is settled as a failure here, and the panic
// goes on.
func (s *seat) judged(ctx context.Context, start, now int64, err error) verdict {
	done := false
	defer func() {
		if !done {
			s.settle(ctx, start, now, verdict{outcome: sluice.Failure, manner: cutOff})
		}
	}()
	v := s.verdict(ctx, start, now, err)
	done = true
	return v
}

// verdict finds out what a non-nil err means: as the classifier says, or the list of
// successes, or sluice.Classify. A local refusal is shown to neither of the first
// two.
func (s *seat) verdict(ctx context.Context, start, now int64, err error) verdict {
	h := s.ep.b.hooks
	var said Verdict
	o := sluice.Outcome(0)
	if (h.classify != nil || len(h.successes) > 0) && !errors.Is(err, sluice.ErrRejected) {
		if h.classify != nil {
			said = h.classify(ctx, err)
			o = known(said.Outcome)
		}
		if o == 0 && slices.ContainsFunc(h.successes, func(success error) bool { return errors.Is(err, success) }) {
			o = sluice.Success
		}
	}
	if o == 0 {
		o = s.ep.b.classify(ctx, elapsed(start, now), err)
	}
	v := verdict{outcome: o}
	if said.TripFor > 0 {
		v.wish = &wish{tripFor: said.TripFor, retryAfter: -1}
	}
	switch o {
	case sluice.Ignored:
		switch {
		case errors.Is(err, sluice.ErrRejected):
			v.manner = unmade
		case ctx.Err() != nil:
			v.manner = abandoned
		}
	case sluice.Throttled:
		if d, ok := sluice.RetryAfter(err); ok {
			v.wish = &wish{tripFor: said.TripFor, retryAfter: max(d, 0)}
		}
	}
	return v
}

// known returns o, or Ignored for a number that is no Outcome.
func known(o sluice.Outcome) sluice.Outcome {
	if o > sluice.Throttled {
		return sluice.Ignored
	}
	return o
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
