package ratelimit

import (
	"errors"
	"fmt"
	"time"
)

// Option sets one thing of a new Limiter. The last one wins; they start from
// DefaultConfig.
type Option func(*settings)

// settings is what the options fill in.
type settings struct {
	Config
	uncounted bool
	strict    bool // see Limiter
	errs      []error
}

// WithConfig sets everything at once, and so comes first. Its Rate is zero or the one
// given to New.
//
// Default: DefaultConfig.
func WithConfig(c Config) Option {
	return func(s *settings) {
		rate := s.Rate
		if c.Rate != (Rate{}) && c.Rate != rate {
			s.errs = append(s.errs, fmt.Errorf("ratelimit: Rate %v of WithConfig is not the rate %v given to New", c.Rate, rate))
		}
		s.Config = c
		s.Rate = rate
	}
}

// WithBurst sets how many tokens there can be, and so the most that can be taken at
// once.
//
// Default: as many as come in the rate's Per.
func WithBurst(n int64) Option { return func(s *settings) { s.Burst = n } }

// WithInitial sets how many tokens there are at the beginning.
//
// Default: the burst.
func WithInitial(n int64) Option { return func(s *settings) { s.Initial = n } }

// WithMaxWait sets how long Wait and Do may wait for tokens.
//
// Default: Auto: Wait as long as its ctx lets it, Do not at all.
func WithMaxWait(d time.Duration) Option { return func(s *settings) { s.MaxWait = d } }

// WithMaxWaiters sets how many callers may wait at a time.
//
// Default: 10 000.
func WithMaxWaiters(n int) Option { return func(s *settings) { s.MaxWaiters = n } }

// WithMaxDebt sets how many tokens Debit may take that are not there.
//
// Default: the burst.
func WithMaxDebt(n int64) Option { return func(s *settings) { s.MaxDebt = n } }

// WithoutTotals leaves out the counts that Snapshot and Collect show, which stay 0
// then. It saves an atomic addition a call.
//
// Default: every answer is counted.
func WithoutTotals() Option { return func(s *settings) { s.uncounted = true } }

// apply works the options out for the limiter of that name and rate, and returns all
// that is wrong with them.
func apply(name string, rate Rate, opts []Option) (settings, error) {
	s := settings{Config: DefaultConfig()}
	s.Rate = rate
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("ratelimit: option %d is nil", i))
			continue
		}
		o(&s)
	}
	if name == "" {
		s.errs = append(s.errs, errors.New("ratelimit: the name is empty"))
	}
	return s, errors.Join(append(s.errs, s.Validate())...)
}
