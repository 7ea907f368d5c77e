package ratelimit

import (
	"runtime"

	"github.com/sluicego/sluice/internal/clock"
)

// Config returns what the limiter decides on.
func (q *Priorities) Config() PrioritiesConfig {
	if q == nil {
		return PrioritiesConfig{}
	}
	return q.cur.Load().config
}

// Update changes what the limiter decides on and keeps the tokens that are in each
// bucket, as far as it can still hold them. A class that was assured nothing begins
// with none. An equal Config changes nothing; one that does not validate is returned
// as an error and changes nothing.
func (q *Priorities) Update(c PrioritiesConfig) error {
	if err := c.Validate(); err != nil || q == nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if old := q.cur.Load(); c != old.config {
		q.swap(old, c, clock.Now())
	}
	return nil
}

// swap puts c in force. The caller holds q.mu. From when the first bucket is frozen to
// when the new plan can be seen, callers go round in renew.
func (q *Priorities) swap(old *priorityPlan, c PrioritiesConfig, now int64) {
	next := newPriorityPlan(q.name, c, now)
	for i := range old.buckets {
		was, is := &old.buckets[i], &next.buckets[i]
		switch {
		case was.inUse() && is.inUse():
			used := was.handOver(is, KeepLevel, 0, now)
			was.inherit(is, used)
		case was.inUse():
			was.end()
		case !old.config.Rate.IsUnlimited():
			is.used.Store(0)
		}
	}
	q.cur.Store(next)
}

// renew is for a caller who found a bucket of p frozen, or its scale at its end.
func (q *Priorities) renew(p *priorityPlan, now int64) {
	if !p.ended(now) {
		runtime.Gosched() // it is being replaced
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.cur.Load() == p {
		q.swap(p, p.config, now)
	}
}

// ended reports whether the scales of p are at their end. They all began together.
func (p *priorityPlan) ended(now int64) bool {
	for i := range p.buckets {
		if b := &p.buckets[i]; b.inUse() {
			return b.ended(now)
		}
	}
	return false
}
