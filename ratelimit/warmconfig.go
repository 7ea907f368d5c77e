package ratelimit

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// WarmUpConfig is what a WarmUp decides on, as plain data: start from
// DefaultWarmUpConfig and set Rate and Period, because a WarmUpConfig is taken
// literally and the zero one does not validate.
//
// In JSON the keys are in snake case, rates and durations are text such as "100/s"
// and "10s", and decoding goes over what was there: absent keys keep their value, an
// unknown key is an error.
type WarmUpConfig struct {
	// Rate is how fast tokens come when it is warm, at most 1 000 000/s.
	Rate Rate
	// Period is how long it takes to get warm, at most a day. 0 is no warm-up.
	Period time.Duration
	// ColdFactor in [1, 10] is how much slower it is when it is cold.
	ColdFactor float64
	// Burst is how many tokens there can be, and so the most that can be taken at once,
	// at least 1. It must fill within a day. Auto is as many as come in 100 ms, so that
	// a cold start is no burst.
	Burst int64
	// MaxWait is how long Wait and Do may wait for tokens. Auto lets Wait wait as
	// long as its ctx does, and Do not at all.
	MaxWait time.Duration
	// MaxWaiters is how many callers may wait at a time; one more is refused.
	MaxWaiters int
}

// DefaultWarmUpConfig returns a WarmUpConfig without a Rate and a Period: a third of the
// rate when cold, a tenth of a second's tokens at once, and at most 10 000 callers wait.
func DefaultWarmUpConfig() WarmUpConfig {
	c := DefaultConfig()
	return WarmUpConfig{ColdFactor: 3, Burst: Auto, MaxWait: c.MaxWait, MaxWaiters: c.MaxWaiters}
}

const (
	maxColdFactor = 10
	// maxWarmPerMicro is the highest rate, in tokens per microsecond: with more, the
	// price of a token could not be told finely enough.
	maxWarmPerMicro = 1
)

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c WarmUpConfig) Validate() error {
	var v complaints
	if err := c.Rate.Validate(); err != nil {
		v = append(v, err)
	} else if !c.Rate.IsUnlimited() && !c.Rate.IsBlocked() {
		v.unless(c.Rate.Tokens <= maxWarmPerMicro*int64(c.Rate.Per/time.Microsecond), "Rate %v is more than a WarmUp can do, %d000000/s", c.Rate, maxWarmPerMicro)
		if most := max(1, c.Rate.within(maxWarmFill)); c.Burst != Auto {
			v.unless(c.Burst >= 1 && c.Burst <= most, "Burst %d is not in [1, %d], what comes at %v within %v, and not Auto", c.Burst, most, c.Rate, maxWarmFill)
		}
	}
	v.unless(c.Period >= 0 && c.Period <= day, "Period %v is not in [0, %v]", c.Period, day)
	v.unless(c.ColdFactor >= 1 && c.ColdFactor <= maxColdFactor, "ColdFactor %v is not in [1, %d]", c.ColdFactor, maxColdFactor) // also catches NaN
	v.patience(c.patience())
	return errors.Join(v...)
}

func (c WarmUpConfig) patience() patience { return patience{c.MaxWait, c.MaxWaiters} }

// burst is Burst worked out.
func (c WarmUpConfig) burst() int64 {
	return orElse(c.Burst, max(1, c.Rate.within(100*time.Millisecond)))
}

// warmUpJSON is a WarmUpConfig as JSON has it.
type warmUpJSON struct {
	Rate       Rate                  `json:"rate"`
	Period     jsontime.Duration     `json:"period"`
	ColdFactor float64               `json:"cold_factor"`
	Burst      autoInt               `json:"burst"`
	MaxWait    jsontime.AutoDuration `json:"max_wait"`
	MaxWaiters int                   `json:"max_waiters"`
}

// MarshalJSON writes every key, rates and durations as text.
func (c WarmUpConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is
// an error. It does not validate more than each value by itself; c is as before
// when it returns an error.
func (c *WarmUpConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = WarmUpConfig{j.Rate, time.Duration(j.Period), j.ColdFactor, int64(j.Burst), time.Duration(j.MaxWait), j.MaxWaiters}
	return nil
}

func (c WarmUpConfig) toJSON() warmUpJSON {
	return warmUpJSON{c.Rate, jsontime.Duration(c.Period), c.ColdFactor, autoInt(c.Burst), jsontime.AutoDuration(c.MaxWait), c.MaxWaiters}
}
