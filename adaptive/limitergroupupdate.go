package adaptive

import (
	"errors"
	"fmt"

	"github.com/sluicego/sluice/internal/roster"
)

// Config returns the configuration of keys without an override.
func (g *LimiterGroup) Config() LimiterConfig {
	if g == nil {
		return LimiterConfig{}
	}
	return *g.config.Load()
}

// Update changes the configuration of every Limiter, those to come too, as
// Limiter.Update does; overrides stay on top of it. If c, or c under an override, does
// not validate, it returns the complaints and changes nothing.
func (g *LimiterGroup) Update(c LimiterConfig) error {
	if g == nil {
		return c.Validate()
	}
	if err := errors.Join(append(g.checkOverrides(c), c.Validate())...); err != nil {
		return err
	}
	roster.Spread(&g.config, &c, g.spread)
	return nil
}

// spread gives every Limiter that lives the configuration c.
func (g *LimiterGroup) spread(c *LimiterConfig) {
	g.overflow.configure(c, false)
	for key, l := range g.members.Living() {
		own := c
		if opts, ok := g.overrides[key]; ok {
			own = &g.overridden(*c, opts).LimiterConfig
		}
		l.configure(own, false)
	}
}

// checkOverrides returns all that is wrong with c under each override.
func (g *LimiterGroup) checkOverrides(c LimiterConfig) (errs []error) {
	for _, key := range g.keys {
		s := g.overridden(c, g.overrides[key])
		if s.group != nil {
			s.errs = append(s.errs, errLimiterGroupOption)
		}
		if err := s.check(); err != nil {
			errs = append(errs, fmt.Errorf("adaptive: override of %q: %w", key, err))
		}
	}
	return errs
}

// overridden returns c, and the group's foreign code, with opts applied.
func (g *LimiterGroup) overridden(c LimiterConfig, opts []LimiterOption) *limiterSettings {
	s := &limiterSettings{LimiterConfig: c, hooks: *g.hooks}
	s.apply(opts)
	return s
}
