package adaptive

import (
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
)

// TimeoutGroup hands out one Timeout for each key, such as a service, route or host,
// made when the key is first asked for, all with the same configuration except where
// an override says otherwise. A key that is slow makes no other one wait.
//
// It holds at most MaxKeys of them. For one more, the longest unused one that has
// little to lose is let go (no call has ended in its Window; if it is looking for its
// limit, none in its History): it lives on while somebody holds it or an Attempt of it,
// and Get returns that same object; then its key is forgotten, and begins anew when it
// comes back. If all are in use, new keys share one overflow Timeout until that changes.
// So a flood of keys costs bounded memory: for each key held up to 33 KiB, or 5 with
// WithCompact.
//
// Get of a known key takes no lock and allocates nothing. A TimeoutGroup starts no
// goroutine, is safe for concurrent use and must not be copied. Make one with
// NewTimeoutGroup. A nil *TimeoutGroup gives nil Timeouts, which let everything pass.
type TimeoutGroup struct {
	name      string
	hooks     *timeoutHooks
	overrides map[string][]TimeoutOption
	keys      []string                      // of overrides, in the order given
	config    atomic.Pointer[TimeoutConfig] // of keys without an override; written by Update
	members   *roster.Roster[Timeout]
	overflow  *Timeout
	overflows atomic.Int64 // how often Get gave the overflow Timeout
}

// NewTimeoutGroup returns an empty group, of Timeouts that stay within base and max
// unless an override has WithBounds. The name stands before the key in the name of
// each: "upstream/orders". It returns every complaint about its arguments, the
// overrides' too, at once.
func NewTimeoutGroup(name string, base, max time.Duration, opts ...TimeoutOption) (*TimeoutGroup, error) {
	s := newTimeoutSettings(base, max)
	s.apply(opts)
	o := s.forGroup()
	if name == "" {
		s.errs = append(s.errs, errors.New("adaptive: the name is empty"))
	}
	if o.most < 1 {
		s.errs = append(s.errs, fmt.Errorf("adaptive: MaxKeys %d is not positive", o.most))
	}
	g := &TimeoutGroup{name: name, hooks: s.hooks.keep(), overrides: o.overrides, keys: o.keys}
	s.errs = append(s.errs, g.checkOverrides(s.TimeoutConfig)...)
	if err := s.check(); err != nil {
		return nil, err
	}
	c := s.TimeoutConfig
	g.config.Store(&c)
	g.members = roster.New(o.most, roster.Kind[Timeout]{Make: g.make, Idle: (*Timeout).idle, LastAt: (*Timeout).lastAt})
	g.overflow = newTimeout(name+"/_overflow", &c, g.hooks, clock.Now())
	return g, nil
}

// Name returns the name given to NewTimeoutGroup.
func (g *TimeoutGroup) Name() string {
	if g == nil {
		return ""
	}
	return g.name
}

// Get returns the Timeout of key, and makes it if there is none.
func (g *TimeoutGroup) Get(key string) *Timeout {
	if g == nil {
		return nil
	}
	if t := g.members.Find(key); t != nil {
		return t
	}
	if t := g.members.Get(key, clock.Now()); t != nil {
		return t
	}
	g.overflows.Add(1)
	return g.overflow
}

// Len returns how many Timeouts the group holds, without the overflow Timeout.
func (g *TimeoutGroup) Len() int {
	if g == nil {
		return 0
	}
	return g.members.Len()
}

// Overflow returns the Timeout that keys share when there is no room, and how often
// it has been given out.
func (g *TimeoutGroup) Overflow() (t *Timeout, times int64) {
	if g == nil {
		return nil, 0
	}
	return g.overflow, g.overflows.Load()
}

// All returns the Timeouts that the group holds, with their keys, in no order. The
// overflow Timeout is not among them.
func (g *TimeoutGroup) All() iter.Seq2[string, *Timeout] {
	if g == nil {
		return func(func(string, *Timeout) bool) {}
	}
	return g.members.All()
}

// make makes the Timeout of a new key.
func (g *TimeoutGroup) make(m *roster.Member[Timeout], now int64) *Timeout {
	c, h := g.config.Load(), g.hooks
	if opts, ok := g.overrides[m.Key]; ok {
		own := g.overridden(*c, opts)
		c, h = &own.TimeoutConfig, own.hooks.keep()
	}
	t := newTimeout(g.name+"/"+m.Key, c, h, now)
	t.member, t.made = m, now
	return t
}

// idle reports whether t would be hardly worse off if it were made anew: no call has
// ended lately, and its limit is not one that it has fought for, or so long ago that it
// remembers none of these calls. Hosts that are gone for good were lost in an outage.
func (t *Timeout) idle(now int64) bool {
	c, quiet := t.plan.Load().config, now-t.tickedAt()
	return quiet >= int64(c.Window) && (t.cur.Load().state <= Resolved || quiet >= int64(c.History))
}

// lastAt is about when a call last ended, or when t was made.
func (t *Timeout) lastAt(int64) int64 { return max(t.made, t.tickedAt()) }

// tickedAt is when the limit was last worked out, long ago if it never was.
func (t *Timeout) tickedAt() int64 {
	if next := t.next.Load(); next != 0 {
		return next - int64(tickEvery)
	}
	return never
}
