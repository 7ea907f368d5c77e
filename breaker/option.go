package breaker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sluicego/sluice"
)

// Option sets one thing of a new breaker. The last one wins; they start from
// DefaultConfig.
type Option func(*settings)

// Verdict is what a classifier says of a finished call. The zero Verdict leaves it
// to the default.
type Verdict struct {
	Outcome sluice.Outcome
	// TripFor, if positive, opens the breaker at once for exactly that long,
	// whatever the rules say: for a dependency that answers "not before ten
	// minutes". Bound what comes from outside.
	TripFor time.Duration
}

// RuleOption sets what a rule has of its own.
type RuleOption func(*Rule)

// MinRequests gives a ratio rule its own gate.
//
// Default: the breaker's, see WithMinRequests.
func MinRequests(n int) RuleOption { return func(r *Rule) { r.MinRequests = n } }

// Over gives a rule its own time window.
//
// Default: the breaker's, see WithWindow and WithCountWindow.
func Over(span time.Duration) RuleOption { return func(r *Rule) { r.Over = span } }

// OpenFor is how long the breaker opens when this rule trips it.
//
// Default: the breaker's, see WithOpenFor.
func OpenFor(d time.Duration) RuleOption { return func(r *Rule) { r.OpenFor = d } }

// WithSlowCallRatio trips when at least ratio of the calls took longer than limit.
// A call abandoned by its caller after that time counts too.
//
// Default: off. The first rule option replaces the default rule.
func WithSlowCallRatio(limit time.Duration, ratio float64, opts ...RuleOption) Option {
	return withRule(Rule{Kind: SlowCallRatio, SlowerThan: limit, Ratio: ratio}, opts)
}

// WithErrorRatio trips when at least ratio of the calls failed.
//
// Default: 0.5. The first rule option replaces the default rule.
func WithErrorRatio(ratio float64, opts ...RuleOption) Option {
	return withRule(Rule{Kind: ErrorRatio, Ratio: ratio}, opts)
}

// WithErrorCount trips at the n-th failure in the window.
//
// Default: off. The first rule option replaces the default rule.
func WithErrorCount(n int, opts ...RuleOption) Option {
	return withRule(Rule{Kind: ErrorCount, Count: n}, opts)
}

// WithConsecutiveFailures trips at n failures with no success between.
//
// Default: off. The first rule option replaces the default rule.
func WithConsecutiveFailures(n int, opts ...RuleOption) Option {
	return withRule(Rule{Kind: ConsecutiveFailures, Count: n}, opts)
}

func withRule(r Rule, opts []RuleOption) Option {
	none := -1
	for i, o := range opts {
		if o == nil {
			none = i
			continue
		}
		o(&r)
	}
	return func(s *settings) {
		if none >= 0 {
			s.errs = append(s.errs, fmt.Errorf("breaker: option %d of rule %v is nil", none, r))
		}
		if !s.ownRules {
			s.Rules, s.ownRules = nil, true
		}
		s.Rules = append(s.Rules, r)
	}
}

// WithWindow sets the time window: its span and in how many buckets it is
// counted. span must be a multiple of buckets.
//
// Default: 10 s in 10 buckets.
func WithWindow(span time.Duration, buckets int) Option {
	return func(s *settings) { s.Window, s.Buckets, s.CountWindow = span, buckets, 0 }
}

// WithCountWindow looks at the last n calls instead of a span of time. It does not
// scale over cores as the time window does.
//
// Default: a time window, see WithWindow.
func WithCountWindow(n int) Option { return func(s *settings) { s.CountWindow = n } }

// WithMinRequests sets how many calls a window must hold before a ratio rule may
// trip.
//
// Default: 20.
func WithMinRequests(n int) Option { return func(s *settings) { s.MinRequests = n } }

// WithConfidence lets a ratio rule trip only when the ratio is significant: when
// its Wilson lower bound at z standard deviations reaches the threshold. 1.645 is
// a one-sided 95 %.
//
// Default: 0, off.
func WithConfidence(z float64) Option { return func(s *settings) { s.Confidence = z } }

// WithOpenFor sets how long the breaker stays open before it probes.
//
// Default: 5 s.
func WithOpenFor(d time.Duration) Option { return func(s *settings) { s.OpenFor = d } }

// WithBackoff multiplies the open period by factor each time a recovery fails, up
// to max (or Auto). A factor of 1 is no backoff.
//
// Default: 2, up to the larger of a minute and the open period.
func WithBackoff(factor float64, max time.Duration) Option {
	return func(s *settings) { s.BackoffFactor, s.BackoffMax = factor, max }
}

// WithJitter spreads each open period evenly over ± share of it, so that many
// breakers do not probe at the same time.
//
// Default: 0.1.
func WithJitter(share float64) Option { return func(s *settings) { s.Jitter = share } }

// WithProbes sets the stages of half-open: each number is how many calls must end
// well before the next stage, and the last stage closes the breaker.
//
// Default: 1.
func WithProbes(stages ...int) Option {
	stages = slices.Clone(stages)
	return func(s *settings) { s.Probes = slices.Clone(stages) }
}

// WithProbeTolerance lets a share of each stage's probes fail.
//
// Default: 0.
func WithProbeTolerance(share float64) Option {
	return func(s *settings) { s.ProbeTolerance = share }
}

// WithProbeLease sets how long a probe may stay unsettled before it counts as
// failed and its place is free.
//
// Default: the larger of the open period and 10 s.
func WithProbeLease(d time.Duration) Option { return func(s *settings) { s.ProbeLease = d } }

// WithProbeBudget shares the right to probe with other breakers, in this process
// or in others.
//
// Default: none, every breaker probes by itself.
func WithProbeBudget(b ProbeBudget) Option { return func(s *settings) { s.hooks.budget = b } }

// WithRecovery admits only a share of the calls for some time after the breaker
// has closed, step by step. Calls of priority sluice.P0 pass all the same.
//
// Default: off, all calls pass at once.
func WithRecovery(steps ...Step) Option {
	steps = slices.Clone(steps)
	return func(s *settings) { s.Recovery = slices.Clone(steps) }
}

// WithInFlightSlow lets a call count as slow as soon as it is overdue, not only
// when it returns. It needs a slow rule and costs two more atomic operations a
// call. Overdue calls are found by the next call that asks; how finely depends on
// the limit and the window: a 32nd of the limit, or a 512th of both together if
// that is more.
//
// Default: off.
func WithInFlightSlow() Option { return func(s *settings) { s.InFlightSlow = true } }

// WithMinBudget sets how long a call must have run for the caller's own deadline
// to count as a failure; ended sooner it is ignored, for a caller with a
// millisecond left says nothing about the dependency.
//
// Default: the shortest slow limit, 0 without slow rules.
func WithMinBudget(d time.Duration) Option { return func(s *settings) { s.MinBudget = d } }

// WithClassifier lets f say what an error means. It is asked for every error that
// is not a local refusal, with the ctx given to Allow or Do; a zero Outcome leaves
// it to the default, which is sluice.Classify. f runs on the path of the call and
// with no lock held; if it panics, the call counts as a failure and the panic
// goes on.
//
// Default: none.
func WithClassifier(f func(ctx context.Context, err error) Verdict) Option {
	return func(s *settings) { s.hooks.classify = f }
}

// WithSuccessErrors names errors that are answers, such as sql.ErrNoRows: one that
// matches with errors.Is is a Success. Each use adds to the list.
//
// Default: none.
func WithSuccessErrors(errs ...error) Option {
	errs = slices.Clone(errs)
	return func(s *settings) { s.hooks.successes = append(slices.Clip(s.hooks.successes), errs...) }
}

// WithOnChange adds a listener for changes of state. Listeners get every change
// once, in order, one at a time, on a goroutine that caused a change, with no lock
// held: they may call the breaker. Behind a slow listener at most 1 024 events
// wait, the oldest are dropped and counted; a panic is recovered and counted.
//
// Default: none.
func WithOnChange(f func(Event)) Option {
	return func(s *settings) {
		if f == nil {
			s.errs = append(s.errs, errors.New("breaker: WithOnChange(nil): a listener is wanted"))
			return
		}
		s.hooks.onChange = append(slices.Clip(s.hooks.onChange), f)
	}
}

// WithLogger logs changes of state and overrides: to Open and overrides at Warn, the
// others and a change of the configuration at Info, a rejected configuration at
// Error, and refused calls at Debug, one record a second.
//
// Default: nothing is logged.
func WithLogger(l *slog.Logger) Option { return func(s *settings) { s.hooks.logger = l } }

// WithConfig replaces all data set so far by a copy of c, so it comes first.
//
// Default: DefaultConfig.
func WithConfig(c Config) Option {
	c = c.Clone()
	return func(s *settings) { s.Config, s.ownRules = c.Clone(), true }
}
