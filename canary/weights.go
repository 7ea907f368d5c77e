package canary

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// SetWeights changes the weights of some versions, all at once; those that are not in
// weights keep theirs, and the stable version gets what is left. It returns every
// complaint, and changes nothing then: a version that there is not (ErrUnknownVersion),
// one that was rolled back (ErrRolledBack, unless the weight is 0), a weight for the
// stable version that is not what is left (ErrStable), an invalid Weight, or more than
// All together. A version that drains ends doing so when it gets a weight. Equal
// weights change nothing.
//
// Picks go on while it works; none waits, and none sees some of the weights only.
func (p *Picker) SetWeights(weights map[string]Weight) error {
	return p.change(Change{Action: ActionSetWeights}, func(plan *Plan, _ time.Time) error {
		return plan.setWeights(weights)
	})
}

func (p *Plan) setWeights(weights map[string]Weight) error {
	var errs []error
	stable, named := Weight(0), false
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		w := weights[name]
		o := p.version(name)
		switch err := w.Validate(); {
		case name == p.Config.Stable && err == nil:
			stable, named = w, true
		case o == nil && name != p.Config.Stable:
			errs = append(errs, fmt.Errorf("%q gets a weight of %v: %w", name, w, ErrUnknownVersion))
		case err != nil:
			errs = append(errs, fmt.Errorf("%q: %w", name, err))
		case w > 0 && p.rolledBack(name) != nil:
			errs = append(errs, fmt.Errorf("%q gets a weight of %v: %w (%s)", name, w, ErrRolledBack, p.rolledBack(name).Cause))
		default:
			o.Weight = w
			if w > 0 {
				p.undrain(name)
			}
		}
	}
	var sum Weight
	for _, o := range p.Config.Versions {
		sum += o.Weight
	}
	if sum > All && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("weights of %d ppm together, more than 1000000", uint64(sum)))
	} else if named && len(errs) == 0 && stable != All-sum {
		errs = append(errs, fmt.Errorf("%q gets a weight of %v, and the others leave %v: %w", p.Config.Stable, stable, All-sum, ErrStable))
	}
	return errors.Join(errs...)
}

// undrain ends the draining of a version.
func (p *Plan) undrain(name string) {
	p.Draining = slices.DeleteFunc(p.Draining, func(d Draining) bool { return d.Version == name })
}

// tidy forgets what is over, and the oldest of what there is too much of.
func (p *Plan) tidy(wall time.Time) {
	p.Draining = slices.DeleteFunc(p.Draining, func(d Draining) bool { return !wall.Before(d.Until) })
	for len(p.RolledBack) > maxRemembered {
		i := slices.IndexFunc(p.RolledBack, func(r RolledBack) bool { return p.version(r.Version) == nil })
		p.RolledBack = slices.Delete(p.RolledBack, i, i+1)
	}
	if n := len(p.Readmitted) - maxRemembered; n > 0 {
		p.Readmitted = slices.Delete(p.Readmitted, 0, n)
	}
}

// equal reports whether two plans say the same.
func (p *Plan) equal(q *Plan) bool {
	return p.Name == q.Name && p.Generation == q.Generation && p.Salt == q.Salt && p.Killed == q.Killed &&
		p.Config.Equal(q.Config) && slices.Equal(p.Readmitted, q.Readmitted) &&
		slices.EqualFunc(p.Draining, q.Draining, func(a, b Draining) bool {
			return a.Version == b.Version && a.Until.Equal(b.Until)
		}) &&
		slices.EqualFunc(p.RolledBack, q.RolledBack, func(a, b RolledBack) bool {
			at := a.At.Equal(b.At)
			a.At, b.At = time.Time{}, time.Time{}
			return at && a == b
		})
}
