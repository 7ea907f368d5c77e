package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
)

// SharedGroup hands out one Shared limiter for each key, such as a user or a tenant,
// made when the key is first asked for, all with the same configuration except where
// an override says otherwise. To the fleet they are one limiter: nodes are counted,
// and the store is found dead or alive, once for all keys, and one Run serves them.
//
// It holds at most MaxKeys of them. For one more, the longest idle one that has
// nothing to lose (no lease, no debt, no refusal to remember, and this node's own
// limit full) is let go, and the key's bucket stays in the store. If all have something
// to lose, new keys share one overflow limiter, and its bucket, until that changes. So
// a flood of keys costs bounded memory. A key takes about 2 KiB.
//
// Get of a known key takes no lock and allocates nothing. A SharedGroup starts no
// goroutine but in Run, is safe for concurrent use and must not be copied. Make one
// with NewSharedGroup. A nil *SharedGroup gives nil limiters, which let everything
// pass.
type SharedGroup struct {
	node      *node
	overrides map[string][]SharedOption
	keys      []string // of overrides, in the order given
	overflow  *Shared
	overflows atomic.Int64 // how often Get gave the overflow limiter
	members   *roster.Roster[Shared]

	// config is that of keys without an override. Written by Update, under mu.
	config atomic.Pointer[SharedConfig]
	mu     sync.Mutex // puts updates in order
}

// NewSharedGroup returns an empty group of that name, which must not be empty and is
// the same in all processes that share the limits. It returns every complaint about
// the options, the overrides' too, at once.
func NewSharedGroup(name string, store Store, t Threshold, opts ...SharedOption) (*SharedGroup, error) {
	s := newSharedSettings(sharedConfigOf(t))
	s.apply(opts)
	own := s.forGroup()
	if own.most < 1 {
		s.errs = append(s.errs, fmt.Errorf("ratelimit: MaxKeys %d is not positive", own.most))
	}
	g := &SharedGroup{overrides: own.overrides, keys: own.keys}
	s.errs = append(s.errs, g.checkOverrides(s.SharedConfig))
	if err := s.check(name, store); err != nil {
		return nil, err
	}
	now := clock.Now()
	g.node = newNode(name, store, s, now)
	g.config.Store(&s.SharedConfig)
	g.overflow = newShared(g.node, overflowKey, s.SharedConfig, now)
	g.members = roster.New(own.most, roster.Kind[Shared]{Make: g.make, Idle: (*Shared).dispensable, LastAt: (*Shared).lastAt})
	return g, nil
}

// overflowKey is what the store knows the overflow limiter by. No user is called that.
const overflowKey = "\x00overflow"

// Name returns the name given to NewSharedGroup.
func (g *SharedGroup) Name() string {
	if g == nil {
		return ""
	}
	return g.node.name
}

// Get returns the limiter of key, and makes it if there is none. The key "" is one as
// any other.
func (g *SharedGroup) Get(key string) *Shared {
	if g == nil {
		return nil
	}
	if s := g.members.Find(key); s != nil {
		return s
	}
	if s := g.members.Get(key, clock.Now()); s != nil {
		return s
	}
	g.overflows.Add(1)
	return g.overflow
}

// Run does for all keys what Shared.Run does for one.
func (g *SharedGroup) Run(ctx context.Context) error {
	if g == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return g.node.run(ctx, g.Config, func(yield func(*account) bool) {
		for _, s := range g.members.All() {
			if !yield(&s.account) {
				return
			}
		}
	})
}

// Len returns how many limiters the group holds, without the overflow limiter.
func (g *SharedGroup) Len() int {
	if g == nil {
		return 0
	}
	return g.members.Len()
}

// Overflow returns the limiter that keys share when there is no room, and how often it
// has been given out.
func (g *SharedGroup) Overflow() (s *Shared, times int64) {
	if g == nil {
		return nil, 0
	}
	return g.overflow, g.overflows.Load()
}

// All returns the limiters that the group holds, with their keys, in no order. The
// overflow limiter is not among them.
func (g *SharedGroup) All() iter.Seq2[string, *Shared] {
	if g == nil {
		return func(func(string, *Shared) bool) {}
	}
	return g.members.All()
}

// Config returns the configuration of keys without an override.
func (g *SharedGroup) Config() SharedConfig {
	if g == nil {
		return SharedConfig{}
	}
	return *g.config.Load()
}

// Update changes the configuration of every limiter, those to come too, as
// Shared.Update does; overrides stay on top of it. If c, or c under an override, does
// not validate, it returns the complaints and changes nothing.
func (g *SharedGroup) Update(c SharedConfig) error {
	if g == nil {
		return c.Validate()
	}
	if err := errors.Join(c.Validate(), g.checkOverrides(c)); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.config.Store(&c)
	// Members are listed after that, so that one which is made meanwhile is among them
	// or has seen it.
	errs := []error{g.overflow.Update(c)}
	for key, s := range g.members.Living() {
		_, err := s.configure(g.overridden(c, key), false)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// make, dispensable and lastAt are the roster's.
func (g *SharedGroup) make(m *roster.Member[Shared], now int64) *Shared {
	s := newShared(g.node, m.Key, g.overridden(*g.config.Load(), m.Key), now)
	s.member = m
	return s
}

func (s *Shared) dispensable(now int64) bool {
	d := s.denied.Load()
	return s.quiet() && (d == nil || now >= d.until) && s.waiting.Load() == 0 && s.missing(now) == 0
}

func (s *Shared) lastAt(int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ledger.at
}
