package breaker

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
)

// Group hands out one Breaker for each key, made when the key is first asked for,
// all with the same configuration except where an override says otherwise.
//
// It holds at most MaxKeys of them. For one more, the longest idle one that has
// nothing to lose (closed, past its recovery, its window empty) is let go: it lives
// on while somebody holds it or a permit of it, and Get returns that same object;
// then its key is forgotten. If all have something to lose, new keys share one
// overflow breaker until that changes. So a flood of keys costs bounded memory and
// never makes an open breaker forget that it is open.
//
// Get of a known key takes no lock and allocates nothing. A Group starts no
// goroutine, is safe for concurrent use and must not be copied. Make one with
// NewGroup. A nil *Group gives nil breakers, which let everything pass.
type Group struct {
	name      string
	hooks     *hooks
	most      int
	overrides map[string][]Option
	keys      []string // of overrides, in the order given
	overflow  *Breaker
	overflows atomic.Int64 // how often Get gave the overflow breaker

	members roster

	mu     sync.Mutex // guards members and what follows; no foreign code runs under it
	plan   *plan      // of keys without an override
	held   int        // members that are held strongly
	idle   []*member  // those to let go next, the longest idle first, as of the last look
	lookAt int64      // when to look for idle ones again in any case
	asked  int        // new keys since the last look
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
	group := &Group{name: name, hooks: s.hooks.keep(), most: g.most, overrides: g.overrides, keys: g.keys, plan: newPlan(s.Config)}
	group.overflow = newBreaker(name+"/_overflow", group.plan, group.hooks, clock.Now())
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
	if m := g.members.find(key); m != nil {
		if b := m.strong.Load(); b != nil {
			return b
		}
	}
	return g.get(clock.Now(), strings.Clone(key))
}

// Len returns how many breakers the group holds, without the overflow breaker.
func (g *Group) Len() int {
	if g == nil {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.held
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
	return func(yield func(string, *Breaker) bool) {
		if g == nil {
			return
		}
		for _, m := range g.list() {
			if b := m.strong.Load(); b != nil && !yield(m.key, b) {
				return
			}
		}
	}
}

// Config returns a copy of the configuration of keys without an override.
func (g *Group) Config() Config {
	if g == nil {
		return Config{}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.plan.config.Clone()
}

// list returns the members there are now.
func (g *Group) list() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.members.all()
}
