package ratelimit

import (
	"errors"
	"fmt"
)

// KeyedExactOption sets one thing of a new KeyedExact. The last one wins; they start from
// DefaultKeyedExactConfig. They are WithKey, WithMaxKeys, WithKeyedExactConfig, and all
// options of a Limiter but WithConfig, which hold for each key that is not in WithKey.
type KeyedExactOption interface{ keyedExact(*keyedExactSettings) }

// MaxKeysOption is an option of what holds so many keys.
type MaxKeysOption interface {
	KeyedOption
	KeyedExactOption
	HotParametersOption
}

// keyedExactSettings is what the options of a KeyedExact fill in.
type keyedExactSettings struct {
	kindSettings
	keys    []KeyConfig
	maxKeys int
}

// keyedExactOption is an option of nothing but a KeyedExact.
type keyedExactOption func(*keyedExactSettings)

func (o keyedExactOption) keyedExact(s *keyedExactSettings) { o(s) }
func (o Option) keyedExact(s *keyedExactSettings)           { s.borrow(o) }

// maxKeysOption is WithMaxKeys.
type maxKeysOption int

func (n maxKeysOption) keyed(s *keyedSettings)           { s.maxKeys = int(n) }
func (n maxKeysOption) keyedExact(s *keyedExactSettings) { s.maxKeys = int(n) }

// WithMaxKeys sets how many keys a Keyed or HotParameters is made for, which take 20 bytes
// each; or how many a KeyedExact holds, which take 2 KiB.
//
// Default: 65 536, and 1 024 for a KeyedExact.
func WithMaxKeys(n int) MaxKeysOption { return maxKeysOption(n) }

// WithKeyedExactConfig sets everything at once, and so comes first. Its Rate is zero or
// the one given to NewKeyedExact.
//
// Default: DefaultKeyedExactConfig.
func WithKeyedExactConfig(c KeyedExactConfig) KeyedExactOption {
	c = c.Clone()
	return keyedExactOption(func(s *keyedExactSettings) {
		c := c.Clone()
		s.same("Rate", c.Rate)
		c.Rate = s.Rate
		s.Config, s.keys, s.maxKeys = c.Config, c.Keys, c.MaxKeys
	})
}

// WithKey gives one key another rate, and options of a Limiter of its own; what these do
// not set is as in DefaultConfig. WithoutTotals means nothing here.
//
// Default: none.
func WithKey(key string, rate Rate, opts ...Option) KeyedExactOption {
	return keyedExactOption(func(s *keyedExactSettings) {
		own := newKindSettings(rate)
		for i, o := range opts {
			if own.given(i, o != nil) {
				o(&own.settings)
			}
		}
		if own.uncounted {
			own.errs = append(own.errs, errors.New("ratelimit: WithoutTotals is for all keys"))
		}
		for _, err := range own.errs {
			s.errs = append(s.errs, fmt.Errorf("ratelimit: key %q: %w", key, err))
		}
		s.keys = append(s.keys, KeyConfig{key, own.Config})
	})
}

// applyKeyedExact works the options out, and returns all that is wrong with them.
func applyKeyedExact(name string, rate Rate, opts []KeyedExactOption) (c KeyedExactConfig, counted bool, err error) {
	unset := DefaultKeyedExactConfig()
	s := &keyedExactSettings{kindSettings: *newKindSettings(rate), maxKeys: unset.MaxKeys}
	for i, o := range opts {
		if s.given(i, o != nil) {
			o.keyedExact(s)
		}
	}
	c = KeyedExactConfig{s.Config, s.keys, s.maxKeys}
	return c, !s.uncounted, s.check(name, "KeyedExact", c, "WithBurst", "WithInitial", "WithMaxDebt", "WithMaxWaiters")
}
