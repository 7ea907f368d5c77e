package ratelimit

import "errors"

// exactPlan is a configuration that is ready for use. It never changes.
type exactPlan struct {
	config KeyedExactConfig
	own    map[string]Config
}

func newExactPlan(c KeyedExactConfig) *exactPlan {
	p := &exactPlan{c, make(map[string]Config, len(c.Keys))}
	for _, key := range c.Keys {
		p.own[key.Key] = key.Config
	}
	return p
}

// of is the configuration of a key.
func (p *exactPlan) of(key string) Config {
	if own, ok := p.own[key]; ok {
		return own
	}
	return p.config.Config
}

// Config returns a copy of what the KeyedExact decides on.
func (k *KeyedExact) Config() KeyedExactConfig {
	if k == nil {
		return KeyedExactConfig{}
	}
	return k.plan.Load().config.Clone()
}

// Update changes what the KeyedExact decides on, and keeps the tokens of each key as
// Limiter.Update does. An equal KeyedExactConfig changes nothing; one that does not
// validate, or changes MaxKeys, is returned as an error and changes nothing. c is copied.
func (k *KeyedExact) Update(c KeyedExactConfig) error {
	if err := c.Validate(); err != nil || k == nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	old := k.plan.Load().config
	if c.MaxKeys != old.MaxKeys {
		var v complaints
		v.add("MaxKeys %d is not %d, which stays", c.MaxKeys, old.MaxKeys)
		return v[0]
	}
	if old.Equal(c) {
		return nil
	}
	p := newExactPlan(c.Clone())
	k.plan.Store(p)
	// Members are listed after that, so that one which is made meanwhile is among them
	// or has seen it.
	errs := []error{k.overflow.Update(c.Config)}
	for _, m := range k.members.Members() {
		if e := m.Alive(); e != nil {
			errs = append(errs, e.Update(p.of(m.Key)))
			m.Needed(e)
		}
	}
	return errors.Join(errs...)
}
