package ratelimit

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// A line is where callers wait for a limiter that cannot promise them a token for
// later, as a bucket can. They stand one behind the other; only the first asks, at
// the times that he is told, and what all of them want is left to them by those who
// do not wait.
type line struct {
	mu    sync.Mutex // guards spots
	spots []*spot
	// waiting counts those in line, and ahead the tokens that they want; both are
	// written under mu.
	waiting, ahead atomic.Int64
}

// A spot in a line is a caller's. He is woken when he has become the first, or is and
// may be let in sooner than he was told.
type spot struct {
	n    int64
	wake chan struct{} // holds one call
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
	latest, why := p.latest(ctx, now)
	if clock.After(now, d.RetryAfter()) > latest {
		return d, why, nil
	}
	me := &spot{d.n, make(chan struct{}, 1)}
	if !l.enter(me, p.maxWaiters) {
		return d, ReasonMaxWaiters, nil
	}
	defer l.leave(me)
	if err := sleepUntil(ctx, now, latest, me.wake); err != nil {
		return d, "", err
	}
	for l.first(me) {
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
		if err := sleepUntil(ctx, now, at, me.wake); err != nil {
			return d, "", err
		}
	}
	return d, why, nil // he has not come to the front in time
}

// enter puts p at the end, and wakes him if that is the front. It returns false if so
// many are there already.
func (l *line) enter(p *spot, most int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.spots) >= most {
		return false
	}
	l.spots = append(l.spots, p)
	l.waiting.Add(1)
	l.ahead.Add(p.n)
	if len(l.spots) == 1 {
		l.wakeFirst()
	}
	return true
}

// leave takes p out, and wakes who is in front then.
func (l *line) leave(p *spot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.spots, p)
	l.spots = slices.Delete(l.spots, i, i+1)
	l.waiting.Add(-1)
	l.ahead.Add(-p.n)
	if i == 0 {
		l.wakeFirst()
	}
}

// first reports whether p is in front.
func (l *line) first(p *spot) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spots[0] == p
}

// stir wakes whoever is in front, since something is there that was not before. That
// must be visible already.
func (l *line) stir() {
	if l.waiting.Load() > 0 {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.wakeFirst()
	}
}

// wakeFirst is called with mu held.
func (l *line) wakeFirst() {
	if len(l.spots) > 0 {
		select {
		case l.spots[0].wake <- struct{}{}:
		default: // he has been told, and has not looked yet
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
			return stage.EndOf(ctx)
		}
	}
	return ctx.Err()
}
