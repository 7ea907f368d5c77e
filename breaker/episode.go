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
	ramped     bool  // in Closed: it began with a ramp
	level      int32 // how often the open period has been multiplied; in Closed, in the last Open
	tripped    *Rule // the rule that tripped last, nil if none: its open time applies until the breaker closes
	generation uint64
	began      int64
	since      int64      // began by the wall clock as it was then, in Unix nanoseconds
	cause      *Cause     // never nil
	refusal    *OpenError // what calls that are not admitted get; nil if all are
	// steady is how long the last open period was without jitter, and so in how long
	// a closed breaker forgets one level; 0 if there was none.
	steady time.Duration

	closed closed // in Closed
	open   *open  // in Open
	trial  *trial // in HalfOpen
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
	ep    *episode
	probe *probe // of a half-open probe, which has a seat of its own
}

// move ends the episode from, which is current, and begins next. It is the only
// writer of Breaker.cur. The caller holds b.mu, has made next of the plan in force,
// and calls deliver when it has let go.
func (b *Breaker) move(ctx context.Context, from, next *episode) {
	next.generation = from.generation
	if from.state != next.state {
		next.generation++
	}
	b.cur.Store(next)
	b.moved(from, next)
	if next.state == Open {
		b.member.Needed(b)
	}
	if from.state == Closed {
		from.closed.windows.Load().retire()
	}
	if from.state != next.state && b.events != nil {
		e := Event{Name: b.name, From: from.state, To: next.state, Generation: next.generation, Cause: *next.cause, Time: time.Unix(0, next.since), Ctx: ctx}
		if next.open != nil {
			e.OpenFor = time.Duration(next.open.until.Load() - next.began)
		}
		b.events.Push(e)
	}
}

// newClosed begins a stay in Closed. After a recovery, from is the HalfOpen
// episode whose backoff is remembered; nil starts afresh.
func (b *Breaker) newClosed(p *plan, now int64, cause Cause, from *episode) *episode {
	e := b.newEpisode(Closed, now, cause)
	e.closed.windows.Store(b.newWindows(p.config, nil))
	if p.config.InFlightSlow {
		e.closed.flight.Store(newFlight(p, e))
	}
	if from != nil {
		e.level, e.steady = from.level, from.steady
		if p.ramp > 0 {
			e.ramped = true
			e.closed.recovering.Store(true)
			e.refuseFor(refusedRecovering)
		}
	}
	return e
}

// newOpen begins a stay in Open of the period that the open time of the rule that
// tripped, if one did, and the level give.
func (b *Breaker) newOpen(p *plan, now int64, cause Cause, tripped *Rule, level int32) *episode {
	base := p.openFor(tripped)
	level = min(level, p.topLevel(base))
	period, stretch := p.period(base, level), 1+p.config.Jitter*(2*rand.Float64()-1)
	e := b.newOpenUntil(now, cause, stretched(now, period, stretch))
	e.tripped, e.level, e.steady = tripped, level, period
	e.open.stretch = stretch
	return e
}

// newOpenFor begins a stay in Open after e for a period that was asked for: without
// backoff and jitter, and the level stays as it is.
func (b *Breaker) newOpenFor(p *plan, e *episode, now int64, d time.Duration) *episode {
	next := b.newOpenUntil(now, Cause{Reason: TripRequested}, clock.After(now, d))
	next.open.fixed = true
	next.level, next.steady = e.levelKept(p, now), d
	return next
}

func (b *Breaker) newOpenUntil(now int64, cause Cause, until int64) *episode {
	e := b.newEpisode(Open, now, cause)
	e.open = &open{stretch: 1}
	e.open.until.Store(until)
	e.refuseFor(refusedOpen)
	e.refusal.until = &e.open.until
	return e
}

// newHalfOpen begins the first stage of probes after from, an episode in Open.
func (b *Breaker) newHalfOpen(p *plan, now int64, from *episode) *episode {
	e := b.newEpisode(HalfOpen, now, Cause{Reason: DeadlinePassed})
	e.tripped, e.level, e.steady = from.tripped, from.level, from.steady
	e.trial = newTrial(p)
	e.refuseFor(refusedHalfOpen)
	return e
}

func (b *Breaker) newEpisode(s State, now int64, cause Cause) *episode {
	e := &episode{b: b, state: s, began: now, since: clock.Wall(now).UnixNano(), cause: &noCause}
	e.seat.ep = e
	if cause.Reason != 0 {
		own := cause
		e.cause = &own
	}
	return e
}

// noCause is that of a new breaker. It is never changed.
var noCause Cause

// refuseFor makes the refusal that e gives.
func (e *episode) refuseFor(r reason) {
	e.refusal = &OpenError{name: e.b.name, reason: r, cause: *e.cause}
	e.b.countRefusals()
}

// stretched is the deadline of a period that begins at now.
func stretched(now int64, period time.Duration, stretch float64) int64 {
	if stretch == 1 {
		return clock.After(now, period)
	}
	return clock.After(now, time.Duration(min(float64(period)*stretch, float64(1<<62))))
}
