package ratelimit

import (
	"context"
	"math"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// locally decides about n tokens without the store, in a stay in either mode: when a
// single call has failed, it is as when all do.
func (a *account) locally(t *terms, st *stay, n, now int64) Decision {
	a.node.stats.fallback.Add(1)
	switch t.config.OnFailure {
	case FailOpen:
		a.owe(n)
		a.mirror.debit(n, now)
		return Decision{by: &t.open, n: n, lack: -a.left()}
	case FailClosed:
		return a.unavailable(t, st, n, now)
	}
	a.prepare(t, st, now)
	d := a.mirror.take(0, n, now)
	switch {
	case d.OK():
		a.owe(n)
	case d.Never():
		// More than this node's share, but not more than there can be: the store might.
		return a.unavailable(t, st, n, now)
	}
	return d
}

// unavailable is the refusal until the store is tried again.
func (a *account) unavailable(t *terms, st *stay, n, now int64) Decision {
	wait := int64(t.config.StoreTimeout)
	if st.mode == ModeFallback {
		wait = st.until.Load() - now
	}
	return Decision{&t.shut, n, max(1, wait), 0}
}

// owe notes that n tokens were given out that the store does not know of.
func (a *account) owe(n int64) {
	raise(&a.unpaid, n, math.MaxInt64)
	if !a.listed.Load() {
		a.kick()
	}
}

// disown notes that n of them have come back, unless the store has been told already.
func (a *account) disown(n int64) {
	for {
		unpaid := a.unpaid.Load()
		if a.unpaid.CompareAndSwap(unpaid, max(0, unpaid-n)) {
			return
		}
	}
}

// prepare gives the mirror the rate and the burst that it is to have in st. When a
// fallback begins, it also charges what was given out since the last review.
func (a *account) prepare(t *terms, st *stay, now int64) {
	if st.mode == ModeFallback && a.booked.Load() != st {
		a.book(t, st, now)
	}
	want := t.local
	if t.config.OnFailure == ReuseLast && st.mode == ModeFallback && now-st.since < int64(t.config.ReuseFor) {
		want.Rate = *a.reused.Load()
	}
	if a.mirror.cur.Load().config == want {
		return
	}
	if err := a.mirror.Update(want); err != nil {
		panic(err) // terms has worked it out from what was validated
	}
}

// book brings the books up to date for st, and works out how fast ReuseLast is in it:
// as fast as the store gave tokens before.
func (a *account) book(t *terms, st *stay, now int64) {
	a.review(t, now, false)
	a.mu.Lock()
	granted := a.ledger.granted
	a.mu.Unlock()
	rate, per := t.local.Rate, 10*time.Second
	tokens := int64(math.Round(min(granted*float64(per), float64(t.quota.Rate.within(per)))))
	if last := (Rate{tokens, per}); last.Validate() == nil && !rate.IsUnlimited() && !rate.IsBlocked() && last.perNano().Cmp(rate.perNano()) > 0 {
		rate = last
	}
	a.reused.Store(&rate)
	a.booked.Store(st)
}

// pay tells the store what was given out without it. Of what was given out while the
// store did not answer, that counts which this node's own limiter still misses: time
// has brought back the rest. It reports whether nothing is owed.
func (a *account) pay(ctx context.Context, t *terms) bool {
	if a.unpaid.Load() == 0 && a.debts.Load() == 0 {
		return true
	}
	st := a.node.cur.Load()
	if st.mode != ModeShared {
		return false
	}
	unpaid, debts := a.unpaid.Swap(0), a.debts.Swap(0)
	due := max(0, min(unpaid, a.missing(clock.Now()))) + debts
	if due == 0 {
		return true
	}
	paid := false
	defer func() { // also if the store ends the goroutine
		if !paid {
			raise(&a.unpaid, unpaid, math.MaxInt64)
			raise(&a.debts, debts, 2*t.quota.Burst)
		}
	}()
	if paid = a.node.debit(ctx, t.config.StoreTimeout, a.key, t.quota, due) == nil; paid {
		a.denied.Store(nil) // what it says is too little now
	}
	return paid
}

// missing is how many tokens this node's own limiter misses.
func (a *account) missing(now int64) int64 {
	d := a.mirror.peek(0, 0, now)
	return d.Capacity() - d.Remaining()
}

// charge takes n tokens whether they are there or not, as a debit of the caller.
func (a *account) charge(n, now int64) {
	t := a.current()
	if !t.asks {
		a.mirror.debit(n, now)
		return
	}
	n -= a.withdraw(n)
	if n <= 0 || !t.config.limits() {
		return
	}
	a.mirror.debit(n, now)
	raise(&a.debts, n, 2*t.quota.Burst) // the store's bucket goes no lower
	if a.node.running.Load() {
		a.kick()
		return
	}
	a.pay(context.Background(), t)
}
