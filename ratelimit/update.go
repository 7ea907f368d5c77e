package ratelimit

import (
	"fmt"
	"runtime"

	"github.com/sluicego/sluice/internal/clock"
)

// Config returns what the limiter decides on.
func (l *Limiter) Config() Config {
	if l == nil {
		return Config{}
	}
	return l.cur.Load().config
}

// Update changes what the limiter decides on and keeps the tokens that are there, as
// far as the new burst can hold them, or the debt. Reservations and callers who wait
// keep the time that they were promised; refunds of before are worth what they were.
// An equal Config changes nothing; one that does not validate is returned as an error
// and changes nothing.
func (l *Limiter) Update(c Config) error { return l.UpdateLevel(c, KeepLevel) }

// UpdateLevel is Update with a say in what becomes of the tokens.
func (l *Limiter) UpdateLevel(c Config, how Level) error {
	if how < KeepLevel || how > ResetLevel {
		return fmt.Errorf("ratelimit: Level %d is not one of keep, proportional, reset", uint8(how))
	}
	if err := c.Validate(); err != nil || l == nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if old := l.cur.Load(); c != old.config || how == ResetLevel {
		l.swap(old, c, how, clock.Now())
	}
	return nil
}

// swap puts c in force. The caller holds l.mu. From when the old bucket is frozen to
// when the new plan can be seen, callers go round in renew.
func (l *Limiter) swap(old *plan, c Config, how Level, now int64) *plan {
	next := l.newPlan(c, now)
	old.handOver(next, how, &l.queue, now)
	l.cur.Store(next)
	l.wakeFirst()
	return next
}

func (l *Limiter) newPlan(c Config, now int64) *plan {
	p := newPlan(l.name, c, now)
	if l.strict && p.most > 0 {
		p.policy = "strict_window"
		p.limit.Tokens += p.most - 1 // see StrictWindow
	}
	return p
}

// current returns the plan in force, with a scale that reaches beyond now. The caller
// holds l.mu.
func (l *Limiter) current(now int64) *plan {
	p := l.cur.Load()
	if p.most > 0 && p.own.ended(now) {
		p = l.swap(p, p.config, KeepLevel, now)
	}
	return p
}

// renew is for a caller who found p's bucket frozen, or its scale at its end, which
// happens once in four years.
func (l *Limiter) renew(p *plan, now int64) {
	if !p.own.ended(now) {
		runtime.Gosched() // it is being replaced
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current(now)
}
