package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/notify"
)

// node is this process's part in a shared limiter: its name among the others, whether
// the store answers, and what runs in the background. All keys of a SharedGroup have
// one node; a Shared of its own has one for itself.
type node struct {
	name  string // the limiter's
	id    string // this node's, which no other has
	store Store
	hooks storeHooks

	// cur is the stay in the current mode. Written by move only, under mu.
	cur atomic.Pointer[stay]
	// count is how many nodes there are. Written by Run, and before that by its maker.
	count   atomic.Int64
	running atomic.Bool // Run does what can be put off
	work    work        // what Run has to do

	// latest is the terms that were made last, for others who need the same.
	latest atomic.Pointer[terms]

	mu     sync.Mutex // puts changes of mode in order; no foreign code runs under it
	events notify.Queue[ModeEvent]
	tally  *tally // nil if nothing is counted
	stats  storeStats
}

// storeHooks are the foreign code that a node calls besides the store.
type storeHooks struct {
	guard  sluice.Guard
	onMode []func(ModeEvent)
	logger *slog.Logger
}

func (h *storeHooks) listening() bool { return len(h.onMode) > 0 || h.logger != nil }

// storeStats counts what a node and its store had to do with one another. Any
// goroutine raises them, none lowers them.
type storeStats struct {
	takes, refunds, debits, beats atomic.Int64 // calls
	tries                         atomic.Int64 // calls that only find out whether it answers
	failures                      atomic.Int64 // calls that failed
	rejected                      atomic.Int64 // calls that the guard did not make
	onPath                        atomic.Int64 // takes that a caller waited for
	denials                       atomic.Int64 // takes that the store refused
	fallback                      atomic.Int64 // decisions without the store, in either mode
	unavailable                   atomic.Int64 // refusals for ReasonStore
	lost                          atomic.Int64 // tokens that could not be given back
	fallbacks, fallbackNanos      atomic.Int64 // stays in ModeFallback, and how long those that ended took
	panics                        atomic.Int64 // of listeners
}

func newNode(name string, store Store, s *sharedSettings, now int64) *node {
	n := &node{name: name, id: fmt.Sprintf("%016x", rand.Uint64()), store: store, hooks: s.hooks}
	if !s.limiter.uncounted {
		n.tally = new(tally)
	}
	n.count.Store(s.Nodes)
	n.cur.Store(&stay{mode: ModeShared, since: now})
	n.work.wake = make(chan struct{}, 1)
	return n
}

// terms returns those of c for as many nodes as there are now.
func (n *node) terms(c SharedConfig) *terms {
	count := n.count.Load()
	if t := n.latest.Load(); t != nil && t.nodes == count && t.config == c {
		return t
	}
	t := newTerms(n.name, c, count)
	n.latest.Store(t)
	return t
}

// mayTry reports whether the store may be asked in st: in ModeShared; and in
// ModeFallback by one caller at a time when the pause is over, if no Run does it.
func (n *node) mayTry(st *stay, now int64) bool {
	if st.mode == ModeShared {
		return true
	}
	return !n.running.Load() && now >= st.until.Load() && st.probing.CompareAndSwap(false, true)
}

// errand is one call of the store: what it is, and how to find out later whether such
// a call works again.
type errand struct {
	kind errandKind
	run  func(context.Context) error
	try  func(context.Context) error
}

// Failures in a row are counted of all errands and of each kind, or a store that
// answers the ones would hide that it does not answer the others.
type errandKind int

const (
	anything errandKind = iota
	taking
	telling
	errandKinds = 3
)

func (n *node) take(ctx context.Context, timeout time.Duration, key StoreKey, q Quota, ask Ask) (g Grant, err error) {
	n.stats.takes.Add(1)
	err = n.call(ctx, timeout, errand{taking, func(ctx context.Context) error {
		var err error
		if g, err = n.store.Take(ctx, key, q, ask); err == nil {
			g, err = g.settle(q, ask)
		}
		return err
	}, n.look(key, q)})
	if err != nil {
		return Grant{}, err
	}
	return g, nil
}

// settle returns g as an answer to ask of q that can be true: what a store says
// of tokens that it gave must be, and all else is brought into its bounds.
func (g Grant) settle(q Quota, ask Ask) (Grant, error) {
	switch {
	case g.Tokens < 0 || g.Tokens > ask.Max:
		return Grant{}, fmt.Errorf("ratelimit: the store gave %d tokens, asked for %d to %d", g.Tokens, ask.Min, ask.Max)
	case g.Tokens < ask.Min:
		g.Tokens, g.RetryAfter = 0, max(1, g.RetryAfter)
	case g.Wait < 0 || g.Wait > ask.MaxWait+time.Millisecond:
		return Grant{}, fmt.Errorf("ratelimit: the store gave tokens that come in %v, asked for in %v", g.Wait, ask.MaxWait)
	}
	g.Remaining = min(max(0, g.Remaining), q.Burst)
	g.RetryAfter = min(max(0, g.RetryAfter), 2*maxFill)
	g.ResetAfter = min(max(0, g.ResetAfter), 2*maxFill)
	return g, nil
}

func (n *node) refund(ctx context.Context, timeout time.Duration, key StoreKey, q Quota, r Receipt, tokens int64) error {
	n.stats.refunds.Add(1)
	return n.call(ctx, timeout, errand{telling, func(ctx context.Context) error {
		return n.store.Refund(ctx, key, q, r, tokens)
	}, n.look(key, q)})
}

func (n *node) debit(ctx context.Context, timeout time.Duration, key StoreKey, q Quota, tokens int64) error {
	n.stats.debits.Add(1)
	return n.call(ctx, timeout, errand{telling, func(ctx context.Context) error {
		return n.store.Debit(ctx, key, q, tokens)
	}, n.look(key, q)})
}

func (n *node) beat(ctx context.Context, timeout, ttl time.Duration) (nodes int64, err error) {
	n.stats.beats.Add(1)
	run := func(ctx context.Context) error {
		var err error
		nodes, err = n.store.Beat(ctx, n.name, n.id, ttl)
		return err
	}
	err = n.call(ctx, timeout, errand{telling, run, run})
	return nodes, err
}

// look takes nothing from the bucket of key, whichever machine has it.
func (n *node) look(key StoreKey, q Quota) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := n.store.Take(ctx, key, q, Ask{})
		return err
	}
}

// try finds out whether the store answers again, in a stay in ModeFallback.
func (n *node) try(ctx context.Context, timeout time.Duration) error {
	st := n.cur.Load()
	if st.mode != ModeFallback {
		return nil
	}
	n.stats.tries.Add(1)
	return n.call(ctx, timeout, errand{taking, st.try, st.try})
}

// errStoreLeft is what a call has failed with that did not return.
var errStoreLeft = errors.New("ratelimit: the store or its guard ended the goroutine")

// call calls the store through the guard, within timeout. What a caller's own ctx
// ended says nothing about the store. The time limit lies within the guard, so that a
// breaker sees it as what it is. Whatever they do, a panic or a Goexit, is learnt.
func (n *node) call(ctx context.Context, timeout time.Duration, e errand) (err error) {
	st := n.cur.Load()
	err = errStoreLeft
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("ratelimit: the store's guard panicked: %v", p)
		}
		n.conclude(ctx, st, e, err)
	}()
	if n.hooks.guard == nil {
		return within(ctx, timeout, e.run)
	}
	called := false
	err = n.hooks.guard.Do(ctx, func(ctx context.Context) error {
		called = true
		return within(ctx, timeout, e.run)
	})
	if err == nil && !called {
		return errors.New("ratelimit: the store's guard returned nil without a call")
	}
	return err
}

// within runs a call of the store, whose panic is an error.
func within(ctx context.Context, timeout time.Duration, run func(context.Context) error) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, sluice.ErrTimeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("ratelimit: the store panicked: %v", p)
		}
	}()
	return run(ctx)
}

// conclude counts and learns how a call ended that began in st.
func (n *node) conclude(ctx context.Context, st *stay, e errand, err error) {
	switch {
	case err != nil && over(ctx) != nil:
		st.probing.Store(false)
		return
	case errors.Is(err, sluice.ErrRejected):
		n.stats.rejected.Add(1)
	case err != nil:
		n.stats.failures.Add(1)
	}
	n.learn(st, e, err)
}
