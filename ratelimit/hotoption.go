package ratelimit

// HotParametersOption sets one thing of a new HotParameters. The last one wins; they start
// from DefaultHotParametersConfig. They are WithException, WithHotParametersConfig,
// WithMaxKeys, WithWhenFull, WithTopRejected, and of the options of a Limiter WithBurst,
// WithMaxDebt and WithoutTotals. The others are an error.
type HotParametersOption interface{ hotParameters(*hotSettings) }

// TableOption is an option of what has a table of keys: of a Keyed and a HotParameters.
type TableOption interface {
	KeyedOption
	HotParametersOption
}

// hotSettings is what the options of a HotParameters fill in: what a Keyed has but
// classes, and exceptions.
type hotSettings struct {
	keyedSettings
	exceptions []HotException
}

// hotOption is an option of nothing but a HotParameters.
type hotOption func(*hotSettings)

func (o hotOption) hotParameters(s *hotSettings)     { o(s) }
func (o keyedOption) hotParameters(s *hotSettings)   { o(&s.keyedSettings) }
func (n maxKeysOption) hotParameters(s *hotSettings) { s.maxKeys = int(n) }
func (o Option) hotParameters(s *hotSettings)        { s.borrow(o) }

// WithException gives one value a limit of its own. Auto is a burst of as many tokens as
// come in the rate's Per.
//
// Default: no exceptions.
func WithException(value string, rate Rate, burst int64) HotParametersOption {
	return hotOption(func(s *hotSettings) { s.exceptions = append(s.exceptions, HotException{value, rate, burst, Auto}) })
}

// WithHotParametersConfig sets everything at once, and so comes first. Its Rate is zero or
// the one given to NewHotParameters.
//
// Default: DefaultHotParametersConfig.
func WithHotParametersConfig(c HotParametersConfig) HotParametersOption {
	c = c.Clone()
	return hotOption(func(s *hotSettings) {
		s.use(c.keyed(nil))
		s.exceptions = c.Clone().Exceptions
	})
}

// applyHotParameters works the options out, and returns all that is wrong with them.
func applyHotParameters(name string, rate Rate, opts []HotParametersOption) (c HotParametersConfig, counted bool, err error) {
	s := &hotSettings{keyedSettings: *newKeyedSettings(rate, DefaultHotParametersConfig().keyed(nil))}
	for i, o := range opts {
		if s.given(i, o != nil) {
			o.hotParameters(s)
		}
	}
	k := s.config()
	c = HotParametersConfig{k.Rate, k.Burst, k.MaxDebt, s.exceptions, k.MaxKeys, k.WhenFull, k.TopRejected}
	return c, !s.uncounted, s.complain(name, "HotParameters", c)
}
