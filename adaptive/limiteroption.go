package adaptive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
)

// LimiterOption sets one thing of a new Limiter. The last one wins; they start from
// DefaultLimiterConfig.
type LimiterOption func(*limiterSettings)

// WithLimitRule sets by what the limit follows the calls.
//
// Default: Vegas().
func WithLimitRule(r LimitRule) LimiterOption { return func(s *limiterSettings) { s.Rule = r } }

// WithLimitAlgorithm takes the limit from a LimitAlgorithm of your own instead of by a
// LimitRule: from one that make returns for each Limiter. It stays for the life of the
// Limiter, whatever Update says. A LimiterGroup calls make when the first window of a key
// is over, with no lock held.
//
// Default: none, see WithLimitRule.
func WithLimitAlgorithm(make func() LimitAlgorithm) LimiterOption {
	return func(s *limiterSettings) { s.hooks.algorithm = make }
}

// WithLimits sets what the limit stays within.
//
// Default: 1 and 1000.
func WithLimits(least, most int) LimiterOption {
	return func(s *limiterSettings) { s.Min, s.Max = least, most }
}

// WithInitialLimit sets the limit until there has been something to learn from.
//
// Default: 20.
func WithInitialLimit(n int) LimiterOption { return func(s *limiterSettings) { s.Initial = n } }

// WithLimitWindow sets how often the limit is worked out.
//
// Default: a second.
func WithLimitWindow(d time.Duration) LimiterOption {
	return func(s *limiterSettings) { s.Window = d }
}

// WithQueue lets up to n calls wait for a place, each for at most maxWait; its ctx may
// end the wait sooner. It is for those that wait that priorities and shares matter.
//
// Default: nobody waits.
func WithQueue(n int, maxWait time.Duration) LimiterOption {
	return func(s *limiterSettings) { s.MaxQueue, s.MaxWait = n, maxWait }
}

// WithCoDel shortens the wait in overload: a call that comes when the queue has not been
// empty for interval waits for at most target. A target of 0 is off; interval is what
// WithNewestFirst takes for overload too.
//
// Default: off, and an interval of 100 ms.
func WithCoDel(target, interval time.Duration) LimiterOption {
	return func(s *limiterSettings) { s.CoDelTarget, s.CoDelInterval = target, interval }
}

// WithNewestFirst lets the newest of those that wait go first in overload (adaptive
// LIFO).
//
// Default: false, the oldest goes first.
func WithNewestFirst(yes bool) LimiterOption {
	return func(s *limiterSettings) { s.NewestFirst = yes }
}

// WithAging lets more important calls go first, by sluice.WithPriority, as far as they
// come no more than d later for each class between them; 0 ignores priorities. In a full
// queue they take the room of the call that would be served last.
//
// Default: 50 ms.
func WithAging(d time.Duration) LimiterOption { return func(s *limiterSettings) { s.Aging = d } }

// WithShares guarantees calls of P0, P1 and P2 a part of the places that are given to
// those that wait, while any of them do. What a class does not need goes to the others,
// the more important first.
//
// Default: 0, 0 and 0.
func WithShares(p0, p1, p2 float64) LimiterOption {
	return func(s *limiterSettings) { s.Shares = [classes]float64{p0, p1, p2} }
}

// WithLimiterClassifier lets f say what an error means: sluice.Success is an answer and
// counts with the time that it took, sluice.Throttled lowers the limit. It is asked for
// every error that is not a local refusal, with the ctx given to Acquire or Do; a zero
// Outcome leaves it to the default, which is sluice.Classify. f runs on the path of the
// call and with no lock held; if it panics, the place is given back and the panic goes on.
//
// Default: none.
func WithLimiterClassifier(f func(ctx context.Context, err error) sluice.Outcome) LimiterOption {
	return func(s *limiterSettings) { s.hooks.classify = f }
}

// WithLimiterConfig replaces all data set so far by c, so it comes first.
//
// Default: DefaultLimiterConfig.
func WithLimiterConfig(c LimiterConfig) LimiterOption {
	return func(s *limiterSettings) { s.LimiterConfig = c }
}

// limiterSettings is what the options fill in.
type limiterSettings struct {
	LimiterConfig
	hooks limiterHooks
	errs  []error
	group *limiterGroupSettings // nil until a group option is used
}

// limiterHooks are the foreign code that a Limiter calls. They are no part of a
// LimiterConfig, and stay as they are for the life of the Limiter.
type limiterHooks struct {
	classify  func(ctx context.Context, err error) sluice.Outcome
	algorithm func() LimitAlgorithm
}

func newLimiterSettings() *limiterSettings {
	return &limiterSettings{LimiterConfig: DefaultLimiterConfig()}
}

func (s *limiterSettings) apply(opts []LimiterOption) {
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("adaptive: option %d is nil", i))
			continue
		}
		o(s)
	}
}

// check returns all that is wrong.
func (s *limiterSettings) check() error { return errors.Join(append(s.errs, s.Validate())...) }

// noLimiterHooks is what Limiters without foreign code share. It is never changed.
var noLimiterHooks limiterHooks

// keep returns a copy that outlives the settings.
func (h limiterHooks) keep() *limiterHooks {
	if h.classify == nil && h.algorithm == nil {
		return &noLimiterHooks
	}
	return &h
}
