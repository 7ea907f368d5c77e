package ratelimit

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// A line is where callers wait for a limiter that cannot promise them a token for
// later, as a bucket can. They stand one behind the other; only the first asks, at
// the times that he is told, and what all of them want is left to them by those who
// do not wait.
type line struct {
	// front has a value in it while somebody is in front. Those behind him wait to put
	// theirs in, and a channel lets them in the order in which they came.
	front chan struct{}
	// wake tells him that he may be let in sooner than he was told. It holds one call.
	wake    chan struct{}
	waiting atomic.Int64 // callers in wait, counted by themselves
	ahead   atomic.Int64 // tokens that they want
}

func (l *line) init() { l.front, l.wake = make(chan struct{}, 1), make(chan struct{}, 1) }

// stir wakes whoever is in front, since something is there that was not before. That
// must be visible already.
func (l *line) stir() {
	if l.waiting.Load() > 0 {
		select {
		case l.wake <- struct{}{}:
		default: // he has been told, and has not looked yet
		}
	}
}

// A patience is how long and in what company callers wait.
type patience struct {
	maxWait    time.Duration // or Auto
	maxWaiters int
}

// wait stands in line for the tokens that were refused by d at now. ask takes n tokens
// for whoever is in front. It returns the decision that took them; or the refusal and
// the reason for it; or, if ctx ends, its error.
func (l *line) wait(ctx context.Context, d Decision, now int64, p patience, ask func(n, now int64) Decision) (_ Decision, reason string, err error) {
	defer l.waiting.Add(-1)
	if l.waiting.Add(1) > int64(p.maxWaiters) {
		return d, ReasonMaxWaiters, nil
	}
	latest, why := p.latest(ctx, now)
	if clock.After(now, d.RetryAfter()) > latest {
		return d, why, nil
	}
	l.ahead.Add(d.n)
	defer l.ahead.Add(-d.n)

	limit := time.NewTimer(time.Duration(latest - now))
	defer limit.Stop()
	select {
	case l.front <- struct{}{}:
		defer func() { <-l.front }()
	case <-limit.C:
		return d, why, nil
	case <-ctx.Done():
		return d, "", ctx.Err()
	}
	for {
		now = clock.Now()
		d = ask(d.n, now)
		switch {
		case d.OK():
			return d, "", nil
		case d.Never(): // since an Update
			return d, d.reason(), nil
		}
		at := clock.After(now, d.RetryAfter())
		if at > latest {
			return d, why, nil
		}
		if err := sleepUntil(ctx, now, at, l.wake); err != nil {
			return d, "", err
		}
	}
}

// latest is until when a caller with ctx waits, and why not longer.
func (p patience) latest(ctx context.Context, now int64) (at int64, why string) {
	at, why = clock.After(now, time.Duration(orElse(int64(p.maxWait), int64(maxFill)))), ReasonMaxWait
	if deadline, ok := ctx.Deadline(); ok {
		if end := clock.At(deadline) - 1; end < at { // a token at the deadline is of no use
			at, why = end, ReasonDeadline
		}
	}
	return at, why
}

// sleepUntil waits from now until at, or until wake, or returns ctx's error.
func sleepUntil(ctx context.Context, now, at int64, wake <-chan struct{}) error {
	if at > now {
		timer := time.NewTimer(time.Duration(at - now))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-wake:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
