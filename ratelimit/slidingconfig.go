package ratelimit

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// SlidingWindowConfig is what a SlidingWindow decides on, as plain data: start from
// DefaultSlidingWindowConfig and set Limit, because a SlidingWindowConfig is taken
// literally and the zero one does not validate.
//
// In JSON the keys are in snake case, rates and durations are text such as "1000/h"
// and "250ms", and decoding goes over what was there: absent keys keep their value,
// an unknown key is an error.
type SlidingWindowConfig struct {
	// Limit is how many tokens there are in a window, Tokens, and how long a window
	// is, Per. At most 16 777 214 tokens.
	Limit Rate
	// CountRejected lets calls count that are refused too: see WithRejectedCounted.
	CountRejected bool
	// MaxWait is how long Wait and Do may wait for tokens. Auto lets Wait wait as
	// long as its ctx does, and Do not at all.
	MaxWait time.Duration
	// MaxWaiters is how many callers may wait at a time; one more is refused.
	MaxWaiters int
}

// DefaultSlidingWindowConfig returns a SlidingWindowConfig without a Limit: calls that
// are refused do not count, and at most 10 000 callers wait.
func DefaultSlidingWindowConfig() SlidingWindowConfig {
	c := DefaultConfig()
	return SlidingWindowConfig{MaxWait: c.MaxWait, MaxWaiters: c.MaxWaiters}
}

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c SlidingWindowConfig) Validate() error {
	var v complaints
	v.quota(c.Limit, maxPair, maxPer, "SlidingWindow")
	v.patience(c.patience())
	return errors.Join(v...)
}

func (c SlidingWindowConfig) patience() patience { return patience{c.MaxWait, c.MaxWaiters} }

// windowJSON is a SlidingWindowConfig as JSON has it.
type windowJSON struct {
	Limit         Rate                  `json:"limit"`
	CountRejected bool                  `json:"count_rejected"`
	MaxWait       jsontime.AutoDuration `json:"max_wait"`
	MaxWaiters    int                   `json:"max_waiters"`
}

// MarshalJSON writes every key, rates and durations as text.
func (c SlidingWindowConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is
// an error. It does not validate; c is as before when it returns an error.
func (c *SlidingWindowConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = SlidingWindowConfig{j.Limit, j.CountRejected, time.Duration(j.MaxWait), j.MaxWaiters}
	return nil
}

func (c SlidingWindowConfig) toJSON() windowJSON {
	return windowJSON{c.Limit, c.CountRejected, jsontime.AutoDuration(c.MaxWait), c.MaxWaiters}
}

// SlidingLogConfig is what a SlidingLog decides on: the same as a SlidingWindow, in
// Go and in JSON, but with a Limit of at most 1 000 tokens in at most 31 days. Start
// from DefaultSlidingLogConfig.
type SlidingLogConfig SlidingWindowConfig

// DefaultSlidingLogConfig returns a SlidingLogConfig without a Limit: calls that are
// refused do not count, and at most 10 000 callers wait.
func DefaultSlidingLogConfig() SlidingLogConfig {
	return SlidingLogConfig(DefaultSlidingWindowConfig())
}

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c SlidingLogConfig) Validate() error {
	var v complaints
	v.quota(c.Limit, maxLog, maxLogPer, "SlidingLog")
	v.patience(c.patience())
	return errors.Join(v...)
}

func (c SlidingLogConfig) patience() patience { return patience{c.MaxWait, c.MaxWaiters} }

// MarshalJSON writes every key, rates and durations as text.
func (c SlidingLogConfig) MarshalJSON() ([]byte, error) { return SlidingWindowConfig(c).MarshalJSON() }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is
// an error. It does not validate; c is as before when it returns an error.
func (c *SlidingLogConfig) UnmarshalJSON(data []byte) error {
	return (*SlidingWindowConfig)(c).UnmarshalJSON(data)
}

// quota complains about a limit of a kind that takes at most so many tokens in so
// long a time.
func (v *complaints) quota(limit Rate, most int64, longest time.Duration, kind string) {
	if err := limit.Validate(); err != nil {
		*v = append(*v, err)
		return
	}
	v.unless(limit.Tokens <= most, "Limit %v is of more than %d tokens, which a %s cannot count", limit, most, kind)
	v.unless(limit.Per <= longest, "Limit %v is for more than %v, which a %s does not remember", limit, longest, kind)
}

// patience complains about how callers wait.
func (v *complaints) patience(p patience) {
	v.unless(p.maxWait == Auto || p.maxWait >= 0 && p.maxWait <= maxFill, "MaxWait %v is not in [0, %v], and not Auto", p.maxWait, maxFill)
	v.unless(p.maxWaiters >= 0, "MaxWaiters %d is negative", p.maxWaiters)
}
