package ratelimit

import (
	"context"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Wait takes a token, and waits for it if need be: see WaitN.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n tokens and returns nil when they are there. It waits only if it will
// get them: if that is not before ctx's deadline, or within MaxWait, or if MaxWaiters
// wait already, it returns at once with a *LimitError and takes nothing. One that
// says so because of the deadline matches context.DeadlineExceeded.
//
// Callers go in the order in which they came, whatever their n: while one waits,
// nobody passes him. If ctx ends while he waits, those behind him move up, and ctx's
// own error is returned; so it is if ctx has ended before.
func (l *Limiter) WaitN(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil || l == nil {
		return err
	}
	now := clock.Now()
	d := l.take(0, n, now)
	if d.OK() || n <= 0 || d.Never() {
		l.tally.count(d)
		return d.Err()
	}
	_, err := l.wait(ctx, n, now)
	return err
}

// wait waits for n tokens, which are not there at now, and returns the decision that
// took them.
func (l *Limiter) wait(ctx context.Context, n, now int64) (Decision, error) {
	latest, why := clock.After(now, l.cur.Load().config.longest()), ReasonMaxWait
	if deadline, ok := ctx.Deadline(); ok {
		if at := clock.At(deadline) - 1; at < latest { // a token at the deadline is of no use
			latest, why = at, ReasonDeadline
		}
	}
	t := &turn{n: n, wake: make(chan struct{}, 1)}
	d, full := l.enqueue(t, latest, now)
	if full {
		why = ReasonMaxWaiters
	}
	if !d.OK() {
		return d, l.refuse(d, why)
	}
	if d.by.limit.IsUnlimited() { // since an Update, and t has not been queued
		l.tally.count(d)
		return d, nil
	}
	if err := l.await(ctx, t); err != nil {
		l.cancel(t)
		l.tally.countGone()
		return d, err
	}
	d = l.leave(t)
	l.tally.count(d)
	return d, nil
}

// refuse counts and returns the refusal d, for a reason of its own.
func (l *Limiter) refuse(d Decision, reason string) error {
	if d.Never() {
		reason = d.reason()
	}
	l.tally.refuse(reason)
	return d.refusal(reason, nil)
}

// await waits until it is t's turn, or returns ctx's error. Only the first who waits
// looks at the clock; when he leaves he wakes the next.
func (l *Limiter) await(ctx context.Context, t *turn) error {
	for {
		at, first := l.turnOf(t)
		var ring <-chan time.Time
		if first {
			wait := at - clock.Now()
			if wait <= 0 {
				return ctx.Err()
			}
			timer := time.NewTimer(time.Duration(wait))
			defer timer.Stop()
			ring = timer.C
		}
		select {
		case <-ring:
		case <-t.wake:
		case <-ctx.Done():
			return stage.EndOf(ctx)
		}
	}
}

// over returns ctx's error if it has ended.
func over(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return stage.EndOf(ctx)
	default:
		return ctx.Err()
	}
}
