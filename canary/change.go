package canary

import (
	"fmt"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// Change is one change of a Picker's plan.
type Change struct {
	// Name is the Picker's.
	Name string
	// Generation is that of the plan after it.
	Generation uint64
	// Action is what was done, to Version if it was done to one; Cause is the word that
	// Rollback or Kill was given.
	Action  Action
	Version string
	Cause   string
	// Diff is who moves.
	Diff Diff
	// Plan is the plan after it.
	Plan Plan
	// Time is when it happened, by the wall clock.
	Time time.Time
}

// Action is what changes a plan.
type Action uint8

// One for each method that changes plans.
const (
	ActionSetWeights Action = iota + 1
	ActionRollback
	ActionRollbackOver
	ActionReadmit
	ActionPromote
	ActionRetire
	ActionDrain
	ActionKill
	ActionRevive
	ActionUpdate
	ActionApply
)

var actionNames = [...]string{
	ActionSetWeights: "set_weights", ActionRollback: "rollback", ActionRollbackOver: "rollback_over",
	ActionReadmit: "readmit", ActionPromote: "promote", ActionRetire: "retire", ActionDrain: "drain",
	ActionKill: "kill", ActionRevive: "revive", ActionUpdate: "update", ActionApply: "apply",
}

// String returns the action in snake case.
func (a Action) String() string {
	if a > 0 && int(a) < len(actionNames) {
		return actionNames[a]
	}
	return fmt.Sprintf("Action(%d)", uint8(a))
}

// MarshalText returns the text of String.
func (a Action) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// change edits a copy of the plan, puts it in force if it differs, and tells of it.
func (p *Picker) change(c Change, edit func(plan *Plan, wall time.Time) error) error {
	if p == nil {
		return nil
	}
	err := p.alter(c, edit)
	p.deliver()
	return err
}

// alter is change without telling, for a caller that holds a lock.
func (p *Picker) alter(c Change, edit func(plan *Plan, wall time.Time) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := clock.Now()
	wall := clock.Wall(now).Round(0) // replicas can read no monotonic time
	old := p.current.Load()
	next := old.plan.Clone()
	if err := edit(&next, wall); err != nil {
		return fmt.Errorf("canary %q: %w", p.name, err)
	}
	if next.equal(&old.plan) {
		return nil
	}
	if next.Generation == old.generation {
		next.Generation++
	}
	next.tidy(wall)
	p.publish(next, now)
	if len(p.onChange) > 0 || p.logger != nil {
		c.Name, c.Generation, c.Time = p.name, next.Generation, wall
		c.Plan, c.Diff = next.Clone(), diff(&old.plan, &next)
		p.events.Push(c)
	}
	return nil
}

// deliver tells listeners what waits for them. The caller holds no lock.
func (p *Picker) deliver() { p.events.Deliver(p.tell, nil) }

// publish puts a plan in force. It is the only writer of current; the caller holds mu.
func (p *Picker) publish(plan Plan, now int64) {
	t := newTable(plan, p.hash, !p.uncounted, p.object, p.current.Load(), now, clock.Wall(now).Round(0))
	p.current.Store(t)
	p.remember(t)
}

// object returns the one Version of a name. The caller holds mu.
func (p *Picker) object(name string) *Version {
	v := p.known[name]
	if v == nil {
		v = &Version{name: name}
		p.known[name] = v
	}
	return v
}
