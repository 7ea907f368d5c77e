package canary

import (
	"fmt"
	"slices"
	"time"
)

// Rollback takes a version's whole share away, for good: after it has returned, no
// pick that begins yields the version in this process, whatever the request asks for,
// and the version gets no weight until Readmit. Its users go to the stable version.
// cause is for people.
//
// A version that was rolled back already stays as it is, with the first cause; one
// that is falling (RollbackOver) has fallen. The stable version cannot be rolled back
// (ErrStable).
func (p *Picker) Rollback(version, cause string) error {
	return p.change(Change{Action: ActionRollback, Version: version, Cause: cause}, func(plan *Plan, wall time.Time) error {
		return plan.rollBack(version, cause, 0, wall)
	})
}

// RollbackOver is Rollback for a stable version that has to warm up: the version's
// share falls to nothing in a straight line over d, those furthest from its lane's
// anchor first, so that each user moves once. Overrides and stored assignments end at
// once. All replicas that Apply the plan see the same, as far as their wall clocks
// agree; none takes longer over it than d, whatever its clock says.
func (p *Picker) RollbackOver(version, cause string, d time.Duration) error {
	if d < 0 {
		return fmt.Errorf("canary: RollbackOver of %q takes %v, which is negative", version, d)
	}
	return p.change(Change{Action: ActionRollbackOver, Version: version, Cause: cause}, func(plan *Plan, wall time.Time) error {
		return plan.rollBack(version, cause, d, wall)
	})
}

func (p *Plan) rollBack(version, cause string, over time.Duration, wall time.Time) error {
	if version == p.Config.Stable {
		return fmt.Errorf("rollback of %q: %w", version, ErrStable)
	}
	if r := p.rolledBack(version); r != nil {
		if over == 0 { // also if it should have fallen by now: the wall clock may have been set
			r.Over, r.From = 0, 0
		}
		return nil
	}
	o := p.version(version)
	if o == nil {
		return fmt.Errorf("rollback of %q: %w", version, ErrUnknownVersion)
	}
	r := RolledBack{Version: version, Cause: brief(cause), At: wall, Lane: o.Lane, Generation: p.Generation + 1}
	if over > 0 {
		r.Over, r.From = over, o.Weight
	}
	o.Weight = 0
	p.undrain(version)
	p.unreadmit(version)
	p.RolledBack = append(p.RolledBack, r)
	return nil
}

// unreadmit forgets that a rollback was taken back.
func (p *Plan) unreadmit(version string) {
	p.Readmitted = slices.DeleteFunc(p.Readmitted, func(r Readmitted) bool { return r.Version == version })
}

// Readmit forgets that a version was rolled back. It gets no weight by that; if it was
// falling, it has fallen.
func (p *Picker) Readmit(version string) error {
	return p.change(Change{Action: ActionReadmit, Version: version}, func(plan *Plan, _ time.Time) error {
		if plan.rolledBack(version) == nil {
			return nil
		}
		plan.RolledBack = slices.DeleteFunc(plan.RolledBack, func(r RolledBack) bool { return r.Version == version })
		plan.unreadmit(version)
		plan.Readmitted = append(plan.Readmitted, Readmitted{version, plan.Generation + 1})
		return nil
	})
}

// Promote makes a version the stable one, in one step. Nobody on it moves, nor on any
// other version that keeps its weight; what the old stable version still had goes to
// the new one. So at the end of a rollout, when the version has all that the others
// leave, nobody moves at all. The old stable version is retired.
//
// The salt stays, if other versions have a weight still. Else the next rollout has
// another one, unless it was given.
func (p *Picker) Promote(version string) error {
	return p.change(Change{Action: ActionPromote, Version: version}, func(plan *Plan, wall time.Time) error {
		return plan.promote(version, wall)
	})
}

func (p *Plan) promote(version string, wall time.Time) error {
	switch {
	case version == p.Config.Stable:
		return nil
	case p.version(version) == nil:
		return fmt.Errorf("promotion of %q: %w", version, ErrUnknownVersion)
	case p.rolledBack(version) != nil:
		return fmt.Errorf("promotion of %q: %w", version, ErrRolledBack)
	}
	p.drop(version)
	p.Config.Stable = version
	falls := func(r RolledBack) bool { return r.falling(wall) }
	if p.stableWeight() == All && !slices.ContainsFunc(p.RolledBack, falls) {
		p.Salt = p.Config.salt(p.Name)
	}
	return nil
}

// Retire takes a version out of the plan. Its users go to the stable version, and its
// lane is free. What is under way in it can be seen until it is forgotten (Retired).
// A version that is retired already is no error; the stable one is (ErrStable).
func (p *Picker) Retire(version string) error {
	if p == nil {
		return nil
	}
	known := p.Version(version) != nil
	return p.change(Change{Action: ActionRetire, Version: version}, func(plan *Plan, _ time.Time) error {
		if version == plan.Config.Stable {
			return fmt.Errorf("retirement of %q: %w", version, ErrStable)
		}
		if plan.version(version) == nil && !known {
			return fmt.Errorf("retirement of %q: %w", version, ErrUnknownVersion)
		}
		if r := plan.rolledBack(version); r != nil {
			r.Over, r.From = 0, 0
		}
		plan.drop(version)
		return nil
	})
}

// Drain lets a version serve for d only those whose assignment was stored (Input.Sticky);
// it gets nobody new. Then it has nobody; Retire takes it out. Where assignments are
// not stored it is as a weight of 0. A second Drain sets another time.
func (p *Picker) Drain(version string, d time.Duration) error {
	if d <= 0 {
		return fmt.Errorf("canary: Drain of %q takes %v, which is not positive", version, d)
	}
	return p.change(Change{Action: ActionDrain, Version: version}, func(plan *Plan, wall time.Time) error {
		o := plan.version(version)
		switch {
		case version == plan.Config.Stable:
			return fmt.Errorf("draining of %q: %w", version, ErrStable)
		case o == nil:
			return fmt.Errorf("draining of %q: %w", version, ErrUnknownVersion)
		case plan.rolledBack(version) != nil:
			return fmt.Errorf("draining of %q: %w", version, ErrRolledBack)
		}
		o.Weight = 0
		plan.undrain(version)
		plan.Draining = append(plan.Draining, Draining{version, wall.Add(d)})
		return nil
	})
}

// drop takes a version out of the configuration.
func (p *Plan) drop(version string) {
	p.undrain(version)
	p.Config.Versions = slices.DeleteFunc(p.Config.Versions, func(o VersionConfig) bool { return o.Name == version })
}

// Kill sends everything to the stable version at once, also what is overridden; the
// weights stay for when Revive ends it. cause is for people. Unlike a rollback it is no
// more than a part of the plan: one that is newer and does not have it ends it when it is
// applied, so in a fleet kill where the plans come from.
func (p *Picker) Kill(cause string) error {
	if cause = brief(cause); cause == "" {
		cause = "killed"
	}
	return p.change(Change{Action: ActionKill, Cause: cause}, func(plan *Plan, _ time.Time) error {
		if plan.Killed == "" {
			plan.Killed = cause
		}
		return nil
	})
}

// Revive ends Kill.
func (p *Picker) Revive() error {
	return p.change(Change{Action: ActionRevive}, func(plan *Plan, _ time.Time) error {
		plan.Killed = ""
		return nil
	})
}
