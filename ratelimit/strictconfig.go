package ratelimit

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// StrictWindowConfig is what a StrictWindow decides on, as plain data: start from
// DefaultStrictWindowConfig and set Limit, because a StrictWindowConfig is taken
// literally and the zero one does not validate.
//
// In JSON the keys are in snake case, rates and durations are text such as "1000/h"
// and "250ms", and decoding goes over what was there: absent keys keep their value,
// an unknown key is an error.
type StrictWindowConfig struct {
	// Limit is how many tokens there are in a window, Tokens, and how long a window
	// is, Per.
	Limit Rate
	// Share in [0.000001, 1] is how much of the limit can be taken at once, to the
	// millionth; at least one token. That must come again within two years.
	Share float64
	// MaxWait is how long Wait and Do may wait for tokens. Auto lets Wait wait as
	// long as its ctx does, and Do not at all.
	MaxWait time.Duration
	// MaxWaiters is how many callers may wait at a time; one more is refused.
	MaxWaiters int
}

// DefaultStrictWindowConfig returns a StrictWindowConfig without a Limit: half of it
// can be taken at once, and at most 10 000 callers wait.
func DefaultStrictWindowConfig() StrictWindowConfig {
	c := DefaultConfig()
	return StrictWindowConfig{Share: 0.5, MaxWait: c.MaxWait, MaxWaiters: c.MaxWaiters}
}

const minShare = 0.000001

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c StrictWindowConfig) Validate() error {
	var v complaints
	if err := c.Limit.Validate(); err != nil {
		v = append(v, err)
	}
	share := c.Share >= minShare && c.Share <= 1 // not for NaN either
	v.unless(share, "Share %v is not in [0.000001, 1]", c.Share)
	if b := c.bucket(); len(v) == 0 && b.Burst > b.Rate.within(maxFill) {
		v.add("Share %v of Limit %v is a burst of %d tokens, which do not come at %v within %v", c.Share, c.Limit, b.Burst, b.Rate, maxFill)
	}
	v.patience(patience{c.MaxWait, c.MaxWaiters})
	return errors.Join(v...)
}

// bucket is the configuration of the token bucket that a StrictWindow is.
func (c StrictWindowConfig) bucket() Config {
	b := DefaultConfig()
	b.Rate, b.MaxWait, b.MaxWaiters = c.Limit, c.MaxWait, c.MaxWaiters
	if !c.Limit.IsUnlimited() && !c.Limit.IsBlocked() && c.Share >= minShare && c.Share <= 1 {
		b.Burst = -rescale(-c.Limit.Tokens, million, millionths(c.Share)) // rounded up
		b.Rate.Tokens -= b.Burst - 1
	}
	return b
}

// strictJSON is a StrictWindowConfig as JSON has it.
type strictJSON struct {
	Limit      Rate                  `json:"limit"`
	Share      float64               `json:"share"`
	MaxWait    jsontime.AutoDuration `json:"max_wait"`
	MaxWaiters int                   `json:"max_waiters"`
}

// MarshalJSON writes every key, rates and durations as text.
func (c StrictWindowConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is
// an error. It does not validate; c is as before when it returns an error.
func (c *StrictWindowConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = StrictWindowConfig{j.Limit, j.Share, time.Duration(j.MaxWait), j.MaxWaiters}
	return nil
}

func (c StrictWindowConfig) toJSON() strictJSON {
	return strictJSON{c.Limit, c.Share, jsontime.AutoDuration(c.MaxWait), c.MaxWaiters}
}
