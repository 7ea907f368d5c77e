package canary

import (
	"errors"
	"fmt"
	"time"
)

// JudgeOption sets one thing of a new Judge. The last one wins; they start from
// DefaultJudgeConfig.
type JudgeOption func(*judgeSettings)

// WithAlpha sets the probability, for each metric, that a canary which is no worse than
// stable is ever condemned.
//
// Default: 0.001.
func WithAlpha(alpha float64) JudgeOption { return func(s *judgeSettings) { s.Alpha = alpha } }

// WithMinFailing sets how many users of the canary must have failed within one step
// before it is condemned.
//
// Default: 5.
func WithMinFailing(users int) JudgeOption { return func(s *judgeSettings) { s.MinFailing = users } }

// WithMaxErrorRate sets the share of the canary's calls that may fail whatever stable
// does, unless stable fails as often; 1 is no limit.
//
// Default: 0.2.
func WithMaxErrorRate(rate float64) JudgeOption {
	return func(s *judgeSettings) { s.MaxErrorRate = rate }
}

// WithMinUsers sets how many users of the canary must have been seen in a step before it
// passes.
//
// Default: 30.
func WithMinUsers(n int) JudgeOption { return func(s *judgeSettings) { s.MinUsers = n } }

// WithMinRequests sets how many calls of the canary must have been seen in a step before
// it passes, and before MaxErrorRate applies.
//
// Default: 20.
func WithMinRequests(n int) JudgeOption { return func(s *judgeSettings) { s.MinRequests = n } }

// WithMargin sets how much more often than stable's the canary's users may fail for it to
// pass, as a share.
//
// Default: 0.5.
func WithMargin(margin float64) JudgeOption { return func(s *judgeSettings) { s.Margin = margin } }

// WithTolerance sets the share of the canary's users who may fail for it to pass where
// there are too few failures to compare.
//
// Default: 0.2.
func WithTolerance(share float64) JudgeOption {
	return func(s *judgeSettings) { s.Tolerance = share }
}

// WithSlowCalls sets what a call must exceed to be slow; 0 is no such rule.
//
// Default: Auto, the 99 % quantile of stable's calls.
func WithSlowCalls(above time.Duration) JudgeOption {
	return func(s *judgeSettings) { s.SlowAbove = above }
}

// WithSlowQuantile sets the share of stable's calls that is not slow, where no limit is
// set.
//
// Default: 0.99.
func WithSlowQuantile(q float64) JudgeOption { return func(s *judgeSettings) { s.SlowQuantile = q } }

// WithWarmUp sets how long from the begin of a step on no call is slow.
//
// Default: 30 s.
func WithWarmUp(d time.Duration) JudgeOption { return func(s *judgeSettings) { s.WarmUp = d } }

// WithJudgeConfig replaces all data set so far by c, so it comes first.
//
// Default: DefaultJudgeConfig.
func WithJudgeConfig(c JudgeConfig) JudgeOption {
	return func(s *judgeSettings) { s.JudgeConfig = c }
}

// judgeSettings is what the options fill in.
type judgeSettings struct {
	JudgeConfig
	errs []error
}

func (s *judgeSettings) apply(opts []JudgeOption) {
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("canary: option %d is nil", i))
			continue
		}
		o(s)
	}
}

// check returns all that is wrong.
func (s *judgeSettings) check() error { return errors.Join(append(s.errs, s.Validate())...) }
