package breaker

// Config returns a copy of what the breaker decides on.
func (b *Breaker) Config() Config {
	if b == nil {
		return Config{}
	}
	return b.plan.Load().config.Clone()
}

// Update changes what the breaker decides on, and keeps state, counts, deadlines
// and permits. A shorter open time applies at once, a longer one from the next
// trip; thresholds apply from the next call that is judged. A window whose shape
// changes begins empty. An equal Config changes nothing; one that does not
// validate is returned as an error and changes nothing. c is copied.
func (b *Breaker) Update(c Config) error {
	changed, err := b.configure(c, true)
	if changed {
		b.member.Needed(b)
	}
	return err
}

// configure puts c in force and reports whether it is another one; own says that it is
// not the Group's.
func (b *Breaker) configure(c Config, own bool) (changed bool, err error) {
	if err := c.Validate(); err != nil {
		if b != nil {
			b.logUpdate(err)
		}
		return false, err
	}
	if b == nil {
		return false, nil
	}
	b.mu.Lock()
	old := b.plan.Load()
	if changed = !old.config.Equal(c); changed {
		p := old.withConfig(c.Clone())
		b.plan.Store(p)
		switch e := b.cur.Load(); e.state {
		case Closed:
			b.reshape(e, p)
		case Open:
			e.bringForward(p)
		}
	}
	b.member.Configured(own, changed)
	b.mu.Unlock()
	if changed {
		b.logUpdate(nil)
	}
	return changed, nil
}

// reshape gives e, in Closed, the windows that p wants. Those that are as before
// stay. The caller holds b.mu.
func (b *Breaker) reshape(e *episode, p *plan) {
	have := e.closed.windows.Load()
	want := b.newWindows(p.config, have)
	e.closed.windows.Store(want)
	if want.counts != have.counts {
		have.retire()
	}
	switch f := e.closed.flight.Load(); {
	case !p.config.InFlightSlow:
		e.closed.flight.Store(nil)
	case f == nil || !f.fits(p):
		e.closed.flight.Store(newFlight(p, e))
	}
}

// bringForward moves the deadline of e, in Open, to where p would have set it, if
// that is sooner. The caller holds b.mu.
func (e *episode) bringForward(p *plan) {
	if e.open.fixed {
		return
	}
	base := p.openFor(e.tripped)
	until := stretched(e.began, p.period(base, min(e.level, p.topLevel(base))), e.open.stretch)
	if until < e.open.until.Load() {
		e.open.until.Store(until)
	}
}
