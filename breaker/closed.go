package breaker

import (
	"context"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/slidingwindow"
)

// closed is what an episode in Closed counts.
type closed struct {
	// windows are replaced by Update when a shape changes, under Breaker.mu.
	windows atomic.Pointer[window]
	// row is the number of failures with no success between, counted while a rule
	// asks for it. Failures raise it; a success that finds it above 0 sets it to 0.
	row atomic.Int64
	// gated says that a ratio is reached and only its gate is not, so successes must
	// be judged too. Set and cleared by judge.
	gated atomic.Bool
	// recovering says that the ramp is not known to be over. Set before the episode
	// is published, cleared by the first call that finds it over.
	recovering atomic.Bool
	// asked counts the calls that asked for a place in the ramp.
	asked atomic.Int64
	// flight keeps the calls that are out, nil unless overdue ones count. Replaced by
	// Update, under Breaker.mu.
	flight atomic.Pointer[flight]
}

// succeed settles the call in seat s, which is not a probe's, as a success: what
// nearly all calls do, so it is written out.
func (s *seat) succeed(ctx context.Context, start, now int64) {
	e := s.ep
	b := e.b
	if s != &e.seat {
		e.closed.flight.Load().leave(s, start)
	}
	if b.cur.Load() != e {
		b.stale.Add(1)
		return
	}
	c := &e.closed
	if c.row.Load() != 0 {
		c.row.Store(0)
	}
	if bad := c.record(now, elapsed(start, now), 0); bad || c.gated.Load() {
		b.judge(ctx, e, now)
	}
}

// settle counts the end of the call in seat s and does what follows from it.
func (s *seat) settle(ctx context.Context, start, now int64, v verdict) {
	e := s.ep
	b := e.b
	took := elapsed(start, now)
	if s.probe != nil {
		b.settleProbe(ctx, s.probe, now, took, v)
		return
	}
	if v.outcome == sluice.Success && v.wish == nil {
		s.succeed(ctx, start, now)
		return
	}
	if s != &e.seat {
		e.closed.flight.Load().leave(s, start)
	}
	if b.cur.Load() != e {
		b.stale.Add(1)
		return
	}
	c := &e.closed
	bad := false
	switch v.outcome {
	case sluice.Success:
		c.row.Store(0)
	case sluice.Failure:
		if b.plan.Load().rows {
			c.row.Add(1)
		}
	}
	if what, counts := b.count(v); counts {
		bad = c.record(now, took, what)
	}
	if bad {
		b.member.Needed(b) // there is something to lose now
	}
	switch {
	case v.tripFor() > 0:
		b.change(ctx, e, func(p *plan) *episode { return b.newOpenFor(p, e, now, v.tripFor()) })
	case bad || v.outcome != sluice.Ignored && c.gated.Load():
		b.judge(ctx, e, now)
	}
}

// count counts what windows do not, and returns what they do: counts is false for a
// call that leaves no trace there.
func (b *Breaker) count(v verdict) (what slidingwindow.Event, counts bool) {
	switch v.outcome {
	case sluice.Failure:
		return slidingwindow.Failed, true
	case sluice.Throttled:
		b.throttled.Add(1)
	case sluice.Ignored:
		b.ignored.Add(1)
		return slidingwindow.NoVerdict, v.manner == abandoned
	}
	return 0, true
}

// record counts the call in every window, as slow where it took longer than the
// limit there, and reports whether it was bad for one.
func (c *closed) record(now, took int64, what slidingwindow.Event) (bad bool) {
	for w := c.windows.Load(); w != nil; w = w.next {
		event := what
		if w.limit > 0 && took > w.limit {
			event |= slidingwindow.Slow
		}
		if w.counts != nil {
			w.counts.RecordAt(now, event)
		} else {
			w.calls.record(now, event)
		}
		bad = bad || event&(slidingwindow.Failed|slidingwindow.Slow) != 0
	}
	return bad
}

// judge trips the breaker if a rule says so. When several do, the one that opens
// for longest is the cause.
func (b *Breaker) judge(ctx context.Context, e *episode, now int64) {
	tripped, _, gated := b.plan.Load().reached(e, now)
	if tripped == nil && !gated && e.closed.gated.Load() {
		// Whoever sets the flag has counted its call before. So look again after
		// clearing it: either this sees that call, or the flag is set after.
		e.closed.gated.Store(false)
		tripped, _, gated = b.plan.Load().reached(e, now)
	}
	if gated && !e.closed.gated.Swap(true) {
		// A success may have met the gate before it could see the flag.
		tripped, _, _ = b.plan.Load().reached(e, now)
	}
	if tripped == nil {
		return
	}
	b.change(ctx, e, func(p *plan) *episode {
		tripped, cause, _ := p.reached(e, now) // again: an Update may have come in between
		if tripped == nil {
			return nil
		}
		return b.newOpen(p, now, cause, tripped, e.levelAt(p, now, p.openFor(tripped)))
	})
}

// reached returns the rule that has been reached in e, nil if none has, and whether
// a gate alone holds one back.
func (p *plan) reached(e *episode, now int64) (tripped *Rule, cause Cause, gated bool) {
	m := e.measure(now)
	for i := range p.config.Rules {
		r := &p.config.Rules[i]
		bad, total, ok := m.of(p, r)
		switch {
		case !ok:
			continue
		case !r.Kind.isRatio():
			if bad < int64(r.Count) {
				continue
			}
		case total == 0 || bad*million < ppm(r.Ratio)*total || !significant(bad, total, r.Ratio, p.config.Confidence):
			continue
		case total < int64(p.config.gate(*r)):
			gated = true
			continue
		}
		if tripped == nil || p.openFor(r) > p.openFor(tripped) {
			tripped, cause = r, Cause{Reason: RuleTripped, Rule: *r, Bad: bad, Total: total}
		}
	}
	return tripped, cause, gated
}

// measure reads what an episode in Closed has counted, each window once for all
// the rules in a row that look at it.
type measure struct {
	e    *episode
	now  int64
	own  *window
	last *window // of which sums are
	sums slidingwindow.Sums
}

func (e *episode) measure(now int64) measure {
	return measure{e: e, now: now, own: e.closed.windows.Load()}
}

// of returns what r looks at: bad of total calls. ok is false in the moment in
// which Update has changed the rules but not yet the windows.
func (m *measure) of(p *plan, r *Rule) (bad, total int64, ok bool) {
	if r.Kind == ConsecutiveFailures {
		row := m.e.closed.row.Load()
		return row, row, true
	}
	w := m.own
	if r.Over > 0 || r.Kind == SlowCallRatio && (w.mixed || int64(r.SlowerThan) != w.limit) {
		if w = w.find(specFor(&p.config, r)); w == nil {
			return 0, 0, false
		}
	}
	if w != m.last {
		m.last, m.sums = w, w.sum(m.now)
	}
	if r.Kind != SlowCallRatio {
		return m.sums.Failures, m.sums.Total, true
	}
	slow := m.sums.GaveUp + m.e.closed.flight.Load().overdue(m.now, int64(r.SlowerThan), w)
	return m.sums.Slow + slow, m.sums.Total + slow, true
}

// change ends e and begins what next makes of the plan in force, which cannot
// change meanwhile; if e has ended already, or next returns nil, it does nothing.
func (b *Breaker) change(ctx context.Context, e *episode, next func(p *plan) *episode) {
	b.mu.Lock()
	moved := false
	if b.cur.Load() == e {
		if n := next(b.plan.Load()); n != nil {
			b.move(ctx, e, n)
			moved = true
		}
	}
	b.mu.Unlock()
	if moved {
		b.deliver()
	}
}
