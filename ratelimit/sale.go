package ratelimit

import (
	"context"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// sale is a decision about tokens that a caller waited for the store to give. It is
// the decision's origin and judge, so that Refund finds the receipt.
type sale struct {
	origin
	account *account
	receipt Receipt
	tokens  int64 // of the store; the others were in the balance
	reset   time.Duration
}

// sold returns the decision that gave n tokens, so many of them by g.
func (a *account) sold(t *terms, n, tokens int64, g Grant) Decision {
	s := &sale{origin: t.bought, account: a, receipt: g.Receipt, tokens: tokens, reset: g.ResetAfter}
	s.judge = s
	return Decision{by: &s.origin, n: n, lack: -a.left()}
}

func (s *sale) remaining(d Decision) int64        { return min(-d.lack, s.capacity) }
func (s *sale) retryAfter(Decision) time.Duration { return 0 }
func (s *sale) resetAfter(Decision) time.Duration { return s.reset }

// takeBack takes back what d, given by this account, gave: to where it came from.
func (a *account) takeBack(d Decision) {
	switch by := d.by.judge.(type) {
	case *sale:
		a.putBack(d.n - by.tokens)
		a.bringBack(purchase{by.receipt, by.tokens})
	case *terms:
		if d.by == &by.open {
			a.disown(d.n)
			return
		}
		a.putBack(d.n)
	case *claim:
		a.mirror.refund(0, d)
		a.disown(d.n)
	}
}

// returnLater lets Run give back n tokens of leases.
func (a *account) returnLater(n int64) {
	if !a.node.running.Load() {
		a.node.stats.lost.Add(n)
		return
	}
	a.mu.Lock()
	a.ledger.excess += n
	a.mu.Unlock()
	a.kick()
}

// bringBack gives p back to the store, which may not answer: Run does, if there is one.
func (a *account) bringBack(p purchase) {
	if p.n == 0 {
		return
	}
	if a.node.running.Load() {
		a.mu.Lock()
		full := len(a.ledger.returns) == maxReturns
		if !full {
			a.ledger.returns = append(a.ledger.returns, p)
		}
		a.mu.Unlock()
		if !full {
			a.kick()
			return
		}
	} else if t := a.terms.Load(); t.asks && a.node.mayTry(a.node.cur.Load(), clock.Now()) && a.refund(context.Background(), t, p) {
		return
	}
	a.node.stats.lost.Add(p.n)
}
