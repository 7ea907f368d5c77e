package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Pacer lets calls go evenly, one after the other, at least 1 / rate apart; those that
// come too soon wait for their turn, for at most MaxWait. It is a leaky bucket as a
// queue, for what must not get a burst, however long it was idle: a sender of mail, a
// device, somebody else's API.
//
// It promises that any two calls are at least 1 / rate apart, to the nanosecond, unless
// Slack allows some to make up for time that nobody used; that it does not fall behind
// the rate, as times are worked out from its beginning and no rounding adds up; and that
// who cannot go within MaxWait is told so at once, without others seeing him in the
// queue. So no more than MaxWait × rate callers wait, and Snapshot tells how many.
//
// Most callers want Wait or Do, which wait. Allow and Take do not: they are for calls
// that are dropped if it is not their turn. A call of n tokens goes when a call of one
// would, and those after it wait for n times as long.
//
// Taking a slot and giving it back take no lock and allocate nothing. Waiting uses a
// timer. A Pacer starts no goroutine and needs no closing. It is safe for concurrent use
// and must not be copied. A nil *Pacer lets everything pass; the zero Pacer is of no
// use, make one with NewPacer.
//
// A Pacer is no Layer of TakeAll: a slot cannot be given back any more when somebody was
// promised the one behind it. Put it inside what may refuse, by sluice.Chain, since who
// waits and is refused then has waited for nothing.
type Pacer struct {
	// cur is the configuration in force, with its slots. Written by swap, under mu.
	cur     atomic.Pointer[pacePlan]
	mu      sync.Mutex // puts changes of the configuration in order
	desk    desk
	waiting atomic.Int64 // callers in wait, counted by themselves
	full    lastRefusal  // for want of room in the queue
}

// NewPacer returns a pacer of that name, which must not be empty, and that rate. It
// returns every complaint about them and the options at once.
//
// For package variables there is sluice.Must.
func NewPacer(name string, rate Rate, opts ...PacerOption) (*Pacer, error) {
	s := newKindSettings(rate)
	d := DefaultPacerConfig()
	s.MaxWait = d.MaxWait
	for i, o := range opts {
		if s.given(i, o != nil) {
			o.pacer(s)
		}
	}
	c := PacerConfig{s.Rate, s.slack, s.MaxWait}
	if err := s.check(name, "Pacer", c); err != nil {
		return nil, err
	}
	return newPacer(name, c, !s.uncounted, clock.Now()), nil
}

func newPacer(name string, c PacerConfig, counted bool, now int64) *Pacer {
	p := new(Pacer)
	p.desk.init(name, p, counted)
	p.cur.Store(newPacePlan(name, c, now))
	return p
}

// Name returns the name given to NewPacer.
func (p *Pacer) Name() string { return p.front().title() }

// Allow takes a slot if there is one now, and reports whether.
func (p *Pacer) Allow() bool { return p.Take(1).OK() }

// AllowN takes a slot for n tokens if there is one now, and reports whether.
func (p *Pacer) AllowN(n int64) bool { return p.Take(n).OK() }

// Take takes a slot for n tokens if one is there now, and tells what it decided; it never
// waits. The first token goes at once, and the slot after it comes when all have had
// their time. An n of 0 takes nothing; one that is negative, or that takes more than two
// years, is never admitted.
func (p *Pacer) Take(n int64) Decision { return p.front().take(n) }

// Peek tells what Take would answer, and takes and counts nothing. Peek(0) is for
// looking at what is there.
func (p *Pacer) Peek(n int64) Decision { return p.front().peek(n) }

// Refund gives back the slot of d, if nobody has come after: then it is as if it had never
// been asked. Else the slot has passed. It is for a Decision of this pacer, once; for
// one that took nothing it does nothing.
func (p *Pacer) Refund(d Decision) { p.front().refund(d) }

// Wait waits for its turn: see WaitN.
func (p *Pacer) Wait(ctx context.Context) error { return p.WaitN(ctx, 1) }

// WaitN takes the next slot and those of n tokens after it, and returns nil when it has
// come. It waits only if it will get it: if that is not before ctx's deadline, or within
// MaxWait, it returns at once with a *LimitError and takes nothing. One that says so
// because of the deadline matches context.DeadlineExceeded.
//
// Callers go in the order in which they came. If ctx ends while one waits, his slot is
// given back if nobody has come after him, and passes unused if somebody has, who keeps
// the time that he was promised. ctx's own error is returned then; so it is if ctx has
// ended before.
func (p *Pacer) WaitN(ctx context.Context, n int64) error { return p.front().wait(ctx, n) }

// Do waits for a slot as Wait does, runs call, and returns its error, or the refusal,
// which matches ErrLimited. When call's error says that a guard further in refused, the
// slot is given back if nobody has come after.
func (p *Pacer) Do(ctx context.Context, call func(context.Context) error) error {
	return p.front().do(ctx, call)
}

// Admit and Settle let sluice.Call and sluice.Chain run the pacer in two steps.
func (p *Pacer) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	return p.front().admit(ctx, now)
}

// Settle is the second step after Admit.
func (p *Pacer) Settle(t stage.Ticket, _ context.Context, _ int64, err error, completed bool) {
	p.front().settle(t, err, completed)
}

// front is the desk of the pacer, nil for a nil Pacer.
func (p *Pacer) front() *desk {
	if p == nil {
		return nil
	}
	return &p.desk
}

// The methods below make it a teller.

func (p *Pacer) take(_ uint64, n, now int64) Decision {
	d, _ := p.reserve(n, now, now)
	return d
}

// reserve takes a slot for n tokens that comes by latest, at the time at.
func (p *Pacer) reserve(n, latest, now int64) (d Decision, at int64) {
	for {
		plan := p.cur.Load()
		if d, at, ok := plan.take(n, latest, now); ok {
			return d, at
		}
		p.renew(plan, now)
	}
}

func (p *Pacer) peek(_ uint64, n, now int64) Decision {
	for {
		plan := p.cur.Load()
		if d, ok := plan.peek(n, now); ok {
			return d
		}
		p.renew(plan, now)
	}
}

func (p *Pacer) giveBack(_ uint64, d Decision, _ int64) {
	if plan, ok := d.by.judge.(*pacePlan); ok {
		plan.giveBack(d.n, d.mark)
	}
}

func (p *Pacer) refund(_ uint64, d Decision) {
	if d.mark != untaken {
		p.giveBack(0, d, 0)
		p.desk.tally.countRefund()
	}
}

func (p *Pacer) count(_ uint64, d Decision) { p.desk.tally.count(d) }

func (p *Pacer) receipt(d Decision) any { return d.by }

// wait waits for a slot, which is not there at now as d says.
func (p *Pacer) wait(ctx context.Context, d Decision, now int64) (Decision, error) {
	latest, why := patience{maxWait: p.cur.Load().config.MaxWait}.latest(ctx, now)
	d, at := p.reserve(d.n, latest, now)
	switch {
	case !d.OK() && why == ReasonMaxWait: // the queue is full, as it is under overload
		p.desk.tally.refuse(why)
		return d, p.full.because(why, d, d.mark+d.lack)
	case !d.OK():
		return p.desk.waited(d, why, nil)
	}
	p.waiting.Add(1)
	err := sleepUntil(ctx, now, at, nil)
	p.waiting.Add(-1)
	if err != nil {
		p.giveBack(0, d, 0)
	}
	return p.desk.waited(d, "", err)
}

func (p *Pacer) waitsInDo() bool { return p.cur.Load().config.MaxWait > 0 }

func (p *Pacer) state() (state int64, steady bool) { return p.cur.Load().next.Load(), true }
