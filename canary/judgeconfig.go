package canary

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// Auto stands for "worked out from what is seen", where a JudgeConfig may leave
// something to the Judge. It is "auto" in JSON.
const Auto = jsontime.Auto

// JudgeConfig is what a Judge decides on, as plain data: start from
// DefaultJudgeConfig, because it is taken literally and the zero JudgeConfig does not
// validate.
//
// In JSON the keys are in snake case, durations are text such as "30s", and decoding
// goes over what was there: absent keys keep their value, an unknown key is an error.
type JudgeConfig struct {
	// Alpha is the probability, for each metric, that a canary which is no worse than
	// stable is ever condemned.
	Alpha float64
	// MinFailing is how many users of the canary must have failed within one step before
	// it is condemned.
	MinFailing int
	// MaxErrorRate is the share of the canary's calls that may fail, whatever stable does;
	// 1 is no limit. Where stable fails as often, the canary is not to blame.
	MaxErrorRate float64
	// MinUsers and MinRequests are how many of the canary must have been seen in a step
	// before it passes.
	MinUsers, MinRequests int
	// Margin is how much more often than stable's the canary's users may fail, as a share,
	// for it to pass: 0.5 is half as many more.
	Margin float64
	// Tolerance is the share of the canary's users who may fail for it to pass where there
	// are too few failures to compare.
	Tolerance float64
	// PassAlpha is the probability with which the bounds for Margin and Tolerance may be
	// wrong. Evidence above 1/PassAlpha, which is too weak to condemn, keeps the canary
	// from passing.
	PassAlpha float64
	// SampleAlpha is the probability that users who come as they should are taken for a
	// sample ratio mismatch.
	SampleAlpha float64
	// SlowAbove is what a call must exceed to be slow; 0 is no such rule. Auto takes the
	// SlowQuantile of stable's calls that succeeded in the last one to two minutes.
	SlowAbove time.Duration
	// SlowQuantile is the share of stable's calls that is not slow, where SlowAbove is
	// Auto.
	SlowQuantile float64
	// WarmUp is how long from the begin of a step on calls are not slow whatever they
	// take, and the canary does not pass. At most a day.
	WarmUp time.Duration
}

// DefaultJudgeConfig returns: condemn with an error of one in a thousand, from five
// users who failed on; pass from 30 users and 20 calls on.
func DefaultJudgeConfig() JudgeConfig {
	return JudgeConfig{
		Alpha: 0.001, MinFailing: 5, MaxErrorRate: 0.2,
		MinUsers: 30, MinRequests: 20, Margin: 0.5, Tolerance: 0.2, PassAlpha: 0.05,
		SampleAlpha: 0.001, SlowAbove: Auto, SlowQuantile: 0.99, WarmUp: 30 * time.Second,
	}
}

// Validate returns all that is wrong with c, each complaint with the field, its value
// and what is wanted, joined; nil if nothing is.
func (c JudgeConfig) Validate() error {
	var v complaints
	for _, p := range []struct {
		name  string
		value float64
	}{{"Alpha", c.Alpha}, {"PassAlpha", c.PassAlpha}, {"SampleAlpha", c.SampleAlpha}} {
		v.unless(p.value >= 1e-9 && p.value <= 0.5, "%s %v is not in [1e-9, 0.5]", p.name, p.value) // also catches NaN
	}
	v.unless(c.MinFailing >= 1 && c.MinFailing <= int(All), "MinFailing %d is not in [1, %d]", c.MinFailing, int(All))
	v.unless(c.MaxErrorRate >= 1e-6 && c.MaxErrorRate <= 1, "MaxErrorRate %v is not in [0.000001, 1]", c.MaxErrorRate)
	v.unless(c.MinUsers >= 1 && c.MinUsers <= int(All), "MinUsers %d is not in [1, %d]", c.MinUsers, int(All))
	v.unless(c.MinRequests >= 1 && c.MinRequests <= math.MaxInt32, "MinRequests %d is not in [1, %d]", c.MinRequests, math.MaxInt32)
	v.unless(c.Margin >= 0.01 && c.Margin <= 100, "Margin %v is not in [0.01, 100]", c.Margin)
	v.unless(c.Tolerance >= 0.001 && c.Tolerance < 1, "Tolerance %v is not in [0.001, 1)", c.Tolerance)
	v.unless(c.SlowAbove == Auto || c.SlowAbove >= 0, "SlowAbove %v is negative, and not Auto", c.SlowAbove)
	v.unless(c.SlowQuantile >= 0.5 && c.SlowQuantile <= 0.9999, "SlowQuantile %v is not in [0.5, 0.9999]", c.SlowQuantile)
	v.unless(c.WarmUp >= 0 && c.WarmUp <= 24*time.Hour, "WarmUp %v is not in [0, %v]", c.WarmUp, 24*time.Hour)
	return errors.Join(v...)
}

// judgeConfigJSON is JudgeConfig as JSON has it.
type judgeConfigJSON struct {
	Alpha        float64               `json:"alpha"`
	MinFailing   int                   `json:"min_failing"`
	MaxErrorRate float64               `json:"max_error_rate"`
	MinUsers     int                   `json:"min_users"`
	MinRequests  int                   `json:"min_requests"`
	Margin       float64               `json:"margin"`
	Tolerance    float64               `json:"tolerance"`
	PassAlpha    float64               `json:"pass_alpha"`
	SampleAlpha  float64               `json:"sample_alpha"`
	SlowAbove    jsontime.AutoDuration `json:"slow_above"`
	SlowQuantile float64               `json:"slow_quantile"`
	WarmUp       jsontime.Duration     `json:"warm_up"`
}

// MarshalJSON writes every key, durations as text.
func (c JudgeConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is an
// error. It does not validate; c is as before when it returns an error.
func (c *JudgeConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = JudgeConfig{
		j.Alpha, j.MinFailing, j.MaxErrorRate, j.MinUsers, j.MinRequests, j.Margin, j.Tolerance,
		j.PassAlpha, j.SampleAlpha, time.Duration(j.SlowAbove), j.SlowQuantile, time.Duration(j.WarmUp),
	}
	return nil
}

func (c JudgeConfig) toJSON() judgeConfigJSON {
	return judgeConfigJSON{
		c.Alpha, c.MinFailing, c.MaxErrorRate, c.MinUsers, c.MinRequests, c.Margin, c.Tolerance,
		c.PassAlpha, c.SampleAlpha, jsontime.AutoDuration(c.SlowAbove), c.SlowQuantile, jsontime.Duration(c.WarmUp),
	}
}
