package breaker

import (
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
)

// Group hands out one Breaker for each key, made when the key is first asked for,
// all with the same configuration except where an override says otherwise.
//
// It holds at most MaxKeys of them. For one more, the longest idle one that has
// nothing to lose (closed, past its recovery, its window empty) is let go: it lives
// on while somebody holds it or a permit of it, and Get returns that same object;
// then its key is forgotten. So is one of the dead: open, and an hour after its open
// period nobody has called. If all have something to lose, new keys share one
// overflow breaker until that changes. So a flood of keys costs bounded memory and
// never makes an open breaker that anybody asks forget that it is open.
//
// Get of a known key takes no lock and allocates nothing. A Group starts no
// goroutine, is safe for concurrent use and must not be copied. Make one with
// NewGroup. A nil *Group gives nil breakers, which let everything pass.
type Group struct {
	name      string
	hooks     *hooks
	overrides map[string][]Option
	keys      []string             // of overrides, in the order given
	plan      atomic.Pointer[plan] // of keys without an override; written by Update
	members   *roster.Roster[Breaker]
	overflow  *Breaker
	overflows atomic.Int64 // how often Get gave the overflow breaker
}

// NewGroup returns an empty group. The name stands before the key in the name of
// each breaker: "upstream/orders". It returns every complaint about the options,
// the overrides' too, at once.
func NewGroup(name string, opts ...Option) (*Group, error) {
	s := newSettings()
	s.apply(opts)
	g := s.forGroup()
	if name == "" {
		s.errs = append(s.errs, errors.New("breaker: the name is empty"))
	}
	if g.most < 1 {
		s.errs = append(s.errs, fmt.Errorf("breaker: MaxKeys %d is not positive", g.most))
	}
	for _, key := range g.keys {
		if _, _, err := overridden(s.Config, s.hooks, g.overrides[key]); err != nil {
			s.errs = append(s.errs, fmt.Errorf("breaker: override of %q: %w", key, err))
		}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	group := &Group{name: name, hooks: s.hooks.keep(), overrides: g.overrides, keys: g.keys}
	p := newPlan(s.Config)
	group.plan.Store(p)
	group.members = roster.New(g.most, roster.Kind[Breaker]{Make: group.make, Idle: (*Breaker).idle, LastAt: (*Breaker).lastAt})
	group.overflow = newBreaker(name+"/_overflow", p, group.hooks, clock.Now())
	return group, nil
}

// Name returns the name given to NewGroup.
func (g *Group) Name() string {
	if g == nil {
		return ""
	}
	return g.name
}

// Get returns the breaker of key, and makes it if there is none.
func (g *Group) Get(key string) *Breaker {
	if g == nil {
		return nil
	}
	if b := g.members.Find(key); b != nil {
		return b
	}
	if b := g.members.Get(key, clock.Now()); b != nil {
		return b
	}
	g.overflows.Add(1)
	return g.overflow
}

// Len returns how many breakers the group holds, without the overflow breaker.
func (g *Group) Len() int {
	if g == nil {
		return 0
	}
	return g.members.Len()
}

// Overflow returns the breaker that keys share when there is no room, and how
// often it has been given out.
func (g *Group) Overflow() (b *Breaker, times int64) {
	if g == nil {
		return nil, 0
	}
	return g.overflow, g.overflows.Load()
}

// All returns the breakers that the group holds, with their keys, in no order.
// The overflow breaker is not among them.
func (g *Group) All() iter.Seq2[string, *Breaker] {
	if g == nil {
		return func(func(string, *Breaker) bool) {}
	}
	return g.members.All()
}

// Config returns a copy of the configuration of keys without an override.
func (g *Group) Config() Config {
	if g == nil {
		return Config{}
	}
	return g.plan.Load().config.Clone()
}

// make makes the breaker of a new key.
func (g *Group) make(m *roster.Member[Breaker], now int64) *Breaker {
	p, h := g.plan.Load(), g.hooks
	if opts, ok := g.overrides[m.Key]; ok {
		own, hooks, _ := overridden(p.config, *g.hooks, opts) // it has been validated
		p, h = newPlan(own), hooks.keep()
	}
	b := newBreaker(g.name+"/"+m.Key, p, h, now)
	b.member = m
	return b
}

// deadAfter is how long after its open period a breaker that nobody has called since
// is one of a host or a pod that is no more.
const deadAfter = int64(time.Hour)

// idle reports whether b would be no worse off if it were made anew: closed, with
// nothing counted against it, no recovery under way, no backoff to remember and no
// override; or of the dead.
func (b *Breaker) idle(now int64) bool {
	e, p := b.cur.Load(), b.plan.Load()
	if e.state == Open {
		return p.modeAt(now) == 0 && now-e.open.until.Load() > deadAfter
	}
	if e.state != Closed || p.modeAt(now) != 0 || e.closed.row.Load() != 0 {
		return false
	}
	if e.closed.recovering.Load() && now-e.began < p.ramp || e.steady != 0 && e.levelAt(p, now, p.config.OpenFor) != 0 {
		return false
	}
	for w := e.closed.windows.Load(); w != nil; w = w.next {
		s := w.sum(now)
		// A window of calls never empties by itself, but good calls are no loss.
		if s.Failures+s.Slow+s.GaveUp > 0 || w.calls == nil && s.Total > 0 {
			return false
		}
	}
	return true
}

// lastAt is about when the last call ended, or when the breaker last closed.
func (b *Breaker) lastAt(int64) int64 {
	e := b.cur.Load()
	if e.state != Closed {
		return e.began
	}
	w := e.closed.windows.Load()
	if w.counts != nil {
		return max(e.began, w.counts.LastAt())
	}
	return max(e.began, w.calls.lastAt.Load())
}
