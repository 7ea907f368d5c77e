package adaptive

import "errors"

// limiterGroupSettings is what only a LimiterGroup's options set.
type limiterGroupSettings struct {
	most      int
	overrides map[string][]LimiterOption
	keys      []string // of overrides, in order
}

// errLimiterGroupOption is NewLimiter's answer to these.
var errLimiterGroupOption = errors.New("adaptive: WithMaxLimiters and WithLimiterOverride are for NewLimiterGroup")

// WithMaxLimiters sets how many keys a LimiterGroup holds. It is an error in NewLimiter.
//
// Default: 1 024.
func WithMaxLimiters(n int) LimiterOption {
	return func(s *limiterSettings) { s.forGroup().most = n }
}

// WithLimiterOverride sets options that hold for one key of a LimiterGroup, on top of the
// group's. Further uses for the same key add to it. It is an error in NewLimiter.
//
// Default: none.
func WithLimiterOverride(key string, opts ...LimiterOption) LimiterOption {
	return func(s *limiterSettings) {
		g := s.forGroup()
		if _, ok := g.overrides[key]; !ok {
			g.keys = append(g.keys, key)
		}
		g.overrides[key] = append(g.overrides[key], opts...)
	}
}

func (s *limiterSettings) forGroup() *limiterGroupSettings {
	if s.group == nil {
		s.group = &limiterGroupSettings{most: defaultMaxKeys, overrides: map[string][]LimiterOption{}}
	}
	return s.group
}
