package ratelimit

import "github.com/sluicego/sluice/internal/clock"

// Config returns what the limiter decides on.
func (w *SlidingWindow) Config() SlidingWindowConfig {
	if w == nil {
		return SlidingWindowConfig{}
	}
	return w.cur.Load().config
}

// Update changes what the limiter decides on and keeps what is counted. If windows
// become longer or shorter, what counts now is taken for the count of the window
// before, and a new one begins. Callers who wait go by the new limit when they ask
// next. An equal configuration changes nothing; one that does not validate is returned
// as an error and changes nothing.
func (w *SlidingWindow) Update(c SlidingWindowConfig) error {
	if err := c.Validate(); err != nil || w == nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.cur.Load(); c != old.config {
		w.cur.Store(newSlidingPlan(w.desk.name, c, old, clock.Now()))
		w.line.stir()
	}
	return nil
}

// Config returns what the limiter decides on.
func (l *SlidingLog) Config() SlidingLogConfig {
	if l == nil {
		return SlidingLogConfig{}
	}
	return l.cur.Load().config
}

// Update changes what the limiter decides on and keeps what it remembers, which may
// not reach as far back as a longer window or a higher limit wants at first. Callers
// who wait go by the new limit when they ask next. An equal configuration changes
// nothing; one that does not validate is returned as an error and changes nothing.
func (l *SlidingLog) Update(c SlidingLogConfig) error {
	if err := c.Validate(); err != nil || l == nil {
		return err
	}
	l.stamps.mu.Lock()
	defer l.stamps.mu.Unlock()
	if c != l.cur.Load().config {
		p := newLogPlan(l.desk.name, c)
		l.stamps.reach(p.memory())
		l.cur.Store(p)
		l.line.stir()
	}
	return nil
}
