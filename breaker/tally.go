package breaker

import (
	"context"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/stripe"
)

// tally counts what the windows do not. Each is raised by whoever settles the
// call, and never lowered.
type tally struct {
	ignored   atomic.Int64 // settled as Ignored, or cancelled
	throttled atomic.Int64 // settled as Throttled; they are in the windows too
	stale     atomic.Int64 // settled after their episode had ended
}

// history counts what happens only to a breaker that has refused, or may. A healthy
// one does without its memory.
type history struct {
	lost     atomic.Int64  // probes whose lease ran out
	shadowed atomic.Int64  // admitted by Shadow alone
	panics   atomic.Uint64 // of listeners, which were caught
	nextLog  atomic.Int64  // when the next refused call may be logged

	// Changes of state, counted by moved under Breaker.mu, by the state moved to.
	toOpen, toHalfOpen, toClosed atomic.Int64
	openNanos                    atomic.Int64 // spent in Open in stays that have ended

	// Refusals are spread over cache lines, since in an outage refusing is what all
	// callers do. A line that nobody writes keeps them apart from what is above.
	_       [stripe.Line]byte
	refused [stripe.Cells]refusals
}

// refusals has one counter for each reason; one cache line.
type refusals struct {
	by [reasons]atomic.Int64
	_  [stripe.Line - reasons*8]byte
}

// openTime is how much of its stay up to now e, in Open, was really open: it ends at
// the deadline, whenever the next call comes.
func (e *episode) openTime(now int64) int64 {
	return max(0, min(now, e.open.until.Load())-e.began)
}

// countRefusals makes the history, if there is none. Who makes it possible for the
// breaker to refuse calls it before.
func (b *Breaker) countRefusals() {
	if b.history.Load() == nil {
		b.history.CompareAndSwap(nil, new(history))
	}
}

// past returns the history, an empty one if there is none.
func (b *Breaker) past() *history {
	if h := b.history.Load(); h != nil {
		return h
	}
	return new(history)
}

// moved counts a change of state. The caller holds Breaker.mu.
func (b *Breaker) moved(from, to *episode) {
	if from.state == to.state && from.state == Closed {
		return
	}
	h := b.history.Load()
	if from.state == Open {
		h.openNanos.Add(from.openTime(to.began))
	}
	if from.state == to.state {
		return
	}
	switch to.state {
	case Open:
		h.toOpen.Add(1)
	case HalfOpen:
		h.toHalfOpen.Add(1)
	case Closed:
		h.toClosed.Add(1)
	}
}

// refuse counts a refusal and returns it.
func (b *Breaker) refuse(ctx context.Context, refusal *OpenError, now int64) error {
	b.history.Load().refused[stripe.Index()].by[refusal.reason].Add(1)
	if b.hooks.logger != nil {
		b.logRefused(ctx, refusal, now)
	}
	return refusal
}

// refusedSoFar adds the stripes up.
func (h *history) refusedSoFar() RefusedSnapshot {
	var n [reasons]int64
	for i := range h.refused {
		for r := range n {
			n[r] += h.refused[i].by[r].Load()
		}
	}
	return RefusedSnapshot{Open: n[refusedOpen], HalfOpen: n[refusedHalfOpen], Recovering: n[refusedRecovering], Forced: n[refusedForced]}
}
