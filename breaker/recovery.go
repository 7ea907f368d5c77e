package breaker

import (
	"context"

	"github.com/sluicego/sluice"
)

// enterClosed gives a call its seat in Closed, or none if the breaker is
// recovering and this call is not in the admitted share. It trips the breaker if
// too many calls are overdue, and gives no seat then either.
func (b *Breaker) enterClosed(ctx context.Context, e *episode, p *plan, now int64) *seat {
	if f := e.closed.flight.Load(); f != nil && f.timeToLook(now) {
		b.judge(ctx, e, now)
		if b.cur.Load() != e {
			return nil
		}
	}
	if e.closed.recovering.Load() && !e.closed.inShare(p, now-e.began) && sluice.PriorityOf(ctx) != sluice.P0 {
		return nil
	}
	if f := e.closed.flight.Load(); f != nil {
		return f.enter(now)
	}
	return &e.seat
}

// inShare paces the ramp: of any number of calls in a row it admits the share of
// the current step, evenly spread and without chance.
func (c *closed) inShare(p *plan, sinceClosed int64) bool {
	if sinceClosed >= p.ramp {
		c.recovering.Store(false)
		return true
	}
	share := p.shareAt(sinceClosed)
	n := c.asked.Add(1)
	return n*share/million > (n-1)*share/million
}
