package breaker

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/slidingwindow"
)

// trial is the book of the probes of an episode in HalfOpen: which are out, how
// those of the current stage ended. Breaker.mu guards it, except for busyUntil.
type trial struct {
	// busyUntil is the time before which no probe can be given, so that those who
	// ask need no lock. Written by reckon, under Breaker.mu.
	busyUntil atomic.Int64

	stage, size int
	good, bad   int
	out         []*probe // in the order in which they were given
	notBefore   int64    // no probe goes before, because the last one was throttled or the budget said no
}

// probe is a seat in a trial. Breaker.mu guards what can change.
type probe struct {
	seat
	due   int64 // when the lease ends
	out   bool  // it counts in its trial
	leave bool  // the budget has given leave for it, by the name of fence
	fence uint64
}

// budgetPause is how long a breaker waits before it asks a budget again that has
// said no.
const budgetPause = time.Millisecond

func newTrial(p *plan) *trial { return &trial{size: p.config.Probes[0]} }

// enterTrial gives a call the seat of a probe, or none. again says that the call
// has to ask anew.
func (b *Breaker) enterTrial(ctx context.Context, e *episode, now int64) (s *seat, again bool) {
	t := e.trial
	if now < t.busyUntil.Load() {
		return nil, false
	}
	b.mu.Lock()
	if b.cur.Load() != e {
		b.mu.Unlock()
		return nil, true
	}
	p := b.plan.Load()
	if lost := t.writeOff(now); len(lost) > 0 {
		b.history.Load().lost.Add(int64(len(lost)))
		b.decide(ctx, e, p, now, ProbeLost)
		b.mu.Unlock()
		defer b.deliver() // also if the budget panics
		for _, l := range lost {
			b.settleBudget(l, sluice.Failure)
		}
		return nil, true
	}
	given := t.give(e, now, p.lease)
	b.mu.Unlock()
	if given == nil {
		return nil, false
	}
	if b.hooks.budget != nil && !b.takeBudget(given, p, now) {
		return nil, b.cur.Load() != e
	}
	return &given.seat, false
}

// settleProbe counts the end of a probe.
func (b *Breaker) settleProbe(ctx context.Context, s *probe, now, took int64, v verdict) {
	e := s.ep
	b.mu.Lock()
	p := b.plan.Load()
	slow := p.slowLimit > 0 && took > p.slowLimit && v.manner != unmade
	o := v.outcome
	switch {
	case v.manner == cutOff, slow && (o != sluice.Ignored || v.manner == abandoned):
		o = sluice.Failure
	case o == sluice.Failure && !p.errorRule:
		o = sluice.Success // good for every rule there is
	}
	stale := b.cur.Load() != e || !s.out
	if !stale {
		e.trial.end(s, o)
		if o == sluice.Throttled {
			e.trial.notBefore = max(e.trial.notBefore, clock.After(now, b.throttledFor(e, p, v.retryAfter())))
		}
		if d := v.tripFor(); d > 0 {
			b.move(ctx, e, b.newOpenFor(p, e, now, d))
		} else {
			b.decide(ctx, e, p, now, ProbeFailed)
		}
	}
	b.mu.Unlock()
	defer b.deliver() // also if the budget panics
	if stale {
		b.stale.Add(1)
		o = sluice.Ignored // for the budget: this probe has decided nothing
	} else {
		b.tallyProbe(v, slow)
	}
	b.settleBudget(s, o)
}

// tallyProbe counts the end of a probe in the totals, since no window does.
func (b *Breaker) tallyProbe(v verdict, slow bool) {
	what, counts := b.count(v)
	if slow {
		what |= slidingwindow.Slow
	}
	if counts {
		b.totals.Record(what)
	}
}

// throttledFor is how long a throttled probe keeps the next one waiting: as long
// as the dependency asks for, within the bounds of the backoff, or one open
// period.
func (b *Breaker) throttledFor(e *episode, p *plan, asked time.Duration) time.Duration {
	base := p.openFor(e.tripped)
	if asked < 0 {
		return p.period(base, e.level)
	}
	return min(asked, p.backoffMax(base))
}

// decide goes on from a stage whose verdict is certain. The caller holds b.mu, and
// e is current.
func (b *Breaker) decide(ctx context.Context, e *episode, p *plan, now int64, reason CauseReason) {
	t := e.trial
	cause := Cause{Reason: reason, Bad: int64(t.bad), Total: int64(t.size)}
	switch {
	case int64(t.bad)*million > ppm(p.config.ProbeTolerance)*int64(t.size):
		b.move(ctx, e, b.newOpen(p, now, cause, e.tripped, e.level+1))
	case t.good+t.bad < t.size:
		t.reckon()
	case t.stage+1 < len(p.config.Probes):
		t.stage++
		t.size, t.good, t.bad = p.config.Probes[t.stage], 0, 0
		t.reckon()
	default:
		cause.Reason = ProbesPassed
		b.move(ctx, e, b.newClosed(p, now, cause, e))
	}
}

// give returns the seat for one more probe, nil if none may go now.
func (t *trial) give(e *episode, now int64, lease time.Duration) *probe {
	if t.good+t.bad+len(t.out) >= t.size || now < t.notBefore {
		t.reckon()
		return nil
	}
	s := &probe{seat: seat{ep: e}, due: clock.After(now, lease), out: true}
	s.seat.probe = s
	t.out = append(t.out, s)
	t.reckon()
	return s
}

// end takes s back, and counts it unless it was ignored or throttled.
func (t *trial) end(s *probe, o sluice.Outcome) {
	s.out = false
	t.out = slices.DeleteFunc(t.out, func(have *probe) bool { return have == s })
	switch o {
	case sluice.Success:
		t.good++
	case sluice.Failure:
		t.bad++
	}
}

// writeOff ends the probes whose lease is over as failed, and returns them.
func (t *trial) writeOff(now int64) (lost []*probe) {
	for _, s := range slices.Clone(t.out) {
		if now >= s.due {
			t.end(s, sluice.Failure)
			lost = append(lost, s)
		}
	}
	return lost
}

// reckon works out busyUntil after a change: when there will be a place and it may
// be given, or the first lease is over, so that a lost probe is found.
func (t *trial) reckon() {
	until := t.notBefore
	if t.good+t.bad+len(t.out) >= t.size {
		until = math.MaxInt64
	}
	for _, out := range t.out {
		until = min(until, out.due) // in no order: Update changes the lease
	}
	t.busyUntil.Store(until)
}

// takeBudget asks the budget for leave for the probe in s. Without it the seat
// goes back, also if the budget panics.
func (b *Breaker) takeBudget(s *probe, p *plan, now int64) (ok bool) {
	var fence uint64
	defer func() {
		b.mu.Lock()
		// The answer took longer than the lease, or than the stay.
		lost := !s.out || b.cur.Load() != s.ep
		switch {
		case ok && !lost:
			s.leave, s.fence = true, fence
		case !lost:
			t := s.ep.trial
			t.end(s, sluice.Ignored)
			t.notBefore = max(t.notBefore, clock.After(now, budgetPause))
			t.reckon()
		}
		b.mu.Unlock()
		if ok && lost {
			ok = false
			b.hooks.budget.Settle(b.name, fence, sluice.Ignored)
		}
	}()
	fence, ok = b.hooks.budget.Take(b.name, p.lease)
	return ok
}

// settleBudget tells the budget how a probe ended for which it has given leave.
func (b *Breaker) settleBudget(s *probe, o sluice.Outcome) {
	if s.leave {
		b.hooks.budget.Settle(b.name, s.fence, o)
	}
}
