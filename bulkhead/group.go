package bulkhead

import (
	"errors"
	"fmt"
	"iter"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
)

// Group hands out one Bulkhead for each key, made when the key is first asked for,
// all with the same configuration except where an override says otherwise.
//
// It holds at most MaxKeys of them. For one more, the longest unused one that is
// empty is let go: it lives on while somebody holds it or a permit of it, and Get
// returns that same object; then its key is forgotten. If all are in use, new keys
// share one overflow bulkhead, with the limit of keys without an override, until that
// changes. So a flood of keys costs bounded memory, and no key ever has two bulkheads
// of its own; calls that it has in the overflow bulkhead do not count in its own.
//
// Get of a known key takes no lock and allocates nothing. A Group starts no
// goroutine, is safe for concurrent use and must not be copied. Make one with
// NewGroup. A nil *Group gives nil bulkheads, which let everything pass.
type Group struct {
	name      string
	overrides map[string][]Option
	keys      []string               // of overrides, in the order given
	config    atomic.Pointer[Config] // of keys without an override; written by Update
	members   *roster.Roster[Bulkhead]
	overflow  *Bulkhead
	overflows atomic.Int64 // how often Get gave the overflow bulkhead
}

// NewGroup returns an empty group, of bulkheads for limit calls at once each. The
// name stands before the key in the name of each: "upstream/orders". It returns every
// complaint about the options, the overrides' too, at once.
func NewGroup(name string, limit int, opts ...Option) (*Group, error) {
	s := newSettings(limit)
	s.apply(opts)
	o := s.forGroup()
	if name == "" {
		s.errs = append(s.errs, errors.New("bulkhead: the name is empty"))
	}
	if o.most < 1 {
		s.errs = append(s.errs, fmt.Errorf("bulkhead: MaxKeys %d is not positive", o.most))
	}
	g := &Group{name: name, overrides: o.overrides, keys: o.keys}
	s.errs = append(s.errs, g.checkOverrides(s.Config)...)
	if err := s.check(); err != nil {
		return nil, err
	}
	c := s.Config
	g.config.Store(&c)
	g.members = roster.New(o.most, roster.Kind[Bulkhead]{Make: g.make, Idle: (*Bulkhead).idle, LastAt: (*Bulkhead).lastAt})
	g.overflow = newBulkhead(name+"/_overflow", c)
	return g, nil
}

// Name returns the name given to NewGroup.
func (g *Group) Name() string {
	if g == nil {
		return ""
	}
	return g.name
}

// Get returns the bulkhead of key, and makes it if there is none.
func (g *Group) Get(key string) *Bulkhead {
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

// Len returns how many bulkheads the group holds, without the overflow bulkhead.
func (g *Group) Len() int {
	if g == nil {
		return 0
	}
	return g.members.Len()
}

// Overflow returns the bulkhead that keys share when there is no room, and how often
// it has been given out.
func (g *Group) Overflow() (b *Bulkhead, times int64) {
	if g == nil {
		return nil, 0
	}
	return g.overflow, g.overflows.Load()
}

// All returns the bulkheads that the group holds, with their keys, in no order. The
// overflow bulkhead is not among them.
func (g *Group) All() iter.Seq2[string, *Bulkhead] {
	if g == nil {
		return func(func(string, *Bulkhead) bool) {}
	}
	return g.members.All()
}

// make makes the bulkhead of a new key.
func (g *Group) make(m *roster.Member[Bulkhead], now int64) *Bulkhead {
	c, _ := g.configOf(m.Key, *g.config.Load()) // it has been validated
	b := newBulkhead(g.name+"/"+m.Key, c)
	b.member, b.lastUsed = m, now
	return b
}

// use is what a Group knows of the use of a bulkhead, under its roster's lock. Calls
// do not read the time, so they leave no mark but their number.
type use struct {
	admissions uint64 // as of the last look
	lastUsed   int64  // when a look first found so many
}

// idle reports whether b would be no worse off if it were made anew: nobody has or
// wants a place.
func (b *Bulkhead) idle(int64) bool { return b.places.InUse() == 0 && !b.places.Wanted() }

// lastAt is when b was last found used.
func (b *Bulkhead) lastAt(now int64) int64 {
	if n := b.places.Totals().Admitted; n != b.admissions {
		b.admissions, b.lastUsed = n, now
	}
	return b.lastUsed
}
