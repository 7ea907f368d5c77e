package adaptive

import (
	"context"
	"errors"

	"github.com/sluicego/sluice"
)

// done settles a call by its error. Methods of an error and a classifier are foreign code:
// if one of them panics, the call counts as failed, and the panic goes on.
func (l *Limiter) done(ctx context.Context, start, now int64, err error) {
	if err == nil {
		l.answered(start, now)
		return
	}
	looked := false
	defer func() {
		if !looked {
			l.fail()
		}
	}()
	o := l.outcome(ctx, err)
	timeout := o == sluice.Failure && isTimeout(err)
	looked = true
	l.settle(ctx, start, now, o, timeout)
}

// answered settles a call that was answered.
func (l *Limiter) answered(start, now int64) {
	w := l.window.Load()
	w.answered(now - start)
	l.leave(w, now)
}

// settle settles a call by its outcome, and by whether its error is that of a time limit.
func (l *Limiter) settle(ctx context.Context, start, now int64, o sluice.Outcome, timeout bool) {
	switch {
	case o == sluice.Success:
		l.answered(start, now)
	case o == sluice.Throttled || o == sluice.Failure && (timeout || ctx.Err() != nil):
		w := l.window.Load()
		w.drops.Add(1)
		l.dropped.Add(1)
		l.leave(w, now)
	case o == sluice.Failure:
		l.fail()
	default:
		l.ignored.Add(1)
		l.places.Release(1)
	}
}

// fail settles a call from which nothing follows: a refused connection is no sign of too
// many calls, and answers in no time.
func (l *Limiter) fail() {
	l.failed.Add(1)
	l.places.Release(1)
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
		if o := classify(ctx, err); o != 0 {
			return o
		}
	}
	return sluice.Classify(ctx, err)
}
