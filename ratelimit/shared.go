package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
)

// Shared is a distributed rate limiter: one limit for all processes that use it, each
// of which is a node. Their Store keeps the bucket. So that calls need not wait for
// it, a node buys a small lease of tokens ahead and decides with these by itself: the
// first of two levels, of which the store is the second.
//
// It promises that in any time w all nodes together admit at most burst + rate × w
// and one lease each (see SharedConfig.MaxLease), and no lease if it is Strict; and
// while the store does not answer, what OnFailure says: by default that each node
// keeps to an equal share of the limit, without a fresh burst.
//
// Most callers want Allow, Do or Wait, as of a Limiter, and must run Run. It fills
// leases before they are empty, so that in a steady state no caller waits for the
// store; returns leases that nobody uses; counts the nodes; and finds out when a store
// that has failed answers again. Without Run, and before and after it, there are
// Nodes nodes, a call that finds no lease asks the store and buys one for those after
// it, and when the store fails one call in a while finds out for all others.
//
// Giving out a lease, and refusing what the store has refused, take no lock, allocate
// nothing and do no I/O. A call with neither a lease nor a refusal at hand waits for
// the store, at most StoreTimeout. A Shared starts no goroutine but in Run. It is safe
// for concurrent use and must not be copied. A nil *Shared lets everything pass; the
// zero Shared is of no use, make one with NewShared.
type Shared struct {
	account
	tier    tier
	last    lastRefusal
	waiting atomic.Int64 // callers in wait, counted by themselves
	member  *roster.Member[Shared]
	updates sync.Mutex // puts configurations in force, and says whose they are, in order
}

// NewShared returns a limiter of that name, which must not be empty and is the same in
// all processes that share the limit. Whether the store answers does not matter yet.
// It returns every complaint about the options at once.
//
// For package variables there is sluice.Must.
func NewShared(name string, store Store, t Threshold, opts ...SharedOption) (*Shared, error) {
	s := newSharedSettings(sharedConfigOf(t))
	s.apply(opts)
	if s.group != nil {
		s.errs = append(s.errs, errSharedGroupOption)
	}
	if err := s.check(name, store); err != nil {
		return nil, err
	}
	now := clock.Now()
	return newShared(newNode(name, store, s, now), "", s.SharedConfig, now), nil
}

func newShared(n *node, key string, c SharedConfig, now int64) *Shared {
	s := new(Shared)
	s.account.init(n, key, c, now)
	s.tier.taker = s
	return s
}

// Name returns the name given to NewShared.
func (s *Shared) Name() string {
	if s == nil {
		return ""
	}
	return s.node.name
}

// Run does in the background what calls should not wait for: see Shared. It returns
// when ctx ends, with its cause, after it has returned the lease and taken leave of
// the other nodes, which takes at most a second. Only one Run may run at a time, and
// those of a SharedGroup's limiters are the group's.
func (s *Shared) Run(ctx context.Context) error {
	if s == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if s.key.Key != "" || s.member != nil {
		return fmt.Errorf("ratelimit: %q is of a group: call the group's Run", s.node.name)
	}
	return s.node.run(ctx, s.Config, func(yield func(*account) bool) { yield(&s.account) })
}

// Allow takes a token if there is one, and reports whether.
func (s *Shared) Allow() bool { return s.AllowN(1) }

// AllowN takes n tokens if there are so many, and reports whether. An n of 0 takes
// nothing and is admitted; a negative one never is.
func (s *Shared) AllowN(n int64) bool { return s.Take(n).OK() }

// Take takes n tokens if there are so many, and tells what it decided. What it says is
// left is what was left in the store when it was asked last, with what is at hand;
// RetryAfter is when it is worth while to ask again, which in overload is not sooner
// than the next lease. An n that is negative or more than the burst is never admitted.
//
// It may wait for the store, at most StoreTimeout: see Shared.
func (s *Shared) Take(n int64) Decision {
	if s == nil {
		return unlimited(n)
	}
	d := s.take(0, n, 0)
	s.count(0, d)
	return d
}

// Peek tells what Take would answer, and takes and counts nothing. It asks nobody: if
// only the store knows, it is taken for a yes.
func (s *Shared) Peek(n int64) Decision {
	if s == nil {
		return unlimited(n)
	}
	return s.look(n, clock.Now())
}

// Debit takes n tokens whether they are there or not: for what a call turned out to
// cost. What is not at hand, Run tells the store, and without Run this call does: the
// bucket goes into debt, by at most the burst, and admits nothing until time has paid
// it. Debit returns what Peek(0) then says; only a negative n is refused.
func (s *Shared) Debit(n int64) Decision {
	if s == nil {
		return unlimited(n)
	}
	now := clock.Now()
	if n > 0 {
		s.charge(n, now)
		s.node.tally.tokens(n)
	}
	return s.look(min(n, 0), now)
}

// Refund gives back what d took: the call was not made after all, or is not to count.
// Tokens of a lease go back into it; those that the store gave for this call go back
// to the store, which takes what would still be missing. Run does that, or, without
// one, this call. It is for a Decision of this limiter, once; for one that took
// nothing it does nothing.
func (s *Shared) Refund(d Decision) {
	if s != nil && d.tookSome() {
		s.refund(0, d)
	}
}

// Layer returns the limiter as a Layer of TakeAll. In a TakeAll that reaches the store
// all callers wait for it, so it comes last.
func (s *Shared) Layer() Layer {
	if s == nil {
		return Layer{}
	}
	return Layer{of: &s.tier}
}

// take, peek, giveBack and count make the limiter a taker, refund a refunder. A now of
// 0 has yet to be read, for those whom a lease serves need none.
func (s *Shared) take(_ uint64, n, now int64) Decision {
	if d, ok := s.spend(n); ok {
		return d
	}
	if now == 0 {
		now = clock.Now()
	}
	return s.decide(context.Background(), n, now)
}

func (s *Shared) peek(_ uint64, n, now int64) Decision {
	d := s.look(n, now)
	if t := s.terms.Load(); !d.OK() && d.by == &t.bought && t.most > 0 && t.can(n) {
		s.hunger(t, n)
	}
	return d
}

func (s *Shared) giveBack(_ uint64, d Decision, _ int64) { s.takeBack(d) }

func (s *Shared) count(_ uint64, d Decision) {
	if !d.OK() && d.by.reason == ReasonStore { // which is of decisions that nothing else refuses
		s.node.stats.unavailable.Add(1)
		return
	}
	s.node.tally.count(d)
}

func (s *Shared) refund(_ uint64, d Decision) {
	s.takeBack(d)
	s.node.tally.countRefund()
}

// decide is account.decide. A limiter that its group has let go is held again, since
// it has got something to lose.
func (s *Shared) decide(ctx context.Context, n, now int64) Decision {
	d := s.account.decide(ctx, n, now)
	s.member.Needed(s)
	return d
}

// Config returns what the limiter decides on.
func (s *Shared) Config() SharedConfig {
	if s == nil {
		return SharedConfig{}
	}
	return s.terms.Load().config
}

// Update changes what the limiter decides on, here; the other nodes must be told, too.
// The store keeps the tokens that are there, as far as the new burst holds them, and
// this node its lease. Callers who wait keep the time that they were promised. An
// equal SharedConfig changes nothing; one that does not validate is returned as an
// error and changes nothing.
func (s *Shared) Update(c SharedConfig) error {
	changed, err := s.configure(c, true)
	if changed {
		s.member.Needed(s)
	}
	return err
}

// configure puts c in force and reports whether it is another one; own says that it is
// not the SharedGroup's.
func (s *Shared) configure(c SharedConfig, own bool) (changed bool, err error) {
	if err := c.Validate(); err != nil || s == nil {
		return false, err
	}
	s.updates.Lock()
	defer s.updates.Unlock()
	for !changed {
		old := s.current()
		if old.config == c {
			break
		}
		changed = s.change(old, s.node.terms(c)) // or the fleet has another size by now
	}
	s.member.Configured(own, changed)
	if changed {
		s.kick()
	}
	return changed, nil
}

var errSharedGroupOption = errors.New("ratelimit: WithSharedMaxKeys and WithSharedOverride are for NewSharedGroup")
