package ratelimit

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Priorities is a rate for calls of three priorities, of which the more important go
// first when there is too little for all, and none starves.
//
// Each class has a bucket of its own with the rate that it is assured; the rest of
// the rate fills a bucket that all share. A call takes
//
//  1. from the shared bucket while it is above every floor, so that in good times
//     nobody needs to know who asks;
//  2. from its class's own bucket;
//  3. from the shared bucket down to the floor of its class: P2 stops first, then P1,
//     and only P0 takes the last;
//  4. from another class's own bucket, if that is nearly full: what it lends is what
//     would run over.
//
// It promises that all together take at most burst + rate × w in any time w; that
// calls of a class which come no faster than what it is assured, with a burst of what
// it keeps (see PrioritiesConfig.Keep), are all admitted, whatever the others do; and
// that no tokens run over while anybody is refused, except in the bucket of a class
// that has a single token, and keeps it.
//
// Most callers want Do, or Allow with the priority. A priority above P0 or below P2
// counts as P0 or P2.
//
// Asking takes no lock and allocates nothing. It starts no goroutine, is safe for
// concurrent use and must not be copied. A nil *Priorities lets everything pass; the
// zero Priorities is of no use, make one with NewPriorities.
type Priorities struct {
	// cur is the configuration in force with its buckets. Written by swap only, under
	// mu.
	cur  atomic.Pointer[priorityPlan]
	name string
	tier tier
	mu   sync.Mutex // puts changes of the configuration in order
	last [classes]lastRefusal
	// tallies are those of the classes and, last, of calls that passed before their
	// class was looked at; nil if nothing is counted.
	tallies [classes + 1]*tally
}

// NewPriorities returns a limiter of that name, which must not be empty, and that rate
// for all classes together. It returns every complaint about them and the options at
// once.
func NewPriorities(name string, rate Rate, opts ...PrioritiesOption) (*Priorities, error) {
	c, counted, err := applyPriorities(name, rate, opts)
	if err != nil {
		return nil, err
	}
	return newPriorities(name, c, counted, clock.Now()), nil
}

func newPriorities(name string, c PrioritiesConfig, counted bool, now int64) *Priorities {
	q := &Priorities{name: name}
	q.tier.taker = q
	for i := range q.tallies {
		if counted {
			q.tallies[i] = new(tally)
		}
	}
	q.cur.Store(newPriorityPlan(name, c, now))
	return q
}

// Name returns the name given to NewPriorities.
func (q *Priorities) Name() string {
	if q == nil {
		return ""
	}
	return q.name
}

// Allow takes a token for a call of priority p if it may have one, and reports
// whether.
func (q *Priorities) Allow(p sluice.Priority) bool { return q.Take(p, 1).OK() }

// Take takes n tokens for a call of priority p if it may have so many, all from one
// bucket, and tells what it decided: Remaining is what the class could have had more of
// the bucket that decided.
func (q *Priorities) Take(p sluice.Priority, n int64) Decision {
	if q == nil {
		return unlimited(n)
	}
	class := uint64(classOf(p))
	d := q.take(class, n, clock.Now())
	q.count(class, d)
	return d
}

// Peek tells what Take would answer, and takes and counts nothing.
func (q *Priorities) Peek(p sluice.Priority, n int64) Decision {
	if q == nil {
		return unlimited(n)
	}
	return q.peek(uint64(classOf(p)), n, clock.Now())
}

// Refund gives back what d took to the bucket it came from, as Limiter.Refund does.
func (q *Priorities) Refund(d Decision) {
	if q != nil && d.tookSome() {
		q.refund(0, d)
	}
}

// Layer returns the limiter as a Layer of TakeAll, for a call of priority p.
func (q *Priorities) Layer(p sluice.Priority) Layer {
	if q == nil {
		return Layer{}
	}
	return Layer{of: &q.tier, key: uint64(classOf(p))}
}

// Do runs call if there is a token for the priority that its ctx has (see
// sluice.WithPriority), and returns its error, or the refusal, which matches
// ErrLimited. When call's error says that a guard further in refused, the token is
// given back.
func (q *Priorities) Do(ctx context.Context, call func(context.Context) error) error {
	if q == nil {
		return call(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := q.Admit(ctx, clock.Now())
	if err != nil {
		return err
	}
	if err = call(ctx); err != nil {
		q.Settle(t, ctx, 0, err, true)
	}
	return err
}

// Admit and Settle let sluice.Call and sluice.Chain run the limiter in two steps. The
// ctx's priority is looked for only when there is not plenty for all.
func (q *Priorities) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	if q == nil {
		return stage.Ticket{At: now}, nil
	}
	if plenty := &q.cur.Load().plenty; plenty.most > 0 {
		if d, ok := plenty.take(1, now); ok && d.OK() {
			q.tallies[classes].count(d)
			return ticket(d, now), nil
		}
	}
	class := classOf(sluice.PriorityOf(ctx))
	d := q.takeOwn(class, 1, now)
	q.tallies[class].count(d)
	if !d.OK() {
		return stage.Ticket{}, q.last[class].of(d, d.mark+d.lack)
	}
	return ticket(d, now), nil
}

// Settle is the second step after Admit.
func (q *Priorities) Settle(t stage.Ticket, _ context.Context, _ int64, err error, completed bool) {
	if err == nil || !completed || !errors.Is(err, sluice.ErrRejected) {
		return
	}
	if by, ok := t.Ref.(*origin); ok {
		q.Refund(Decision{by: by, n: 1, mark: t.Mark})
	}
}

// classOf is p as an index.
func classOf(p sluice.Priority) int { return int(min(max(p, sluice.P0), sluice.P2) - sluice.P0) }

// take, peek, giveBack and count make the limiter a taker, whose key is the class,
// refund a refunder.
func (q *Priorities) take(class uint64, n, now int64) Decision {
	if plenty := &q.cur.Load().plenty; plenty.can(n) {
		if d, ok := plenty.take(n, now); ok && d.OK() {
			return d
		}
	}
	return q.takeOwn(int(class), n, now)
}

// takeOwn is take for where there is not plenty.
func (q *Priorities) takeOwn(class int, n, now int64) Decision {
	for {
		p := q.cur.Load()
		if d, ok := p.decide(class, n, now, true); ok {
			return d
		}
		q.renew(p, now)
	}
}

func (q *Priorities) peek(class uint64, n, now int64) Decision {
	for {
		p := q.cur.Load()
		if d, ok := p.decide(int(class), n, now, false); ok {
			return d
		}
		q.renew(p, now)
	}
}

func (q *Priorities) giveBack(_ uint64, d Decision, _ int64) {
	if c, ok := d.by.judge.(*claim); ok && c.most > 0 {
		c.bucket.undo(d.n, d.mark)
	}
}

func (q *Priorities) count(class uint64, d Decision) { q.tallies[class].count(d) }

func (q *Priorities) refund(_ uint64, d Decision) {
	q.giveBack(0, d, 0)
	q.tallies[classes].countRefund()
}
