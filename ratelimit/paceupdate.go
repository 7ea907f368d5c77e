package ratelimit

import (
	"runtime"

	"github.com/sluicego/sluice/internal/clock"
)

// Config returns what the pacer decides on.
func (p *Pacer) Config() PacerConfig {
	if p == nil {
		return PacerConfig{}
	}
	return p.cur.Load().config
}

// Update changes what the pacer decides on. Callers who wait keep the time that they
// were promised, and the next slot comes after them. An equal configuration changes
// nothing; one that does not validate is returned as an error and changes nothing.
func (p *Pacer) Update(c PacerConfig) error {
	if err := c.Validate(); err != nil || p == nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.cur.Load(); c != old.config {
		p.swap(old, c, clock.Now())
	}
	return nil
}

// swap puts c in force. The caller holds p.mu. From when the old slots are frozen to when
// the new plan can be seen, callers go round in renew.
func (p *Pacer) swap(old *pacePlan, c PacerConfig, now int64) {
	next := newPacePlan(p.desk.name, c, now)
	old.handOver(next, now)
	p.cur.Store(next)
}

// renew is for a caller who found plan frozen, or its scale at its end, which happens
// once in four years.
func (p *Pacer) renew(plan *pacePlan, now int64) {
	if !plan.ended(now) {
		runtime.Gosched() // it is being replaced
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cur.Load() == plan {
		p.swap(plan, plan.config, now)
	}
}
