package breaker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// settings is what the options fill in.
type settings struct {
	Config
	ownRules bool // a rule option has replaced the rules that were there before
	hooks    hooks
	errs     []error
	group    *groupSettings // nil until a group option is used
}

// hooks are the foreign code that a breaker calls. They are no part of a Config,
// and stay as they are for the life of the breaker.
type hooks struct {
	classify  func(ctx context.Context, err error) Verdict
	successes []error
	budget    ProbeBudget
	onChange  []func(Event)
	logger    *slog.Logger
}

func newSettings() *settings { return &settings{Config: DefaultConfig()} }

// apply runs the options of one list. Rules that one of them gives replace those
// from before the list.
func (s *settings) apply(opts []Option) {
	s.ownRules = false
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("breaker: option %d is nil", i))
			continue
		}
		o(s)
	}
}

// check returns all that is wrong.
func (s *settings) check() error { return errors.Join(append(s.errs, s.Validate())...) }

// noHooks is what breakers without foreign code share. It is never changed.
var noHooks hooks

// keep returns a copy that outlives the settings.
func (h hooks) keep() *hooks {
	if h.classify == nil && h.successes == nil && h.budget == nil && h.onChange == nil && h.logger == nil {
		return &noHooks
	}
	return &h
}

// listening reports whether anybody wants events.
func (h *hooks) listening() bool { return len(h.onChange) > 0 || h.logger != nil }
