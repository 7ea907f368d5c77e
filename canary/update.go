package canary

import (
	"fmt"
	"slices"
	"time"
)

// Config returns a copy of the configuration in force, with the weights as they are.
func (p *Picker) Config() Config {
	if p == nil {
		return Config{}
	}
	return p.current.Load().plan.Config.Clone()
}

// Update changes the configuration: it is how versions come in. Rollbacks stay
// remembered, so a version that was rolled back cannot get a weight by it
// (ErrRolledBack). If c does not validate, it returns the complaints and changes
// nothing; an equal configuration changes nothing either.
//
// A salt that is worked out stays as long as the stable version does. With another
// salt everyone is dealt anew.
func (p *Picker) Update(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return p.change(Change{Action: ActionUpdate}, updating(c))
}

// updating edits a plan to have the valid configuration c.
func updating(c Config) func(*Plan, time.Time) error {
	return func(plan *Plan, _ time.Time) error {
		for _, o := range c.Versions {
			if r := plan.rolledBack(o.Name); r != nil && o.Weight > 0 {
				return fmt.Errorf("%q gets a weight of %v: %w (%s)", o.Name, o.Weight, ErrRolledBack, r.Cause)
			}
		}
		if plan.rolledBack(c.Stable) != nil {
			return fmt.Errorf("%q becomes stable: %w", c.Stable, ErrRolledBack)
		}
		if plan.Config.Equal(c) {
			return nil
		}
		if c.Salt != "" || plan.Config.Salt != "" || c.Stable != plan.Config.Stable {
			plan.Salt = c.salt(plan.Name)
		}
		plan.Config = c.Clone()
		plan.Draining = slices.DeleteFunc(plan.Draining, func(d Draining) bool {
			o := plan.version(d.Version)
			return o == nil || o.Weight > 0
		})
		return nil
	}
}

// Plan returns a copy of the plan in force, for replicas to Apply.
func (p *Picker) Plan() Plan {
	if p == nil {
		return Plan{}
	}
	return p.current.Load().plan.Clone()
}

// Apply puts the plan of another replica in force. One that is older than that in
// force is refused with ErrOlderPlan, so a message that comes late does no harm; the
// very same is accepted and changes nothing.
//
// What was rolled back here stays rolled back, also where the plan does not know of it
// yet, or would take longer over it, unless it says that the version was readmitted
// since: in doubt the stable version serves. A plan in which it is the stable version is
// refused with ErrRolledBack, until Readmit. If the plan does not validate, Apply returns
// the complaints and changes nothing.
func (p *Picker) Apply(plan Plan) error {
	if err := plan.Validate(); err != nil {
		return err
	}
	return p.change(Change{Action: ActionApply}, func(current *Plan, wall time.Time) error {
		next := plan.Clone()
		if next.Name != current.Name {
			return fmt.Errorf("the plan is for %q", next.Name)
		}
		older := next.Generation < current.Generation
		for _, r := range current.RolledBack {
			if err := next.keep(r, wall); err != nil && !older {
				return err
			}
		}
		sortRolledBack(next.RolledBack)
		if older || next.Generation == current.Generation && !next.equal(current) {
			return fmt.Errorf("generation %d comes after %d: %w", next.Generation, current.Generation, ErrOlderPlan)
		}
		*current = next
		return nil
	})
}

// keep brings a rollback of the plan before into p, unless p takes it back.
func (p *Plan) keep(r RolledBack, wall time.Time) error {
	if back := p.readmitted(r.Version); back != nil && back.Generation > r.Generation {
		return nil
	}
	if r.Version == p.Config.Stable {
		return fmt.Errorf("%q becomes stable: %w (%s)", r.Version, ErrRolledBack, r.Cause)
	}
	p.unreadmit(r.Version)
	p.undrain(r.Version)
	if o := p.version(r.Version); o != nil {
		o.Weight = 0
	}
	known := p.rolledBack(r.Version)
	if known == nil {
		p.RolledBack = append(p.RolledBack, r)
		return nil
	}
	latest := max(known.Generation, r.Generation)
	if r.left(wall) <= known.left(wall) {
		*known = r
	}
	known.Generation = latest
	return nil
}
