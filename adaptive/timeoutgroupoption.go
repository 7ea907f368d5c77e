package adaptive

import "errors"

// timeoutGroupSettings is what only a TimeoutGroup's options set.
type timeoutGroupSettings struct {
	most      int
	overrides map[string][]TimeoutOption
	keys      []string // of overrides, in order
}

// errGroupOption is NewTimeout's answer to WithMaxKeys and WithOverride.
var errGroupOption = errors.New("adaptive: WithMaxKeys and WithOverride are for NewTimeoutGroup")

const defaultMaxKeys = 1024

// WithMaxKeys sets how many Timeouts a TimeoutGroup holds. It is an error in
// NewTimeout.
//
// Default: 1 024.
func WithMaxKeys(n int) TimeoutOption {
	return func(s *timeoutSettings) { s.forGroup().most = n }
}

// WithOverride sets options that hold for one key of a TimeoutGroup, on top of the
// group's; WithBounds is one of them. Further uses for the same key add to it. It is
// an error in NewTimeout.
//
// Default: none.
func WithOverride(key string, opts ...TimeoutOption) TimeoutOption {
	return func(s *timeoutSettings) {
		g := s.forGroup()
		if _, ok := g.overrides[key]; !ok {
			g.keys = append(g.keys, key)
		}
		g.overrides[key] = append(g.overrides[key], opts...)
	}
}

func (s *timeoutSettings) forGroup() *timeoutGroupSettings {
	if s.group == nil {
		s.group = &timeoutGroupSettings{most: defaultMaxKeys, overrides: map[string][]TimeoutOption{}}
	}
	return s.group
}
