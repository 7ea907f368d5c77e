package adaptive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
)

// TimeoutOption sets one thing of a new Timeout. The last one wins; they start from
// DefaultTimeoutConfig.
type TimeoutOption func(*timeoutSettings)

// WithTargetFalseTimeouts sets the share of calls that may be cut off although they
// would have been answered within max. It is short for
// WithRule(FalseTimeouts(share)).
//
// Default: 0.001.
func WithTargetFalseTimeouts(share float64) TimeoutOption { return WithRule(FalseTimeouts(share)) }

// WithRule sets by what the limit follows how long calls take.
//
// Default: FalseTimeouts(0.001).
func WithRule(r Rule) TimeoutOption { return func(s *timeoutSettings) { s.Rule = r } }

// WithEstimator takes the limit from an Estimator of your own instead of by a Rule:
// from one that make returns for each Timeout. It stays for the life of the Timeout,
// whatever Update says. A TimeoutGroup calls make when the first call to a key ends,
// with no lock held; if there are several first ones, those made in vain are dropped.
//
// Default: none, see WithRule.
func WithEstimator(make func() Estimator) TimeoutOption {
	return func(s *timeoutSettings) { s.hooks.estimator = make }
}

// WithBounds sets what the limit stays within. It is for WithOverride; NewTimeout
// and NewTimeoutGroup are given the bounds anyway.
//
// Default: as given to NewTimeout or NewTimeoutGroup.
func WithBounds(base, max time.Duration) TimeoutOption {
	return func(s *timeoutSettings) { s.Base, s.Max = base, max }
}

// WithInitial sets the limit until there have been 20 calls to learn from.
//
// Default: max.
func WithInitial(d time.Duration) TimeoutOption { return func(s *timeoutSettings) { s.Initial = d } }

// WithMargin sets what the quantile of FalseTimeouts is multiplied by.
//
// Default: 1.25.
func WithMargin(k float64) TimeoutOption { return func(s *timeoutSettings) { s.Margin = k } }

// WithOutageCap sets how many times its last resolved limit FalseTimeouts waits for
// in an outage.
//
// Default: 4.
func WithOutageCap(k float64) TimeoutOption { return func(s *timeoutSettings) { s.OutageCap = k } }

// WithProbeShare sets the share of calls that run as long as max while FalseTimeouts
// has to find out what it cuts calls off from. One a second does in any case.
//
// Default: 0.01.
func WithProbeShare(share float64) TimeoutOption {
	return func(s *timeoutSettings) { s.ProbeShare = share }
}

// WithHistory sets the time that FalseTimeouts and Quantile always look at, and how
// far back they look at low traffic.
//
// Default: 10 s and 5 min.
func WithHistory(window, history time.Duration) TimeoutOption {
	return func(s *timeoutSettings) { s.Window, s.History = window, history }
}

// WithCompact lets FalseTimeouts and Quantile remember less finely, in at most 5 KiB
// instead of 33: for many keys.
//
// Default: off.
func WithCompact() TimeoutOption { return func(s *timeoutSettings) { s.Compact = true } }

// WithClassifier lets f say what an error means: sluice.Success is an answer and
// counts with the time that it took, for errors such as sql.ErrNoRows. It is asked
// for every error that is not a local refusal, with the ctx given to Begin or Do;
// a zero Outcome leaves it to the default, which is sluice.Classify. f runs on the
// path of the call and with no lock held; if it panics, nothing is learnt from the
// call and the panic goes on.
//
// Default: none.
func WithClassifier(f func(ctx context.Context, err error) sluice.Outcome) TimeoutOption {
	return func(s *timeoutSettings) { s.hooks.classify = f }
}

// WithTimeoutConfig replaces all data set so far by c, the bounds too, so it comes
// first.
//
// Default: DefaultTimeoutConfig.
func WithTimeoutConfig(c TimeoutConfig) TimeoutOption {
	return func(s *timeoutSettings) { s.TimeoutConfig = c }
}

// timeoutSettings is what the options fill in.
type timeoutSettings struct {
	TimeoutConfig
	hooks timeoutHooks
	errs  []error
	group *timeoutGroupSettings // nil until a group option is used
}

// timeoutHooks are the foreign code that a Timeout calls. They are no part of a
// TimeoutConfig, and stay as they are for the life of the Timeout.
type timeoutHooks struct {
	classify  func(ctx context.Context, err error) sluice.Outcome
	estimator func() Estimator
}

func newTimeoutSettings(base, max time.Duration) *timeoutSettings {
	return &timeoutSettings{TimeoutConfig: DefaultTimeoutConfig(base, max)}
}

func (s *timeoutSettings) apply(opts []TimeoutOption) {
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("adaptive: option %d is nil", i))
			continue
		}
		o(s)
	}
}

// check returns all that is wrong.
func (s *timeoutSettings) check() error { return errors.Join(append(s.errs, s.Validate())...) }

// noHooks is what Timeouts without foreign code share. It is never changed.
var noHooks timeoutHooks

// keep returns a copy that outlives the settings.
func (h timeoutHooks) keep() *timeoutHooks {
	if h.classify == nil && h.estimator == nil {
		return &noHooks
	}
	return &h
}
