package ratelimit

import (
	"context"
	"math"
)

// ledger is an account's books: what was bought, how fast it goes, and the receipts.
type ledger struct {
	bought   int64   // tokens bought and not given back, ever
	out      int64   // of them, those that had been given out at the time at
	at       int64   // 0 if never
	moved    int64   // when some were given out or asked for last, as seen at the time at
	demand   float64 // tokens asked for in a nanosecond, averaged
	granted  float64 // tokens given out in a nanosecond, averaged
	lease    int64   // how many to hold
	pending  int64   // how many of these are being bought
	receipts []purchase
	// What callers have given back, for the store: with the receipts of their own, and
	// with those of leases.
	returns []purchase
	excess  int64
}

// purchase is tokens that can be given back with a receipt.
type purchase struct {
	receipt Receipt
	n       int64
}

const (
	// maxReceipts is how many receipts of leases are kept. They are those of the last
	// ones, and a lease is used up in a few purchases.
	maxReceipts = 8
	// maxReturns is how many refunds wait for Run. More are lost.
	maxReturns = 1024
)

// review brings the books up to date and works out the size of the lease. missed says
// that a caller has found too few.
func (a *account) review(t *terms, now int64, missed bool) {
	wanted := a.wanted.Swap(0)
	a.mu.Lock()
	defer a.mu.Unlock()
	l := &a.ledger
	missed = missed && l.at > 0 && now-l.at < int64(t.ttl)
	if spent := l.observe(t, a.balance.Load(), wanted, now); spent > 0 {
		a.mirror.debit(spent, now)
	}
	l.lease = l.size(t, missed, a.known.Load())
	low := l.lease / 2
	if l.lease == 0 {
		low = -1
	}
	a.low.Store(low)
}

// observe averages over some syncs what was given out and what was asked for, and
// returns the former.
func (l *ledger) observe(t *terms, balance, wanted, now int64) (spent int64) {
	spent = max(0, l.bought-balance-l.out)
	span := float64(10 * t.config.SyncEvery)
	over := span + float64(now-l.at)
	l.granted = (l.granted*span + float64(spent)) / over
	l.demand = (l.demand*span + float64(spent+wanted)) / over
	l.out, l.at = l.bought-balance, now
	if spent+wanted > 0 {
		l.moved = now
	}
	return spent
}

// size is how many tokens are asked for in SyncEvery, but no more than a node's part.
// It is 0 if a lease would go back unused. Who found too few of a lease gets one twice
// as large; when the store is nearly empty a lease is down to half as large, so that
// others get something.
func (l *ledger) size(t *terms, missed bool, known int64) int64 {
	want := int64(l.demand * float64(t.config.SyncEvery))
	if missed {
		want = max(want, 2*l.lease, 1)
	}
	if want == 0 && l.demand*float64(t.ttl) >= 1 {
		want = 1
	}
	want = min(want, t.most)
	if near := known / (2 * t.nodes); want > 1 && near < want {
		want = max(want/2, near)
	}
	return want
}

// claim returns how many tokens to buy for the lease, which nobody else will.
func (a *account) claim() (room int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	room = max(0, a.ledger.lease-a.balance.Load()-a.ledger.pending)
	a.ledger.pending += room
	return room
}

// order asks the store for need tokens, and for room more for the lease, which were
// claimed, and books the answer, also if the store ends the goroutine.
func (a *account) order(ctx context.Context, t *terms, ask Ask, need, room int64) (g Grant, err error) {
	err = errStoreLeft
	defer func() { a.received(g, err, max(0, g.Tokens-need), room) }()
	g, err = a.node.take(ctx, t.config.StoreTimeout, a.key, t.quota, ask)
	return g, err
}

// received books what a take has brought, surplus of it for the lease, or that it has
// failed. room is what was claimed for it.
func (a *account) received(g Grant, err error, surplus, room int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := &a.ledger
	l.pending -= room
	if err != nil {
		return
	}
	a.known.Store(g.Remaining)
	l.bought += g.Tokens
	if surplus > 0 {
		if len(l.receipts) == maxReceipts {
			l.receipts = append(l.receipts[:0], l.receipts[1:]...)
		}
		l.receipts = append(l.receipts, purchase{g.Receipt, surplus})
	}
}

// quiet reports whether the account has nothing of the store's, and nothing for it.
func (a *account) quiet() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.balance.Load() == 0 && a.unpaid.Load() == 0 && a.debts.Load() == 0 && len(a.ledger.returns) == 0 && a.ledger.excess == 0
}

// overlooked reports whether somebody has found the account listed, and so has not
// kicked it, when the visit that let it go from the list had looked already.
func (a *account) overlooked() bool {
	return !a.quiet() || a.wanted.Load() > 0 && a.terms.Load().asks && a.node.cur.Load().mode == ModeShared
}

// idle reports whether nothing has been asked for during the terms' ttl.
func (a *account) idle(t *terms, now int64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return now-a.ledger.moved >= int64(t.ttl)
}

// drop forgets all that is the store's or for it: no store is asked any more.
func (a *account) drop() {
	a.low.Store(-1)
	a.node.stats.lost.Add(a.withdraw(math.MaxInt64))
	a.unpaid.Store(0)
	a.debts.Store(0)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ledger = ledger{pending: a.ledger.pending}
}

// giveUp returns the lease to the store.
func (a *account) giveUp(ctx context.Context, t *terms) {
	a.low.Store(-1)
	a.mu.Lock()
	a.ledger.lease = 0
	a.mu.Unlock()
	a.giveBack(ctx, t, a.withdraw(math.MaxInt64))
}

// giveBack returns n tokens of leases to the store, with the receipts of the last ones
// bought: those before them have been given out.
func (a *account) giveBack(ctx context.Context, t *terms, n int64) {
	for n > 0 {
		p, ok := a.lastPurchase(n)
		if !ok || !a.refund(ctx, t, p) {
			a.node.stats.lost.Add(n)
			return
		}
		n -= p.n
	}
}

// refund gives p back to the store. What the store has refused may be there now.
func (a *account) refund(ctx context.Context, t *terms, p purchase) bool {
	if a.node.refund(ctx, t.config.StoreTimeout, a.key, t.quota, p.receipt, p.n) != nil {
		return false
	}
	a.denied.Store(nil)
	return true
}

// lastPurchase takes up to n tokens off the last receipt.
func (a *account) lastPurchase(n int64) (purchase, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	l := &a.ledger
	if len(l.receipts) == 0 {
		return purchase{}, false
	}
	last := &l.receipts[len(l.receipts)-1]
	p := purchase{last.receipt, min(n, last.n)}
	if last.n -= p.n; last.n == 0 {
		l.receipts = l.receipts[:len(l.receipts)-1]
	}
	l.bought -= p.n
	return p, true
}

// settle returns to the store what callers have given back.
func (a *account) settle(ctx context.Context, t *terms) {
	a.mu.Lock()
	returns, excess := a.ledger.returns, a.ledger.excess
	a.ledger.returns, a.ledger.excess = nil, 0
	a.mu.Unlock()
	for _, p := range returns {
		if !a.refund(ctx, t, p) {
			a.node.stats.lost.Add(p.n)
		}
	}
	a.giveBack(ctx, t, excess)
}
