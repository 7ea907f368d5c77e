package adaptive

import "github.com/sluicego/sluice/internal/clock"

// Config returns a copy of what the Timeout decides on.
func (t *Timeout) Config() TimeoutConfig {
	if t == nil {
		return TimeoutConfig{}
	}
	return *t.plan.Load().config
}

// Update changes what the Timeout decides on, and keeps what it has learnt: the limit
// is within new bounds at once, and follows new numbers from the next time that it is
// worked out. Attempts under way keep their limit. Another kind of rule, another
// Window, History or Compact begins to learn anew, from the limit that there is. An
// equal TimeoutConfig changes nothing; one that does not validate is returned as an
// error and changes nothing.
func (t *Timeout) Update(c TimeoutConfig) error {
	if err := c.Validate(); err != nil || t == nil {
		return err
	}
	if t.configure(&c, true) {
		t.member.Needed(t)
	}
	return nil
}

// configure puts c, which has been validated, in force, and reports whether it is
// another one; own says that it is not the TimeoutGroup's.
func (t *Timeout) configure(c *TimeoutConfig, own bool) (changed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old := t.plan.Load()
	if changed = *old.config != *c; changed {
		t.replace(old, c)
	}
	t.member.Configured(own, changed)
	return changed
}

// replace puts c in the place of old. The caller holds t.mu.
func (t *Timeout) replace(old *timeoutPlan, c *TimeoutConfig) {
	p := t.newPlan(c, t.adapt(old, c))
	t.plan.Store(p)
	for {
		have := t.cur.Load()
		w := t.newTerm(p, Estimate{Limit: have.limit, Median: have.median, Probing: have.probing, State: have.state})
		if c.Rule.Kind == KindFixed && t.hooks.estimator == nil {
			w = t.newTerm(p, Estimate{Limit: c.Rule.Limit})
		}
		if t.cur.CompareAndSwap(have, w) {
			return
		}
	}
}

// adapt returns the estimator for c: that of old if it can go on, or one that has
// yet to learn. The caller holds t.mu.
func (t *Timeout) adapt(old *timeoutPlan, c *TimeoutConfig) tracker {
	was := old.config
	same := was.Compact == c.Compact && was.Window == c.Window && was.History == c.History && was.Rule.Kind == c.Rule.Kind
	switch est := old.est.(type) {
	case *foreign:
		return est
	case *kaplanMeier:
		if same {
			est.tune(c.tuning(), c.Max)
			return est
		}
	case *quantileMultiple:
		if same && was.Rule == c.Rule {
			est.regrid(c.Max)
			return est
		}
	default:
		if was.Rule == c.Rule {
			return est
		}
	}
	t.finishedBefore.Add(old.est.finished())
	return newBuiltIn(c, t.cur.Load().limit, clock.Now())
}
