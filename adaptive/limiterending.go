package adaptive

import (
	"context"
	"errors"

	"github.com/sluicego/sluice"
)

// done settles a call by its error.
func (l *Limiter) done(ctx context.Context, start, now int64, err error) {
	if err == nil {
		l.answered(start, now)
		return
	}
	l.settle(ctx, start, now, l.outcome(ctx, err), err)
}

// answered settles a call that was answered.
func (l *Limiter) answered(start, now int64) {
	w := l.window.Load()
	w.answered(now - start)
	l.leave(w, now)
}

// settle settles a call by its outcome, and by what ended it. err may be nil.
func (l *Limiter) settle(ctx context.Context, start, now int64, o sluice.Outcome, err error) {
	switch {
	case o == sluice.Success:
		l.answered(start, now)
	case o == sluice.Throttled || o == sluice.Failure && (ctx.Err() != nil || isTimeout(err)):
		w := l.window.Load()
		w.drops.Add(1)
		l.dropped.Add(1)
		l.leave(w, now)
	case o == sluice.Failure:
		// A refused connection is no sign of too many calls, and answers in no time.
		l.failed.Add(1)
		l.places.Release(1)
	default:
		l.ignored.Add(1)
		l.places.Release(1)
	}
}

// leave gives a place back, and works the limit out if it is time to.
func (l *Limiter) leave(w *limitWindow, now int64) {
	w.crowd(int64(l.places.InUse()))
	l.places.Release(1)
	if now >= w.next.Load() {
		l.look(w, now)
	}
}

// outcome is what a non-nil err means. The classifier is not shown local refusals.
func (l *Limiter) outcome(ctx context.Context, err error) sluice.Outcome {
	if classify := l.hooks.classify; classify != nil && !errors.Is(err, sluice.ErrRejected) {
		if o := l.classified(classify, ctx, err); o != 0 {
			return o
		}
	}
	return sluice.Classify(ctx, err)
}

// classified asks the user's classifier. If that panics, the call counts as failed, and
// the panic goes on.
func (l *Limiter) classified(classify func(context.Context, error) sluice.Outcome, ctx context.Context, err error) sluice.Outcome {
	done := false
	defer func() {
		if !done {
			l.failed.Add(1)
			l.places.Release(1)
		}
	}()
	o := classify(ctx, err)
	done = true
	return o
}
