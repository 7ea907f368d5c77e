package ratelimit

import (
	"errors"
	"fmt"

	"github.com/sluicego/sluice"
)

// PrioritiesOption sets one thing of a new Priorities. The last one wins; they start
// from DefaultPrioritiesConfig.
type PrioritiesOption func(*prioritiesSettings)

type prioritiesSettings struct {
	PrioritiesConfig
	errs []error
}

// WithPrioritiesConfig sets everything at once, and so comes first. Its Rate is zero
// or the one given to NewPriorities.
//
// Default: DefaultPrioritiesConfig.
func WithPrioritiesConfig(c PrioritiesConfig) PrioritiesOption {
	return func(s *prioritiesSettings) {
		rate := s.Rate
		if c.Rate != (Rate{}) && c.Rate != rate {
			s.errs = append(s.errs, fmt.Errorf("ratelimit: Rate %v of WithPrioritiesConfig is not the rate %v given to NewPriorities", c.Rate, rate))
		}
		s.PrioritiesConfig = c
		s.Rate = rate
	}
}

// WithPrioritiesBurst sets how many tokens there can be, for all classes together.
//
// Default: as many as come in the rate's Per.
func WithPrioritiesBurst(n int64) PrioritiesOption {
	return func(s *prioritiesSettings) { s.Burst = n }
}

// WithClass sets what the calls of priority p are assured, and how much of the shared
// bucket they leave to more important ones.
//
// Default: P0 0.2 and 0, P1 0.1 and 0.1, P2 0.05 and 0.3.
func WithClass(p sluice.Priority, assured, floor float64) PrioritiesOption {
	return func(s *prioritiesSettings) {
		if p < sluice.P0 || p > sluice.P2 {
			s.errs = append(s.errs, fmt.Errorf("ratelimit: WithClass(%v): the classes are P0, P1 and P2", p))
			return
		}
		s.Classes[classOf(p)] = PriorityClass{Assured: assured, Floor: floor}
	}
}

// WithKeep sets the share of its own tokens that a class does not lend to others.
//
// Default: 0.9.
func WithKeep(share float64) PrioritiesOption {
	return func(s *prioritiesSettings) { s.Keep = share }
}

// applyPriorities works the options out, and returns all that is wrong with them.
func applyPriorities(name string, rate Rate, opts []PrioritiesOption) (PrioritiesConfig, error) {
	s := prioritiesSettings{PrioritiesConfig: DefaultPrioritiesConfig()}
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
	return s.PrioritiesConfig, errors.Join(append(s.errs, s.Validate())...)
}
