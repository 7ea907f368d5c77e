package adaptive

import (
	"errors"
	"fmt"

	"github.com/sluicego/sluice/internal/roster"
)

// Config returns the configuration of keys without an override.
func (g *TimeoutGroup) Config() TimeoutConfig {
	if g == nil {
		return TimeoutConfig{}
	}
	return *g.config.Load()
}

// Update changes the configuration of every Timeout, those to come too, as
// Timeout.Update does; overrides stay on top of it. If c, or c under an override, does
// not validate, it returns the complaints and changes nothing.
func (g *TimeoutGroup) Update(c TimeoutConfig) error {
	if g == nil {
		return c.Validate()
	}
	if err := errors.Join(append(g.checkOverrides(c), c.Validate())...); err != nil {
		return err
	}
	roster.Spread(&g.config, &c, g.spread)
	return nil
}

// spread gives every Timeout that lives the configuration c.
func (g *TimeoutGroup) spread(c *TimeoutConfig) {
	g.overflow.configure(c, false)
	for key, t := range g.members.Living() {
		own := c
		if opts, ok := g.overrides[key]; ok {
			own = &g.overridden(*c, opts).TimeoutConfig
		}
		t.configure(own, false)
	}
}

// checkOverrides returns all that is wrong with c under each override.
func (g *TimeoutGroup) checkOverrides(c TimeoutConfig) (errs []error) {
	for _, key := range g.keys {
		s := g.overridden(c, g.overrides[key])
		if s.group != nil {
			s.errs = append(s.errs, errGroupOption)
		}
		if err := s.check(); err != nil {
			errs = append(errs, fmt.Errorf("adaptive: override of %q: %w", key, err))
		}
	}
	return errs
}

// overridden returns c, and the group's foreign code, with opts applied.
func (g *TimeoutGroup) overridden(c TimeoutConfig, opts []TimeoutOption) *timeoutSettings {
	s := &timeoutSettings{TimeoutConfig: c, hooks: *g.hooks}
	s.apply(opts)
	return s
}
