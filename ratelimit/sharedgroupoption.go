package ratelimit

import (
	"errors"
	"fmt"
)

// sharedGroupSettings is what only a SharedGroup's options set.
type sharedGroupSettings struct {
	most      int
	overrides map[string][]SharedOption
	keys      []string // of overrides, in order
}

func (s *sharedSettings) forGroup() *sharedGroupSettings {
	if s.group == nil {
		s.group = &sharedGroupSettings{most: 1024, overrides: map[string][]SharedOption{}}
	}
	return s.group
}

// WithSharedMaxKeys sets how many limiters a SharedGroup holds. It is an error in
// NewShared.
//
// Default: 1 024.
func WithSharedMaxKeys(n int) SharedOption {
	return sharedOption(func(s *sharedSettings) { s.forGroup().most = n })
}

// WithSharedOverride sets options that hold for one key of a SharedGroup, on top of
// the group's: another burst, say, or with WithSharedThreshold another rate. Further
// uses for the same key add to it. Guards and listeners are the group's. It is an error
// in NewShared.
//
// Default: none.
func WithSharedOverride(key string, opts ...SharedOption) SharedOption {
	return sharedOption(func(s *sharedSettings) {
		g := s.forGroup()
		if _, ok := g.overrides[key]; !ok {
			g.keys = append(g.keys, key)
		}
		g.overrides[key] = append(g.overrides[key], opts...)
	})
}

// checkOverrides returns all that is wrong with c under each override.
func (g *SharedGroup) checkOverrides(c SharedConfig) error {
	var errs []error
	for _, key := range g.keys {
		s := newSharedSettings(c)
		s.apply(g.overrides[key])
		switch {
		case s.group != nil:
			s.errs = append(s.errs, errSharedGroupOption)
		case s.hooks.guard != nil || s.hooks.listening() || s.limiter.uncounted:
			s.errs = append(s.errs, errors.New("ratelimit: guards, listeners, loggers and totals are the group's"))
		}
		if err := errors.Join(append(s.errs, s.Validate())...); err != nil {
			errs = append(errs, fmt.Errorf("ratelimit: override of %q: %w", key, err))
		}
	}
	return errors.Join(errs...)
}

// overridden is c with the options of one key, which have been checked.
func (g *SharedGroup) overridden(c SharedConfig, key string) SharedConfig {
	s := newSharedSettings(c)
	s.apply(g.overrides[key])
	return s.SharedConfig
}
