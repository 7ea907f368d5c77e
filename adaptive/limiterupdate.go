package adaptive

// Config returns a copy of what the Limiter decides on.
func (l *Limiter) Config() LimiterConfig {
	if l == nil {
		return LimiterConfig{}
	}
	return *l.plan.Load().config
}

// Update changes what the Limiter decides on, blocks on nobody, and keeps what it has
// learnt: the limit is within new bounds at once, and follows new numbers from the next
// window on. A higher limit lets those that wait in at once; under a lower one calls
// under way stay. Those that wait keep their turn and their time. Another kind of rule
// begins to learn anew, from the limit that there is; Initial is for new Limiters. An
// equal LimiterConfig changes nothing; one that does not validate is returned as an error
// and changes nothing.
func (l *Limiter) Update(c LimiterConfig) error {
	if err := c.Validate(); err != nil || l == nil {
		return err
	}
	if l.configure(&c, true) {
		l.member.Needed(l) // the group would make it otherwise
	}
	return nil
}

// configure puts c, which has been validated, in force, and reports whether it is another
// one. own says that it is not the LimiterGroup's.
func (l *Limiter) configure(c *LimiterConfig, own bool) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	old := l.plan.Load()
	if changed = *old.config != *c; changed {
		p := &limiterPlan{config: c, ranked: c.ranked(), tracker: old.tracker}
		if old.config.Rule.Kind != c.Rule.Kind && l.hooks.algorithm == nil {
			p.tracker = newLimitTracker(&c.Rule, l.hooks, l.draw)
		}
		l.plan.Store(p)
		limit := l.exact
		if c.Rule.Kind == LimitFixed && l.hooks.algorithm == nil {
			limit = float64(c.Rule.Limit)
		}
		l.exact = min(max(limit, float64(c.Min)), float64(c.Max))
		l.places.Update(int(l.exact), c.policy())
	}
	l.member.Configured(own, changed)
	return changed
}
