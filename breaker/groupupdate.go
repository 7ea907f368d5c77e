package breaker

import (
	"errors"
	"fmt"

	"github.com/sluicego/sluice/internal/roster"
)

// Update changes the configuration of every breaker, those to come too, as
// Breaker.Update does; overrides stay on top of it. If c, or c under an override,
// does not validate, it returns the complaints and changes nothing.
func (g *Group) Update(c Config) error {
	if g == nil {
		return c.Validate()
	}
	if err := g.checkUpdate(c); err != nil {
		return err
	}
	roster.Spread(&g.plan, newPlan(c.Clone()), g.spread)
	return nil
}

// checkUpdate returns all that is wrong with c, by itself and under each override.
func (g *Group) checkUpdate(c Config) error {
	errs := []error{c.Validate()}
	for _, key := range g.keys {
		if _, _, err := overridden(c, *g.hooks, g.overrides[key]); err != nil {
			errs = append(errs, fmt.Errorf("breaker: override of %q: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// spread gives every breaker that lives the configuration of p.
func (g *Group) spread(p *plan) {
	errs := []error{g.overflow.Update(p.config)}
	for key, b := range g.members.Living() {
		own, _, _ := overridden(p.config, *g.hooks, g.overrides[key])
		_, err := b.configure(own, false)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		panic(err) // checkUpdate has validated the very same
	}
}
