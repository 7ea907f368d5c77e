package breaker

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// episode is one stay in one state, with all that belongs to it. What is not
// atomic is written before the episode is published and never again; the trial is
// guarded by Breaker.mu.
type episode struct {
	seat // what the calls admitted in Closed hold

	b          *Breaker
	state      State
	generation uint64
	began      int64
	since      time.Time // began, by the wall clock as it was then
	cause      Cause
	refusal    OpenError // what this episode answers to calls that it does not admit

	// rule and kind name the rule that tripped last, -1 if none did: its open time
	// applies until the breaker closes.
	rule int
	kind Kind
	// level is how often the open period has been multiplied. In Closed it is that
	// of the last Open, and steady is how long that one lasted: the time in which
	// one level is forgotten. steady is 0 if there was none.
	level  int
	steady time.Duration

	closed *closed // in Closed
	open   *open   // in Open
	trial  *trial  // in HalfOpen
}

// open is the deadline of an episode in Open.
type open struct {
	// until is when the first probe may go. Written by Update, which only brings
	// it forward.
	until atomic.Int64
	// stretch is this episode's own jitter, around 1. fixed says that the period
	// was asked for, and no Update changes it.
	stretch float64
	fixed   bool
}

// seat is the place of a call in an episode.
type seat struct {
	ep *episode
	// The rest is for probes, guarded by Breaker.mu. due is when the lease ends;
	// fence is the budget's leave, 0 if there is no budget. out says that the seat
	// counts in its trial.
	due   int64
	fence uint64
	out   bool
}

// isProbe reports whether a call in this seat is a half-open probe.
func (s *seat) isProbe() bool { return s.ep.state == HalfOpen }

// move ends the episode from and begins next, unless from has ended already: then
// it changes nothing and returns false. It is the only writer of Breaker.cur. The
// caller holds b.mu, and calls deliver when it has let go.
func (b *Breaker) move(ctx context.Context, from, next *episode) bool {
	if b.cur.Load() != from {
		return false
	}
	next.generation = from.generation
	if from.state != next.state {
		next.generation++
	}
	b.cur.Store(next)
	b.tally.moved(from, next)
	if next.state == Open {
		b.member.needed(b)
	}
	if from.closed != nil {
		from.closed.windows.Load().retire()
	}
	if from.state != next.state && b.hooks.listening() {
		e := Event{Name: b.name, From: from.state, To: next.state, Generation: next.generation, Cause: next.cause, Time: next.since, Ctx: ctx}
		if next.open != nil {
			e.OpenFor = time.Duration(next.open.until.Load() - next.began)
		}
		b.events.Push(e)
	}
	return true
}

// newClosed begins a stay in Closed. After a recovery, from is the HalfOpen
// episode whose backoff is remembered; nil starts afresh.
func (b *Breaker) newClosed(p *plan, now int64, cause Cause, from *episode) *episode {
	e := b.newEpisode(Closed, now, cause, ReasonRecovering)
	e.closed = &closed{}
	ws := b.newWindows(p.windows, nil)
	e.closed.windows.Store(&ws)
	if p.config.InFlightSlow {
		e.closed.flight.Store(newFlight(p, e))
	}
	e.rule = -1
	if from != nil {
		e.level, e.steady = from.level, from.steady
		e.closed.ramped = p.ramp > 0
		e.closed.recovering.Store(p.ramp > 0)
	}
	return e
}

// newOpen begins a stay in Open of the period that rule's open time and level
// give.
func (b *Breaker) newOpen(p *plan, now int64, cause Cause, rule int, kind Kind, level int) *episode {
	base := p.openFor(rule, kind)
	level = min(level, p.topLevel(base))
	stretch := 1 + p.config.Jitter*(2*rand.Float64()-1)
	e := b.newOpenUntil(now, cause, stretched(now, p.period(base, level), stretch))
	e.rule, e.kind, e.level, e.steady = rule, kind, level, p.period(base, level)
	e.open.stretch = stretch
	return e
}

// newOpenUntil begins a stay in Open with a deadline that was asked for.
func (b *Breaker) newOpenUntil(now int64, cause Cause, until int64) *episode {
	e := b.newEpisode(Open, now, cause, ReasonOpen)
	e.open = &open{stretch: 1}
	e.open.until.Store(until)
	e.refusal.until = &e.open.until
	e.rule = -1
	b.countRefusals()
	return e
}

// newHalfOpen begins the first stage of probes after from, an episode in Open.
func (b *Breaker) newHalfOpen(p *plan, now int64, from *episode) *episode {
	e := b.newEpisode(HalfOpen, now, Cause{Reason: DeadlinePassed}, ReasonHalfOpen)
	e.rule, e.kind, e.level, e.steady = from.rule, from.kind, from.level, from.steady
	e.trial = newTrial(p)
	return e
}

func (b *Breaker) newEpisode(s State, now int64, cause Cause, reason string) *episode {
	e := &episode{b: b, state: s, began: now, since: clock.Wall(now), cause: cause}
	e.seat.ep = e
	e.refusal = OpenError{name: b.name, reason: reason, cause: cause}
	return e
}

// stretched is the deadline of a period that begins at now.
func stretched(now int64, period time.Duration, stretch float64) int64 {
	return clock.After(now, time.Duration(min(float64(period)*stretch, float64(1<<62))))
}
