package retry

import (
	"context"
	"errors"
	"time"

	"github.com/sluicego/sluice"
)

// Option sets one thing of a new policy. The last one wins; they start from
// DefaultConfig.
type Option func(*settings)

// settings is what the options fill in.
type settings struct {
	Config
	classify  func(ctx context.Context, err error) sluice.Outcome
	budget    *Budget
	ownBudget bool // nobody has given one, or said that there shall be none
	errs      []error
}

func newSettings(opts []Option) *settings {
	s := &settings{Config: DefaultConfig(), ownBudget: true}
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, noOption(i))
			continue
		}
		o(s)
	}
	return s
}

// check returns all that is wrong.
func (s *settings) check() error { return errors.Join(append(s.errs, s.Validate())...) }

// WithAttempts sets how often a call is made at most, the first time included.
//
// Default: 3.
func WithAttempts(n int) Option { return func(s *settings) { s.Attempts = n } }

// WithBackoff sets the longest wait before the second attempt, and the longest that
// there is before any.
//
// Default: 50 ms, up to 2 s.
func WithBackoff(first, max time.Duration) Option {
	return func(s *settings) { s.Backoff, s.BackoffMax = first, max }
}

// WithBackoffFactor sets by how much each wait is longer than the one before.
//
// Default: 2.
func WithBackoffFactor(factor float64) Option {
	return func(s *settings) { s.BackoffFactor = factor }
}

// WithJitter sets which part of each wait is left to chance. Anything but 1 lets
// callers that failed together come back together.
//
// Default: 1, all of it.
func WithJitter(share float64) Option { return func(s *settings) { s.Jitter = share } }

// WithMaxRetryAfter sets how long a wait the dependency may ask for. A wait that it
// asks for is kept in full, with the ordinary one on top; if it asks for more than d,
// the call is not repeated.
//
// Default: 10 s.
func WithMaxRetryAfter(d time.Duration) Option { return func(s *settings) { s.MaxRetryAfter = d } }

// WithAttemptTimeout limits the time of each attempt. The end of an attempt by it is
// a failure, which is retried; the cause of its ctx matches sluice.ErrTimeout.
//
// Default: 0, no limit.
func WithAttemptTimeout(d time.Duration) Option { return func(s *settings) { s.AttemptTimeout = d } }

// WithAttemptGrowth gives each further attempt factor times as long as the one
// before.
//
// Default: 1, all alike.
func WithAttemptGrowth(factor float64) Option { return func(s *settings) { s.AttemptGrowth = factor } }

// WithSplitDeadline shares out the time that is left until the deadline of the ctx
// among the attempts that are left, so that one that hangs leaves time for another.
//
// Default: off, an attempt may take all of it.
func WithSplitDeadline() Option { return func(s *settings) { s.SplitDeadline = true } }

// WithClassifier lets f say what an error means: Failure and Throttled are retried,
// Success (the error is an answer) and Ignored are not, and zero leaves it to the
// default, which is sluice.Classify. It is asked for every error that is not a local
// refusal, with the ctx given to Do. f runs on the path of the call, with no lock
// held.
//
// Default: none.
func WithClassifier(f func(ctx context.Context, err error) sluice.Outcome) Option {
	return func(s *settings) { s.classify = f }
}

// WithBudget takes the leave for retries from b, which others may share. A nil b is
// no budget: then a dependency that is down gets as many times its load as there are
// attempts, and may never come up again.
//
// Default: a budget of the policy's own, as DefaultBudgetConfig has it.
func WithBudget(b *Budget) Option {
	return func(s *settings) { s.budget, s.ownBudget = b, false }
}

// WithConfig replaces all data set so far by c, so it comes first.
//
// Default: DefaultConfig.
func WithConfig(c Config) Option { return func(s *settings) { s.Config = c } }
