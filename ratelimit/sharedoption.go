package ratelimit

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicego/sluice"
)

// SharedOption sets one thing of a new Shared or SharedGroup. The last one wins; they
// start from DefaultSharedConfig. They are those that return it, and of the options of a
// Limiter WithBurst, WithMaxWait, WithMaxWaiters and WithoutTotals. The others are an
// error.
type SharedOption interface{ shared(*sharedSettings) }

// sharedOption is one that only a Shared has.
type sharedOption func(*sharedSettings)

func (o sharedOption) shared(s *sharedSettings) { o(s) }

func (o Option) shared(s *sharedSettings) {
	if o == nil {
		s.errs = append(s.errs, errors.New("ratelimit: an option is nil"))
		return
	}
	o(&s.limiter)
}

// sharedSettings is what the options fill in. What a Limiter has too is in limiter.
type sharedSettings struct {
	SharedConfig
	limiter settings
	hooks   storeHooks
	group   *sharedGroupSettings // nil until a group option is used
	errs    []error
}

func newSharedSettings(c SharedConfig) *sharedSettings {
	s := &sharedSettings{limiter: settings{Config: DefaultConfig()}}
	s.set(c)
	return s
}

// set puts c in the place of what was set so far.
func (s *sharedSettings) set(c SharedConfig) {
	s.SharedConfig = c
	s.limiter.Burst, s.limiter.MaxWait, s.limiter.MaxWaiters = c.Burst, c.MaxWait, c.MaxWaiters
}

func (s *sharedSettings) apply(opts []SharedOption) {
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("ratelimit: option %d is nil", i))
			continue
		}
		o.shared(s)
	}
	l, unset := s.limiter, DefaultConfig()
	s.Burst, s.MaxWait, s.MaxWaiters = l.Burst, l.MaxWait, l.MaxWaiters
	for option, set := range map[string]bool{
		"WithInitial": l.Initial != unset.Initial, "WithMaxDebt": l.MaxDebt != unset.MaxDebt, "WithConfig": l.Rate != (Rate{}),
	} {
		if set {
			s.errs = append(s.errs, fmt.Errorf("ratelimit: %s means nothing to a Shared", option))
		}
	}
}

// check returns all that is wrong with them for the limiter of that name and store.
func (s *sharedSettings) check(name string, store Store) error {
	if name == "" {
		s.errs = append(s.errs, errors.New("ratelimit: the name is empty"))
	}
	if store == nil {
		s.errs = append(s.errs, errors.New("ratelimit: the store is nil"))
	}
	return errors.Join(append(s.errs, s.Validate())...)
}

// WithSharedConfig sets everything at once, and so comes first. Its Threshold is zero
// or the one given to NewShared.
//
// Default: DefaultSharedConfig.
func WithSharedConfig(c SharedConfig) SharedOption {
	return sharedOption(func(s *sharedSettings) {
		t := s.Threshold
		if c.Threshold != (Threshold{}) && c.Threshold != t {
			s.errs = append(s.errs, fmt.Errorf("ratelimit: Threshold %v of WithSharedConfig is not the threshold %v given", c.Threshold, t))
		}
		s.set(c)
		s.Threshold = t
	})
}

// WithSharedThreshold sets another threshold than the one given, for
// WithSharedOverride.
//
// Default: the one given to NewShared or NewSharedGroup.
func WithSharedThreshold(t Threshold) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.Threshold = t })
}

// WithStrict asks the store about every call, and buys nothing ahead: never more is
// admitted than the limit.
//
// Default: leases, see WithMaxLease.
func WithStrict() SharedOption {
	return sharedOption(func(s *sharedSettings) { s.Strict = true })
}

// WithMaxLease sets how many tokens a node holds at most. A larger lease needs fewer
// calls of the store; all nodes together may admit a lease each more than the limit.
//
// Default: the smaller of what comes in SyncEvery for a node and burst / (4 × nodes),
// at least 1.
func WithMaxLease(n int64) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.MaxLease = n })
}

// WithSyncEvery sets for how long a lease lasts.
//
// Default: 100 ms.
func WithSyncEvery(d time.Duration) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.SyncEvery = d })
}

// WithStoreTimeout sets how long a call of the store may take.
//
// Default: 20 ms.
func WithStoreTimeout(d time.Duration) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.StoreTimeout = d })
}

// WithStoreGuard puts g around every call of the store: a breaker, in most cases. A
// call that g refuses is not made, and the limiter goes into ModeFallback until g lets
// one through: it comes again when the refusal's RetryAfter says so, or after a
// second. Without a guard, five failures in a row do the same, for a second, which
// doubles up to half a minute as long as the store does not answer.
//
// Default: none.
func WithStoreGuard(g sluice.Guard) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.hooks.guard = g })
}

// WithFailure sets how to decide while the store does not answer. For what protects
// against abuse, such as logins, take FailLocal and a tight WithLocalRate: FailOpen is
// a way in, and FailClosed a way to shut everybody out.
//
// Default: FailLocal.
func WithFailure(p FailurePolicy) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.OnFailure = p })
}

// WithLocalRate sets the rate of FailLocal.
//
// Default: an equal share of the limit for each node.
func WithLocalRate(r Rate) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.LocalRate = r })
}

// WithReuseFor sets how long ReuseLast goes on before it becomes FailLocal.
//
// Default: a minute.
func WithReuseFor(d time.Duration) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.ReuseFor = d })
}

// WithNodes sets how many nodes there are as long as Run has not counted them.
//
// Default: 1.
func WithNodes(n int64) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.Nodes = n })
}

// WithNodeTTL sets after which time of silence a node is not counted any more. It is
// heard three times as often.
//
// Default: 10 s.
func WithNodeTTL(d time.Duration) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.NodeTTL = d })
}

// WithOnMode adds a listener for changes of mode. Listeners get every change once, in
// order, one at a time, on a goroutine that caused a change or on Run's, with no lock
// held: they may call the limiter. Behind a slow listener at most 1 024 events wait,
// the oldest are dropped and counted; a panic is recovered and counted.
//
// Default: none.
func WithOnMode(f func(ModeEvent)) SharedOption {
	return sharedOption(func(s *sharedSettings) {
		if f == nil {
			s.errs = append(s.errs, errors.New("ratelimit: WithOnMode(nil): a listener is wanted"))
			return
		}
		s.hooks.onMode = append(slices.Clip(s.hooks.onMode), f)
	})
}

// WithModeLogger logs changes of mode: to ModeFallback at Warn, back at Info.
//
// Default: nothing is logged.
func WithModeLogger(l *slog.Logger) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.hooks.logger = l })
}
