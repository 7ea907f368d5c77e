package ratelimit

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// A kind of limiter has options of its own, and takes those of a Limiter that mean
// something to it; each kind's interface says which. They fill in kindSettings.

// SlidingWindowOption sets one thing of a new SlidingWindow. The last one wins; they
// start from DefaultSlidingWindowConfig. They are WithRejectedCounted,
// WithSlidingWindowConfig, and of the options of a Limiter WithMaxWait, WithMaxWaiters
// and WithoutTotals. The others are an error.
type SlidingWindowOption interface{ slidingWindow(*kindSettings) }

// SlidingLogOption sets one thing of a new SlidingLog. The last one wins; they start
// from DefaultSlidingLogConfig. They are WithRejectedCounted, WithSlidingLogConfig, and
// of the options of a Limiter WithMaxWait, WithMaxWaiters and WithoutTotals. The others
// are an error.
type SlidingLogOption interface{ slidingLog(*kindSettings) }

// StrictWindowOption sets one thing of a new StrictWindow. The last one wins; they
// start from DefaultStrictWindowConfig. They are WithShare, WithStrictWindowConfig, and
// of the options of a Limiter WithMaxWait, WithMaxWaiters and WithoutTotals. The others
// are an error.
type StrictWindowOption interface{ strictWindow(*kindSettings) }

// WarmUpOption sets one thing of a new WarmUp. The last one wins; they start from
// DefaultWarmUpConfig. They are WithColdFactor, WithWarmUpConfig, and of the options of a
// Limiter WithBurst, WithMaxWait, WithMaxWaiters and WithoutTotals. The others are an
// error.
type WarmUpOption interface{ warmUp(*kindSettings) }

// PacerOption sets one thing of a new Pacer. The last one wins; they start from
// DefaultPacerConfig. They are WithSlack, WithPacerConfig, and of the options of a
// Limiter WithMaxWait, by default 500 ms, and WithoutTotals. The others are an error.
type PacerOption interface{ pacer(*kindSettings) }

// CountingOption is an option of what counts: of a SlidingWindow and a SlidingLog.
type CountingOption interface {
	SlidingWindowOption
	SlidingLogOption
}

// WithRejectedCounted lets calls count that are refused too, except those that are never
// admitted: who goes on trying is not let in until he has stopped for a while. It is for
// those who guess passwords; it would punish a client that only comes again too soon.
//
// Default: what is refused does not count.
func WithRejectedCounted() CountingOption {
	return kindOption(func(s *kindSettings) { s.countRejected = true })
}

// WithSlidingWindowConfig sets everything at once, and so comes first. Its Limit is
// zero or the one given to NewSlidingWindow.
//
// Default: DefaultSlidingWindowConfig.
func WithSlidingWindowConfig(c SlidingWindowConfig) SlidingWindowOption {
	return kindOption(func(s *kindSettings) { s.windowConfig(c) })
}

// WithSlidingLogConfig sets everything at once, and so comes first. Its Limit is zero
// or the one given to NewSlidingLog.
//
// Default: DefaultSlidingLogConfig.
func WithSlidingLogConfig(c SlidingLogConfig) SlidingLogOption {
	return kindOption(func(s *kindSettings) { s.windowConfig(SlidingWindowConfig(c)) })
}

// WithShare sets how much of its limit a StrictWindow lets go at once, in [0.000001, 1].
//
// Default: 0.5.
func WithShare(share float64) StrictWindowOption {
	return kindOption(func(s *kindSettings) { s.share = share })
}

// WithStrictWindowConfig sets everything at once, and so comes first. Its Limit is zero
// or the one given to NewStrictWindow.
//
// Default: DefaultStrictWindowConfig.
func WithStrictWindowConfig(c StrictWindowConfig) StrictWindowOption {
	return kindOption(func(s *kindSettings) {
		s.patience(patience{c.MaxWait, c.MaxWaiters})
		s.share = c.Share
		s.same("Limit", c.Limit)
	})
}

// WithColdFactor sets how much slower a WarmUp is when it is cold, in [1, 10].
//
// Default: 3.
func WithColdFactor(f float64) WarmUpOption {
	return kindOption(func(s *kindSettings) { s.coldFactor = f })
}

// WithWarmUpConfig sets everything at once, and so comes first. Its Rate and Period are
// zero or those given to NewWarmUp.
//
// Default: DefaultWarmUpConfig.
func WithWarmUpConfig(c WarmUpConfig) WarmUpOption {
	return kindOption(func(s *kindSettings) {
		s.patience(c.patience())
		s.coldFactor, s.Burst = c.ColdFactor, c.Burst
		s.same("Rate", c.Rate)
		if c.Period != 0 && c.Period != s.period {
			s.errs = append(s.errs, fmt.Errorf("ratelimit: Period %v of the configuration is not the %v given to the constructor", c.Period, s.period))
		}
	})
}

// WithSlack lets n calls of a Pacer go at once after a pause, beside the one whose turn
// it is.
//
// Default: 0.
func WithSlack(n int64) PacerOption { return kindOption(func(s *kindSettings) { s.slack = n }) }

// WithPacerConfig sets everything at once, and so comes first. Its Rate is zero or the
// one given to NewPacer.
//
// Default: DefaultPacerConfig.
func WithPacerConfig(c PacerConfig) PacerOption {
	return kindOption(func(s *kindSettings) {
		s.slack, s.MaxWait = c.Slack, c.MaxWait
		s.same("Rate", c.Rate)
	})
}

// kindSettings is what the options of all kinds fill in. Of a Limiter's settings, the
// Rate is the rate or limit given to the constructor.
type kindSettings struct {
	settings
	countRejected bool
	share         float64
	slack         int64
	period        time.Duration
	coldFactor    float64
}

// kindOption is an option of one or several kinds; the interface that it is returned
// as says of which.
type kindOption func(*kindSettings)

func (o kindOption) slidingWindow(s *kindSettings) { o(s) }
func (o kindOption) slidingLog(s *kindSettings)    { o(s) }
func (o kindOption) strictWindow(s *kindSettings)  { o(s) }
func (o kindOption) pacer(s *kindSettings)         { o(s) }
func (o kindOption) warmUp(s *kindSettings)        { o(s) }

func (o Option) slidingWindow(s *kindSettings) { s.borrow(o) }
func (o Option) slidingLog(s *kindSettings)    { s.borrow(o) }
func (o Option) strictWindow(s *kindSettings)  { s.borrow(o) }
func (o Option) pacer(s *kindSettings)         { s.borrow(o) }
func (o Option) warmUp(s *kindSettings)        { s.borrow(o) }

// borrow lets an option of a Limiter set what this kind has too. check says what it
// should not have set.
func (s *kindSettings) borrow(o Option) {
	if o == nil {
		s.errs = append(s.errs, errors.New("ratelimit: an option is nil"))
		return
	}
	o(&s.settings)
}

func newKindSettings(rate Rate) *kindSettings {
	s := &kindSettings{settings: settings{Config: DefaultConfig()}}
	s.Rate = rate
	return s
}

// windowConfig puts c in the place of what was set so far.
func (s *kindSettings) windowConfig(c SlidingWindowConfig) {
	s.patience(c.patience())
	s.countRejected = c.CountRejected
	s.same("Limit", c.Limit)
}

func (s *kindSettings) patience(p patience) { s.MaxWait, s.MaxWaiters = p.maxWait, p.maxWaiters }

// same complains of a rate in a configuration that is not the one given to the
// constructor.
func (s *kindSettings) same(field string, r Rate) {
	if r != (Rate{}) && r != s.Rate {
		s.errs = append(s.errs, fmt.Errorf("ratelimit: %s %v of the configuration is not the %v given to the constructor", field, r, s.Rate))
	}
}

// given reports whether the i-th option is there, and complains if it is not.
func (s *kindSettings) given(i int, there bool) bool {
	if !there {
		s.errs = append(s.errs, fmt.Errorf("ratelimit: option %d is nil", i))
	}
	return there
}

// check returns all that is wrong with the name, the options and what came of them. Of
// a Limiter's options, WithMaxWait and WithoutTotals mean something to every kind, and
// known are those that do to this one.
func (s *kindSettings) check(name, kind string, c interface{ Validate() error }, known ...string) error {
	errs := s.errs
	if name == "" {
		errs = append(errs, errors.New("ratelimit: the name is empty"))
	}
	unset := DefaultConfig()
	for _, o := range []struct {
		option string
		set    bool
	}{
		{"WithBurst", s.Burst != unset.Burst}, {"WithInitial", s.Initial != unset.Initial},
		{"WithMaxDebt", s.MaxDebt != unset.MaxDebt}, {"WithMaxWaiters", s.MaxWaiters != unset.MaxWaiters},
	} {
		if o.set && !slices.Contains(known, o.option) {
			errs = append(errs, fmt.Errorf("ratelimit: %s means nothing to a %s", o.option, kind))
		}
	}
	return errors.Join(append(errs, c.Validate())...)
}

// sliding is the settings of a SlidingWindow, and of a SlidingLog.
func (s *kindSettings) sliding() SlidingWindowConfig {
	return SlidingWindowConfig{s.Rate, s.countRejected, time.Duration(s.MaxWait), s.MaxWaiters}
}
