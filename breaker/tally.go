package breaker

import (
	"context"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/stripe"
)

// tally counts what the windows do not. Each is raised by whoever settles or
// refuses the call, and never lowered.
type tally struct {
	ignored   atomic.Int64 // settled as Ignored, or cancelled
	throttled atomic.Int64 // settled as Throttled; they are in the windows too
	stale     atomic.Int64 // settled after their episode had ended
	lost      atomic.Int64 // probes whose lease ran out
	shadowed  atomic.Int64 // admitted by Shadow alone
	nextLog   atomic.Int64 // when the next refused call may be logged

	// Changes of state, counted by move under Breaker.mu, by the state moved to.
	toOpen, toHalfOpen, toClosed atomic.Int64
	openNanos                    atomic.Int64 // spent in Open in stays that have ended

	// refused counts refusals, spread over cache lines, since in an outage refusing
	// is what all callers do. It is made by the first stay in which the breaker
	// refuses, under Breaker.mu or before that stay is published, and then stays.
	refused atomic.Pointer[refusals]
}

// refusals begins with a line that nobody writes, so that finding a stripe never
// touches one.
type refusals struct {
	_       [2 * stripe.Line]byte
	stripes [stripe.Cells]refusalCell
}

// refusalCell has one counter for each reason; one cache line.
type refusalCell struct {
	open, halfOpen, recovering, forced atomic.Int64
	_                                  [stripe.Line - 4*8]byte
}

// moved counts a change of state. The caller holds Breaker.mu.
func (t *tally) moved(from, to *episode) {
	if from.state == Open {
		t.openNanos.Add(max(0, to.began-from.began))
	}
	if from.state == to.state {
		return
	}
	switch to.state {
	case Open:
		t.toOpen.Add(1)
	case HalfOpen:
		t.toHalfOpen.Add(1)
	case Closed:
		t.toClosed.Add(1)
	}
}

// countRefusals makes sure that refusals can be counted.
func (b *Breaker) countRefusals() {
	if b.tally.refused.Load() == nil {
		b.tally.refused.CompareAndSwap(nil, new(refusals))
	}
}

// refuse counts a refusal and returns it.
func (b *Breaker) refuse(ctx context.Context, refusal *OpenError, now int64) error {
	cell := &b.tally.refused.Load().stripes[stripe.Index()]
	switch refusal.reason {
	case ReasonOpen:
		cell.open.Add(1)
	case ReasonHalfOpen:
		cell.halfOpen.Add(1)
	case ReasonRecovering:
		cell.recovering.Add(1)
	case ReasonForcedOpen:
		cell.forced.Add(1)
	}
	if b.hooks.logger != nil {
		b.logRefused(ctx, refusal, now)
	}
	return refusal
}

// refusedSoFar adds the stripes up.
func (b *Breaker) refusedSoFar() (r RefusedSnapshot) {
	all := b.tally.refused.Load()
	if all == nil {
		return r
	}
	for i := range all.stripes {
		c := &all.stripes[i]
		r.Open += c.open.Load()
		r.HalfOpen += c.halfOpen.Load()
		r.Recovering += c.recovering.Load()
		r.Forced += c.forced.Load()
	}
	return r
}
