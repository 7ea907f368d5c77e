package ratelimit

import (
	"context"

	"github.com/sluicego/sluice/internal/clock"
)

// visit is Run's visit to an account. It returns when to come again, 0 for not until
// the account is kicked. Whoever kicks it after the first line finds it visited again.
func (a *account) visit(ctx context.Context) (due int64) {
	a.kicked.Store(false)
	t, now := a.current(), clock.Now()
	soon := clock.After(now, t.config.SyncEvery)
	st := a.node.cur.Load()
	switch {
	case st.mode == ModeFallback:
		if a.quiet() {
			return 0
		}
		return max(soon, st.until.Load())
	case !t.asks:
		a.drop()
		return 0
	case !a.pay(ctx, t):
		return soon
	}
	a.settle(ctx, t)
	return a.supply(ctx, t)
}

// supply buys a lease, or returns one that nobody uses.
func (a *account) supply(ctx context.Context, t *terms) (due int64) {
	now := clock.Now()
	hungry, held := a.wanted.Load() > 0, a.balance.Load()
	if d := a.denied.Load(); d != nil && d.terms == t && now < d.askAt {
		if held > 0 && d.askAt > clock.After(now, t.ttl) { // others are refused what nobody may use here
			return a.hold(ctx, t, now, d.askAt)
		}
		if hungry || held > 0 || a.low.Load() >= 0 {
			return d.askAt
		}
		return 0
	}
	a.review(t, now, false)
	switch {
	case held > t.most: // it may hold less than it might
		a.giveBack(ctx, t, a.withdraw(held-t.most))
	case held > 0 && a.idle(t, now):
		a.giveUp(ctx, t)
		return 0
	case held <= a.low.Load() || hungry:
		if room := a.claim(); room > 0 {
			return a.buy(ctx, t, room, hungry)
		}
	}
	if held > 0 || hungry {
		return clock.After(now, t.ttl)
	}
	return 0
}

// hold returns a lease that nobody uses while the store has refused more, until askAt.
func (a *account) hold(ctx context.Context, t *terms, now, askAt int64) (due int64) {
	a.review(t, now, false)
	if a.idle(t, now) {
		a.giveUp(ctx, t)
		return 0
	}
	return min(askAt, clock.After(now, t.ttl))
}

// buy buys up to room tokens, and returns when to come again. Callers who find nothing
// leave it to Run to ask again when the store has not much either: hungry says that
// there are some.
func (a *account) buy(ctx context.Context, t *terms, room int64, hungry bool) (due int64) {
	g, err := a.order(ctx, t, Ask{Min: 1, Max: room}, 0, room)
	now := clock.Now()
	grace := t.config.StoreTimeout / 4
	switch {
	case err != nil:
		return clock.After(now, t.config.SyncEvery)
	case g.Tokens < room:
		if g.Tokens == 0 {
			a.node.stats.denials.Add(1)
		}
		due = a.deny(t, 1, g, now, grace).askAt
	case hungry && g.Remaining < 2*t.nodes*t.most:
		a.denied.Store(&denial{terms: t, need: 1, remaining: g.Remaining, ready: now, askAt: now, until: clock.After(now, grace)})
		due = clock.After(now, t.ttl)
	default:
		a.granted(t, g, now, grace)
		due = clock.After(now, t.ttl)
	}
	a.deposit(g.Tokens)
	if g.Tokens > 0 { // to see whether anybody uses them
		due = min(due, clock.After(now, t.ttl))
	}
	return due
}

// close returns all that the account holds.
func (a *account) close(ctx context.Context) {
	t := a.current()
	if t.asks && a.pay(ctx, t) {
		a.settle(ctx, t)
		a.giveUp(ctx, t)
	}
}
