package ratelimit

import "fmt"

// KeyedOption sets one thing of a new Keyed. The last one wins; they start from
// DefaultKeyedConfig. They are WithKeyClass, WithMaxKeys, WithWhenFull, WithTopRejected,
// WithKeyedConfig, and of the options of a Limiter WithBurst, WithMaxDebt and
// WithoutTotals. The others are an error.
type KeyedOption interface{ keyed(*keyedSettings) }

// keyedSettings is what the options of a Keyed fill in. Rate, Burst and MaxDebt are a
// Limiter's.
type keyedSettings struct {
	kindSettings
	classes  []KeyClass
	maxKeys  int
	whenFull WhenFull
	top      int
}

// keyedOption is an option of what has keys; the interface that it is returned as says
// of which.
type keyedOption func(*keyedSettings)

func (o keyedOption) keyed(s *keyedSettings) { o(s) }
func (o Option) keyed(s *keyedSettings)      { s.borrow(o) }

// WithKeyedConfig sets everything at once, and so comes first. Its Rate is zero or the
// one given to NewKeyed.
//
// Default: DefaultKeyedConfig.
func WithKeyedConfig(c KeyedConfig) KeyedOption {
	c = c.Clone()
	return keyedOption(func(s *keyedSettings) { s.use(c.Clone()) })
}

// WithKeyClass gives the keys of a class a limit of their own: see Keyed.Class. Auto is
// a burst of as many tokens as come in the rate's Per.
//
// Default: no classes.
func WithKeyClass(name string, rate Rate, burst int64) KeyedOption {
	return keyedOption(func(s *keyedSettings) { s.classes = append(s.classes, KeyClass{name, rate, burst, Auto}) })
}

// WithWhenFull sets what becomes of a key that finds no free slot.
//
// Default: EvictLeastDebt.
func WithWhenFull(w WhenFull) TableOption {
	return keyedOption(func(s *keyedSettings) { s.whenFull = w })
}

// WithTopRejected keeps track of the n keys that are refused most, by name. It takes 100
// bytes for each.
//
// Default: 0, and 256 for a HotParameters.
func WithTopRejected(n int) TableOption {
	return keyedOption(func(s *keyedSettings) { s.top = n })
}

func newKeyedSettings(rate Rate, c KeyedConfig) *keyedSettings {
	s := &keyedSettings{kindSettings: *newKindSettings(rate)}
	s.use(c)
	return s
}

// use puts c in the place of what was set so far.
func (s *keyedSettings) use(c KeyedConfig) {
	s.Burst, s.MaxDebt, s.classes, s.maxKeys, s.whenFull, s.top = c.Burst, c.MaxDebt, c.Classes, c.MaxKeys, c.WhenFull, c.TopRejected
	s.same("Rate", c.Rate)
}

// config is the configuration that the settings come to.
func (s *keyedSettings) config() KeyedConfig {
	return KeyedConfig{s.Rate, s.Burst, s.MaxDebt, s.classes, s.maxKeys, s.whenFull, s.top}
}

// complain returns all that is wrong with the settings of a kind whose configuration is
// c.
func (s *keyedSettings) complain(name, kind string, c interface{ Validate() error }) error {
	if s.MaxWait != Auto {
		s.errs = append(s.errs, fmt.Errorf("ratelimit: WithMaxWait means nothing to a %s", kind))
	}
	return s.check(name, kind, c, "WithBurst", "WithMaxDebt")
}

// applyKeyed works the options out, and returns all that is wrong with them.
func applyKeyed(name string, rate Rate, opts []KeyedOption) (c KeyedConfig, counted bool, err error) {
	s := newKeyedSettings(rate, DefaultKeyedConfig())
	for i, o := range opts {
		if s.given(i, o != nil) {
			o.keyed(s)
		}
	}
	c = s.config()
	return c, !s.uncounted, s.complain(name, "Keyed", c)
}
