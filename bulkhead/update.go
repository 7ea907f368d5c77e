package bulkhead

// Config returns what the bulkhead decides on.
func (b *Bulkhead) Config() Config {
	if b == nil {
		return Config{}
	}
	return *b.config.Load()
}

// Update changes what the bulkhead decides on, and blocks on nobody. A higher limit
// lets those that wait in at once; under a lower one calls under way stay, and
// nobody is admitted until enough of them have ended. Those that wait keep their
// turn and their time, unless the limit is 0 now; a call that wants more places than
// there are is refused when its turn comes. MaxQueue, MaxWait and CoDelTarget are for
// those that come from now on. An equal Config changes nothing; one that does not
// validate is returned as an error and changes nothing.
func (b *Bulkhead) Update(c Config) error {
	if b == nil {
		return c.Validate()
	}
	return b.updateOwn(func(Config) Config { return c })
}

// SetLimit is Update of the limit alone, in [0, 2³⁰].
func (b *Bulkhead) SetLimit(limit int) error {
	if b == nil {
		return nil
	}
	return b.updateOwn(func(c Config) Config { c.Limit = limit; return c })
}

// updateOwn is update by the user, after which the Group would make b otherwise.
func (b *Bulkhead) updateOwn(change func(Config) Config) error {
	changed, err := b.update(change, true)
	if changed {
		b.member.Needed(b)
	}
	return err
}

// update puts what change makes of the Config in force, and reports whether it is
// another one; own says that it is not the Group's.
func (b *Bulkhead) update(change func(Config) Config, own bool) (changed bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := *b.config.Load()
	c := change(old)
	if err := c.Validate(); err != nil {
		return false, err
	}
	if changed = c != old; changed {
		b.config.Store(&c)
		b.places.Update(c.Limit, c.policy())
	}
	b.member.Configured(own, changed)
	return changed, nil
}
