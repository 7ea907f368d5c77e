package ratelimit

import (
	"runtime"

	"github.com/sluicego/sluice/internal/clock"
)

// Config returns what the limiter decides on.
func (u *WarmUp) Config() WarmUpConfig {
	if u == nil {
		return WarmUpConfig{}
	}
	return u.cur.Load().config
}

// Update changes what the limiter decides on. It keeps the tokens that are there, as
// far as the new burst can hold them, or the debt, and how warm it is, as a share of
// the period. Callers who wait go by the new configuration when they ask next. An equal
// configuration changes nothing; one that does not validate is returned as an error and
// changes nothing.
func (u *WarmUp) Update(c WarmUpConfig) error {
	if err := c.Validate(); err != nil || u == nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if old := u.cur.Load(); c != old.config {
		u.swap(old, c, clock.Now())
	}
	return nil
}

// swap puts c in force. The caller holds u.mu. From when the old bucket is frozen to
// when the new plan can be seen, callers go round in renew.
func (u *WarmUp) swap(old *warmPlan, c WarmUpConfig, now int64) {
	next := newWarmPlan(u.desk.name, c, now)
	old.handOver(next, now)
	u.cur.Store(next)
	u.line.stir()
}

// handOver ends p, and begins next with what p has.
func (p *warmPlan) handOver(next *warmPlan, now int64) {
	switch {
	case p.limit.IsUnlimited():
		return // next has all there can be, and is cold
	case p.limit.IsBlocked():
		next.own.used.Store(0)
	case next.most == 0:
		p.own.end()
	default:
		next.heat.begin(p.heat.share(now), now)
		p.own.inherit(&next.own, p.own.handOver(&next.own, KeepLevel, 0, now))
	}
}

// renew is for a caller who found p's bucket frozen, or its scale at its end, which
// happens once in four years.
func (u *WarmUp) renew(p *warmPlan, now int64) {
	if !p.own.ended(now) {
		runtime.Gosched() // it is being replaced
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cur.Load() == p {
		u.swap(p, p.config, now)
	}
}
