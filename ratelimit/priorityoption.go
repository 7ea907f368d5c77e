package ratelimit

import (
	"errors"
	"fmt"

	"github.com/sluicego/sluice"
)

// PrioritiesOption sets one thing of a new Priorities. The last one wins; they start
// from DefaultPrioritiesConfig. They are WithClass, WithKeep, WithPrioritiesConfig, and
// of the options of a Limiter WithBurst and WithoutTotals. The others are an error.
type PrioritiesOption interface{ priorities(*prioritiesSettings) }

// prioritiesSettings is what the options fill in. Rate and Burst are a Limiter's.
type prioritiesSettings struct {
	kindSettings
	classes [classes]PriorityClass
	keep    float64
}

// prioritiesOption is an option of nothing but a Priorities.
type prioritiesOption func(*prioritiesSettings)

func (o prioritiesOption) priorities(s *prioritiesSettings) { o(s) }
func (o Option) priorities(s *prioritiesSettings)           { s.borrow(o) }

// WithPrioritiesConfig sets everything at once, and so comes first. Its Rate is zero
// or the one given to NewPriorities.
//
// Default: DefaultPrioritiesConfig.
func WithPrioritiesConfig(c PrioritiesConfig) PrioritiesOption {
	return prioritiesOption(func(s *prioritiesSettings) {
		s.Burst, s.classes, s.keep = c.Burst, c.Classes, c.Keep
		s.same("Rate", c.Rate)
	})
}

// WithClass sets what the calls of priority p are assured, and how much of the shared
// bucket they leave to more important ones.
//
// Default: P0 0.2 and 0, P1 0.1 and 0.1, P2 0.05 and 0.3.
func WithClass(p sluice.Priority, assured, floor float64) PrioritiesOption {
	return prioritiesOption(func(s *prioritiesSettings) {
		if p < sluice.P0 || p > sluice.P2 {
			s.errs = append(s.errs, fmt.Errorf("ratelimit: WithClass(%v): the classes are P0, P1 and P2", p))
			return
		}
		s.classes[classOf(p)] = PriorityClass{Assured: assured, Floor: floor}
	})
}

// WithKeep sets the share of its own tokens that a class does not lend to others.
//
// Default: 0.9.
func WithKeep(share float64) PrioritiesOption {
	return prioritiesOption(func(s *prioritiesSettings) { s.keep = share })
}

// applyPriorities works the options out, and returns all that is wrong with them.
func applyPriorities(name string, rate Rate, opts []PrioritiesOption) (c PrioritiesConfig, counted bool, err error) {
	unset := DefaultPrioritiesConfig()
	s := prioritiesSettings{*newKindSettings(rate), unset.Classes, unset.Keep}
	for i, o := range opts {
		if s.given(i, o != nil) {
			o.priorities(&s)
		}
	}
	if s.MaxWait != Auto {
		s.errs = append(s.errs, errors.New("ratelimit: WithMaxWait means nothing to a Priorities"))
	}
	c = PrioritiesConfig{s.Rate, s.Burst, s.classes, s.keep}
	return c, !s.uncounted, s.check(name, "Priorities", c, "WithBurst")
}
