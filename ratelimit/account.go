package ratelimit

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stripe"
)

// account is what a node knows and holds of one key: tokens that it has bought ahead,
// the store's last refusal, and a limiter of its own for when the store does not
// answer.
//
//	a call ──▶ balance ──▶ denied ──▶ the store, or in ModeFallback the mirror
//
// The first two are memory. In a steady state Run fills the balance before it is
// empty and asks again before a denial has run out, so nothing else is reached.
type account struct {
	node *node
	key  StoreKey
	// terms is what is decided on. Written by change only.
	terms atomic.Pointer[terms]
	// low is the balance at which more is bought, -1 if nothing is bought ahead. Written
	// by review and giveUp.
	low atomic.Int64
	// known is how many tokens the store had left when it was asked last. Written by
	// received.
	known atomic.Int64
	// denied is the store's last refusal, nil when it has granted since. It holds as
	// long as it says. Written by whoever has asked.
	denied atomic.Pointer[denial]
	// kicked says that Run has been told of the account and has not come yet: set by
	// kick, cleared by visit. listed says that it is on Run's agenda, who writes it.
	kicked, listed atomic.Bool

	_ [stripe.Line]byte
	// balance is the tokens that are paid for and not yet given out, at least 0.
	balance atomic.Int64
	_       [stripe.Line]byte

	// wanted is how many tokens were refused out of hand since review looked last; it
	// stops at enough.
	wanted atomic.Int64
	// unpaid is how many were given out that the store does not know of, and debts how
	// many Debit has charged that it does not. Both go down when pay tells it.
	unpaid, debts atomic.Int64
	// mirror is the limiter of this node alone. It is charged for what is given out in
	// ModeShared too, down to empty, so that it has no fresh burst when it is needed.
	mirror *Limiter
	// booked is the last stay in ModeFallback that began with the books brought up to
	// date, and reused how fast ReuseLast is in it. Written by prepare.
	booked atomic.Pointer[stay]
	reused atomic.Pointer[Rate]

	mu     sync.Mutex // guards ledger; no foreign code runs under it
	ledger ledger
	agendaEntry
}

// denial is a refusal of the store, remembered.
type denial struct {
	terms     *terms
	need      int64 // as many tokens were refused, so more are, too
	remaining int64 // as many were there
	ready     int64 // when need will be there, if nobody takes any
	askAt     int64 // when Run asks again
	until     int64 // when a caller may ask again
}

// init makes a an account of which nothing is known.
func (a *account) init(n *node, key string, c SharedConfig, now int64) {
	a.node, a.key = n, StoreKey{n.name, key}
	t := n.terms(c)
	a.terms.Store(t)
	a.low.Store(-1)
	a.mirror = newLimiter(n.name, settings{Config: t.local, uncounted: true}, now)
	a.slot = unlisted
}

// current returns the terms in force, for as many nodes as there are now.
func (a *account) current() *terms {
	for {
		t := a.terms.Load()
		if t.nodes == a.node.count.Load() {
			return t
		}
		a.change(t, a.node.terms(t.config))
	}
}

// change puts next in force, if old was.
func (a *account) change(old, next *terms) bool {
	if !a.terms.CompareAndSwap(old, next) {
		return false
	}
	a.prepare(next, a.node.cur.Load(), clock.Now())
	return true
}

// spend gives out n tokens of the balance, if there are so many.
func (a *account) spend(n int64) (Decision, bool) {
	t := a.terms.Load()
	if !t.can(n) {
		return Decision{}, false
	}
	for {
		b := a.balance.Load()
		if b < n {
			return Decision{}, false
		}
		if a.balance.CompareAndSwap(b, b-n) {
			if b-n <= a.low.Load() {
				a.kick()
			}
			return Decision{by: &t.bought, n: n, lack: n - b - a.known.Load()}, true
		}
	}
}

// decide decides about n tokens that the balance does not hold.
func (a *account) decide(ctx context.Context, n, now int64) Decision {
	t := a.current()
	if !t.asks {
		return a.mirror.take(0, n, now)
	}
	if !t.can(n) {
		return t.plain(n, a.left())
	}
	if d, ok := a.stillDenied(t, n, now); ok {
		return d
	}
	st := a.node.cur.Load()
	if !a.node.mayTry(st, now) {
		return a.locally(t, st, n, now)
	}
	if st.mode == ModeShared {
		if !a.node.running.Load() && !a.pay(ctx, t) {
			return a.locally(t, st, n, now)
		}
		if d, ok := a.othersAsk(t, n, now); ok {
			return d
		}
	}
	return a.ask(ctx, t, n, now)
}

// look is what decide would answer, from memory alone: what only the store knows is
// taken for a yes.
func (a *account) look(n, now int64) Decision {
	t := a.current()
	if !t.asks {
		return a.mirror.peek(0, n, now)
	}
	left := a.left()
	if !t.can(n) {
		return t.plain(n, left)
	}
	yes := Decision{by: &t.bought, n: n, lack: -left}
	if a.balance.Load() >= n {
		return yes
	}
	if d, ok := a.denial(t, n, now); ok {
		return d
	}
	st := a.node.cur.Load()
	switch {
	case st.mode == ModeShared || t.config.OnFailure == FailOpen:
		return yes
	case t.config.OnFailure == FailClosed || n > t.local.burst():
		return a.unavailable(t, st, n, now)
	}
	return a.mirror.peek(0, n, now)
}

// left is how many tokens there are, as far as is known.
func (a *account) left() int64 { return a.balance.Load() + a.known.Load() }

// denial returns the refusal of n tokens that the store's last one implies.
func (a *account) denial(t *terms, n, now int64) (Decision, bool) {
	d := a.denied.Load()
	if d == nil || now >= d.until || d.terms != t {
		return Decision{}, false
	}
	b := a.balance.Load()
	if n-b < d.need {
		return Decision{}, false
	}
	at := max(d.until, clock.After(d.ready, t.lasts(n-b-d.need)))
	return Decision{&t.bought, n, at - now, d.remaining + b}, true
}

// stillDenied is denial for a caller, whose wish Run is told of.
func (a *account) stillDenied(t *terms, n, now int64) (Decision, bool) {
	d, ok := a.denial(t, n, now)
	if ok && t.most > 0 {
		a.hunger(t, n)
	}
	return d, ok
}

// othersAsk is for a caller who found no denial in force. If the last one has run out
// only now, he is the one who asks; all others are refused until he has an answer.
func (a *account) othersAsk(t *terms, n, now int64) (Decision, bool) {
	for {
		old := a.denied.Load()
		if old == nil || old.terms != t || n-a.balance.Load() < old.need {
			return Decision{}, false
		}
		if now < old.until {
			return a.denial(t, n, now)
		}
		asking := *old
		asking.until = clock.After(now, t.config.StoreTimeout)
		if a.denied.CompareAndSwap(old, &asking) {
			return Decision{}, false
		}
	}
}

// hunger notes that n tokens were refused which a lease might have had.
func (a *account) hunger(t *terms, n int64) {
	if a.wanted.Load() < t.enough() {
		a.wanted.Add(n)
	}
	if !a.listed.Load() {
		a.kick()
	}
}

// ask asks the store for n tokens, less what is in the balance, and buys a lease with
// them. The caller waits for it.
func (a *account) ask(ctx context.Context, t *terms, n, now int64) Decision {
	held := a.withdraw(n)
	need := n - held
	a.review(t, now, true)
	room := a.claim()
	a.node.stats.onPath.Add(1)
	back := held // goes back unless the store gives the rest
	defer func() { a.putBack(back) }()
	g, err := a.order(ctx, t, Ask{Min: need, Max: need + room}, need, room)
	now = clock.Now()
	if err != nil {
		a.denied.Store(nil)
		if over(ctx) != nil {
			return Decision{&t.shut, n, 1, 0} // he has gone
		}
		return a.locally(t, a.node.cur.Load(), n, now)
	}
	if g.Tokens < need {
		a.node.stats.denials.Add(1)
		d := a.deny(t, need, g, now, 0)
		return Decision{&t.bought, n, d.until - now, d.remaining + held}
	}
	a.granted(t, g, now, 0)
	back = g.Tokens - need
	return a.sold(t, n, need, g)
}

// granted draws from the grant g what is known of the next one.
func (a *account) granted(t *terms, g Grant, now int64, grace time.Duration) {
	if g.Remaining == 0 {
		a.deny(t, 1, g, now, grace)
	} else if a.denied.Load() != nil {
		a.denied.Store(nil)
	}
}

// deny remembers that the store has refused need tokens, or that it would: it has given
// all it had. grace is how much longer callers wait for Run to have asked again.
func (a *account) deny(t *terms, need int64, g Grant, now int64, grace time.Duration) *denial {
	retry := g.RetryAfter
	if g.Tokens > 0 {
		retry = max(0, g.ResetAfter-t.lasts(t.quota.Burst-need))
	}
	askAt := clock.After(now, max(retry, t.gap()))
	// Nodes that were refused at the same time do not come back at the same time. Never
	// sooner than the store said: that would be a question too many.
	jitter := min((askAt-now)/10, int64(time.Second))
	until := clock.After(askAt, max(time.Duration(rand.Int64N(jitter+1)), grace))
	d := &denial{terms: t, need: need, remaining: g.Remaining, ready: clock.After(now, retry), askAt: askAt, until: until}
	a.denied.Store(d)
	return d
}

// withdraw takes up to n tokens out of the balance.
func (a *account) withdraw(n int64) int64 {
	for {
		b := a.balance.Load()
		if n = min(n, b); a.balance.CompareAndSwap(b, b-n) {
			return n
		}
	}
}

// deposit puts n tokens into the balance, as far as a lease may hold them, and lets Run
// return the others. Run looks after what is there.
func (a *account) deposit(n int64) {
	most := a.terms.Load().most
	for n > 0 {
		b := a.balance.Load()
		fits := min(n, max(0, most-b))
		if !a.balance.CompareAndSwap(b, b+fits) {
			continue
		}
		if n > fits {
			a.returnLater(n - fits)
		}
		if !a.listed.Load() {
			a.kick()
		}
		return
	}
}

// putBack is deposit for callers. To who held nothing, Run may come late while the store
// refuses.
func (a *account) putBack(n int64) {
	a.deposit(n)
	if n > 0 && a.denied.Load() != nil {
		a.kick()
	}
}

// kick lets Run come.
func (a *account) kick() {
	if a.node.running.Load() && !a.kicked.Load() && a.kicked.CompareAndSwap(false, true) {
		a.node.work.push(a)
	}
}
