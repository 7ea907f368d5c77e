package ratelimit

import (
	"context"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// Wait takes a token, and waits for it if need be: see WaitN.
func (l *Limiter) Wait(ctx context.Context) error { return l.WaitN(ctx, 1) }

// WaitN takes n tokens and returns nil when they are there. It waits only if it will
// get them: if that is not before ctx's deadline, or within MaxWait, or if MaxWaiters
// wait already, it returns at once with a *LimitError and takes nothing. One that
// says so because of the deadline matches context.DeadlineExceeded.
//
// Callers get their tokens in the order in which they came, whatever their n: while
// one waits, nobody passes him. If ctx ends while he waits, his tokens are given
// back, and ctx's own error is returned; so it is if ctx has ended before.
func (l *Limiter) WaitN(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil || l == nil {
		return err
	}
	now := clock.Now()
	d := l.take(0, n, now)
	if d.OK() || d.Never() {
		l.tally.count(d)
		return d.Err()
	}
	_, err := l.wait(ctx, d, now)
	return err
}

// wait waits for the tokens that were refused by d at now, and returns the decision
// that took them.
func (l *Limiter) wait(ctx context.Context, d Decision, now int64) (Decision, error) {
	config := l.cur.Load().config
	if l.waiting.Add(1) > int64(config.MaxWaiters) {
		l.waiting.Add(-1)
		return d, l.refuse(d, ReasonMaxWaiters)
	}
	defer l.waiting.Add(-1)
	latest, why := clock.After(now, config.longest()), ReasonMaxWait
	if deadline, ok := ctx.Deadline(); ok {
		if at := clock.At(deadline) - 1; at < latest { // a token at the deadline is of no use
			latest, why = at, ReasonDeadline
		}
	}
	d, at := l.reserve(d.n, latest, now)
	if !d.OK() {
		return d, l.refuse(d, why)
	}
	if err := sleep(ctx, now, at); err != nil {
		l.giveBack(0, d, 0)
		l.tally.countGone()
		return d, err
	}
	l.tally.count(d)
	return d, nil
}

// refuse counts and returns the refusal d, for a reason of its own.
func (l *Limiter) refuse(d Decision, reason string) error {
	l.tally.refuse(reason)
	return d.refusal(reason, nil)
}

// sleep waits from now until at, or returns ctx's error.
func sleep(ctx context.Context, now, at int64) error {
	if at > now {
		timer := time.NewTimer(time.Duration(at - now))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
