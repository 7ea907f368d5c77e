package adaptive

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
)

// LimiterGroup hands out one Limiter for each key, such as a service, host or route, made
// when the key is first asked for, all with the same configuration except where an
// override says otherwise. A key whose calls wait for each other makes no other one wait,
// and one whose calls are slow by nature spoils no other's baseline.
//
// It holds at most as many as WithMaxLimiters says. For one more, the longest unused one
// that has no call under way is let go: it lives on while somebody holds it or a permit of
// it, and Get returns that same object; then its key is forgotten, and begins anew when it
// comes back. If all are in use, new keys share one overflow Limiter until that changes.
// So a flood of keys costs bounded memory, some 4 KiB each, and no key ever has two
// Limiters of its own.
//
// Get of a known key takes no lock and allocates nothing. A LimiterGroup starts no
// goroutine, is safe for concurrent use and must not be copied. Make one with
// NewLimiterGroup. A nil *LimiterGroup gives nil Limiters, which let everything pass.
type LimiterGroup struct {
	name      string
	hooks     *limiterHooks
	overrides map[string][]LimiterOption
	keys      []string                      // of overrides, in the order given
	config    atomic.Pointer[LimiterConfig] // of keys without an override; written by Update
	members   *roster.Roster[Limiter]
	overflow  *Limiter
	overflows atomic.Int64 // how often Get gave the overflow Limiter
}

// NewLimiterGroup returns an empty group. The name stands before the key in the name of
// each: "upstream/orders". It returns every complaint about its options, the overrides'
// too, at once.
func NewLimiterGroup(name string, opts ...LimiterOption) (*LimiterGroup, error) {
	s := newLimiterSettings()
	s.apply(opts)
	o := s.forGroup()
	if name == "" {
		s.errs = append(s.errs, errors.New("adaptive: the name is empty"))
	}
	if o.most < 1 {
		s.errs = append(s.errs, fmt.Errorf("adaptive: MaxLimiters %d is not positive", o.most))
	}
	g := &LimiterGroup{name: name, hooks: s.hooks.keep(), overrides: o.overrides, keys: o.keys}
	s.errs = append(s.errs, g.checkOverrides(s.LimiterConfig)...)
	if err := s.check(); err != nil {
		return nil, err
	}
	c := s.LimiterConfig
	g.config.Store(&c)
	g.members = roster.New(o.most, roster.Kind[Limiter]{Make: g.make, Idle: (*Limiter).idle, LastAt: (*Limiter).lastAt})
	g.overflow = newLimiter(name+"/_overflow", &c, g.hooks, rand.Uint32, clock.Now())
	return g, nil
}

// Name returns the name given to NewLimiterGroup.
func (g *LimiterGroup) Name() string {
	if g == nil {
		return ""
	}
	return g.name
}

// Get returns the Limiter of key, and makes it if there is none.
func (g *LimiterGroup) Get(key string) *Limiter {
	if g == nil {
		return nil
	}
	if l := g.members.Find(key); l != nil {
		return l
	}
	if l := g.members.Get(key, clock.Now()); l != nil {
		return l
	}
	g.overflows.Add(1)
	return g.overflow
}

// Len returns how many Limiters the group holds, without the overflow Limiter.
func (g *LimiterGroup) Len() int {
	if g == nil {
		return 0
	}
	return g.members.Len()
}

// Overflow returns the Limiter that keys share when there is no room, and how often it
// has been given out.
func (g *LimiterGroup) Overflow() (l *Limiter, times int64) {
	if g == nil {
		return nil, 0
	}
	return g.overflow, g.overflows.Load()
}

// All returns the Limiters that the group holds, with their keys, in no order. The
// overflow Limiter is not among them.
func (g *LimiterGroup) All() iter.Seq2[string, *Limiter] {
	if g == nil {
		return func(func(string, *Limiter) bool) {}
	}
	return g.members.All()
}

// make makes the Limiter of a new key.
func (g *LimiterGroup) make(m *roster.Member[Limiter], now int64) *Limiter {
	c, h := g.config.Load(), g.hooks
	if opts, ok := g.overrides[m.Key]; ok {
		own := g.overridden(*c, opts)
		c, h = &own.LimiterConfig, own.hooks.keep()
	}
	l := newLimiter(g.name+"/"+m.Key, c, h, rand.Uint32, now)
	l.member, l.lastUsed = m, now
	return l
}

// limiterUse is what a LimiterGroup knows of the use of a Limiter, under its roster's
// lock. Calls leave no mark for it but their number.
type limiterUse struct {
	admissions uint64 // as of the last look
	lastUsed   int64  // when a look first found so many
}

// idle reports whether l would be hardly worse off if it were made anew: nobody has or
// wants a place.
func (l *Limiter) idle(int64) bool { return l.places.InUse() == 0 && !l.places.Wanted() }

// lastAt is when l was last found used.
func (l *Limiter) lastAt(now int64) int64 {
	if n := l.places.Totals().Admitted; n != l.admissions {
		l.admissions, l.lastUsed = n, now
	}
	return l.lastUsed
}
