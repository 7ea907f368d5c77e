package bulkhead

import "errors"

// groupSettings is what only a Group's options set.
type groupSettings struct {
	most      int
	overrides map[string][]Option
	keys      []string // of overrides, in order
}

// errGroupOption is New's answer to WithMaxKeys and WithOverride.
var errGroupOption = errors.New("bulkhead: WithMaxKeys and WithOverride are for NewGroup")

const defaultMaxKeys = 1024

// WithMaxKeys sets how many bulkheads a Group holds. It is an error in New.
//
// Default: 1 024.
func WithMaxKeys(n int) Option {
	return func(s *settings) { s.forGroup().most = n }
}

// WithOverride sets options that hold for one key of a Group, on top of the Group's;
// WithLimit is one of them. Further uses for the same key add to it. It is an error
// in New.
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
