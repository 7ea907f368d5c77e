package breaker

import "errors"

// groupSettings is what only a Group's options set.
type groupSettings struct {
	most      int
	overrides map[string][]Option
	keys      []string // of overrides, in order
}

// errGroupOption is New's answer to WithMaxKeys and WithOverride.
var errGroupOption = errors.New("breaker: WithMaxKeys and WithOverride are for NewGroup")

// WithMaxKeys sets how many breakers a Group holds. It is an error in New.
//
// Default: 1 024.
func WithMaxKeys(n int) Option {
	return func(s *settings) { s.forGroup().most = n }
}

// WithOverride sets options that hold for one key of a Group, on top of the
// Group's; rules replace the Group's rules. Further uses for the same key add to
// it. It is an error in New.
//
// Default: none.
func WithOverride(key string, opts ...Option) Option {
	return func(s *settings) {
		g := s.forGroup()
		if _, ok := g.overrides[key]; !ok {
			g.keys = append(g.keys, key)
		}
		g.overrides[key] = append(g.overrides[key], opts...)
	}
}

func (s *settings) forGroup() *groupSettings {
	if s.group == nil {
		s.group = &groupSettings{most: defaultMaxKeys, overrides: map[string][]Option{}}
	}
	return s.group
}

const defaultMaxKeys = 1024

// overridden returns config and hooks with the options of one key applied.
func overridden(c Config, h hooks, opts []Option) (Config, hooks, error) {
	s := &settings{Config: c.Clone(), hooks: h}
	s.apply(opts)
	if s.group != nil {
		s.errs = append(s.errs, errGroupOption)
	}
	return s.Config, s.hooks, s.check()
}
