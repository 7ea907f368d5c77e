package canary

import (
	"errors"
	"fmt"
)

// UpstreamsOption sets one thing of a new Upstreams. The last one wins; they start from
// DefaultUpstreamsConfig.
type UpstreamsOption func(*upstreamsSettings)

// WithUpstreams adds instances of weight 1.
//
// Default: none.
func WithUpstreams(names ...string) UpstreamsOption {
	return func(s *upstreamsSettings) {
		for _, name := range names {
			s.Upstreams = append(s.Upstreams, UpstreamConfig{name, 1})
		}
	}
}

// WithUpstream adds an instance with a weight beside those of the others.
//
// Default: none.
func WithUpstream(name string, weight int) UpstreamsOption {
	return func(s *upstreamsSettings) { s.Upstreams = append(s.Upstreams, UpstreamConfig{name, weight}) }
}

// WithLoadFactor sets how many times its share of what is under way an instance may have.
//
// Default: 1.25.
func WithLoadFactor(factor float64) UpstreamsOption {
	return func(s *upstreamsSettings) { s.LoadFactor = factor }
}

// WithUpstreamsConfig replaces all data set so far by c, so it comes first.
//
// Default: DefaultUpstreamsConfig.
func WithUpstreamsConfig(c UpstreamsConfig) UpstreamsOption {
	return func(s *upstreamsSettings) { s.UpstreamsConfig = c.Clone() }
}

// upstreamsSettings is what the options fill in.
type upstreamsSettings struct {
	UpstreamsConfig
	errs []error
}

func (s *upstreamsSettings) apply(opts []UpstreamsOption) {
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("canary: option %d is nil", i))
			continue
		}
		o(s)
	}
}

// check returns all that is wrong.
func (s *upstreamsSettings) check() error { return errors.Join(append(s.errs, s.Validate())...) }
