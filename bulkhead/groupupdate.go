package bulkhead

import (
	"errors"
	"fmt"

	"github.com/sluicego/sluice/internal/roster"
)

// Config returns the configuration of keys without an override.
func (g *Group) Config() Config {
	if g == nil {
		return Config{}
	}
	return *g.config.Load()
}

// Update changes the configuration of every bulkhead, those to come too, as
// Bulkhead.Update does; overrides stay on top of it. If c, or c under an override,
// does not validate, it returns the complaints and changes nothing.
func (g *Group) Update(c Config) error {
	if g == nil {
		return c.Validate()
	}
	if err := errors.Join(append(g.checkOverrides(c), c.Validate())...); err != nil {
		return err
	}
	roster.Spread(&g.config, &c, g.spread)
	return nil
}

// spread gives every bulkhead that lives the configuration c.
func (g *Group) spread(c *Config) {
	set := func(b *Bulkhead, c Config) {
		if _, err := b.update(func(Config) Config { return c }, false); err != nil {
			panic(err) // the very same has been validated
		}
	}
	set(g.overflow, *c)
	for key, b := range g.members.Living() {
		own, _ := g.configOf(key, *c)
		set(b, own)
	}
}

// checkOverrides returns all that is wrong with c under each override.
func (g *Group) checkOverrides(c Config) (errs []error) {
	for _, key := range g.keys {
		if _, err := g.configOf(key, c); err != nil {
			errs = append(errs, fmt.Errorf("bulkhead: override of %q: %w", key, err))
		}
	}
	return errs
}

// configOf returns c with the options of key applied.
func (g *Group) configOf(key string, c Config) (Config, error) {
	s := &settings{Config: c}
	s.apply(g.overrides[key])
	if s.group != nil {
		s.errs = append(s.errs, errGroupOption)
	}
	return s.Config, s.check()
}
