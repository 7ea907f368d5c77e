package ratelimit

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// SharedConfig is what a Shared limiter decides on, as plain data: start from
// DefaultSharedConfig and set Threshold, because a SharedConfig is taken literally
// and the zero SharedConfig does not validate.
//
// In JSON the keys are in snake case, rates and durations are text, and decoding goes
// over what was there: absent keys keep their value, an unknown key is an error.
type SharedConfig struct {
	// Threshold is how fast tokens come, and whose they are.
	Threshold Threshold
	// Burst is how many tokens there can be, and so the most that can be taken at
	// once: of all nodes together for a Global threshold, and for each node of the
	// others. Auto is as many as come in the rate's Per.
	Burst int64

	// Strict asks the store about every call, so that never more is admitted than the
	// limit.
	Strict bool
	// SyncEvery is for how long a lease lasts: a node buys as many tokens ahead as it
	// needs in that time.
	SyncEvery time.Duration
	// MaxLease is how many tokens a node holds at most, and so how many each may admit
	// more, in any time, than the limit. Auto is the smaller of what comes in SyncEvery
	// for a node and Burst / (4 × nodes), at least 1.
	MaxLease int64

	// StoreTimeout is how long a call of the store may take.
	StoreTimeout time.Duration
	// OnFailure is how to decide while the store does not answer.
	OnFailure FailurePolicy
	// LocalRate is the rate of FailLocal. The zero Rate is an equal share of the limit.
	LocalRate Rate
	// ReuseFor is how long ReuseLast goes on before it becomes FailLocal.
	ReuseFor time.Duration

	// Nodes is how many nodes there are as long as Run has not counted them.
	Nodes int64
	// NodeTTL is after which time of silence a node is not counted any more.
	NodeTTL time.Duration

	// MaxWait is how long Wait and Do may wait for tokens. Auto lets Wait wait as long
	// as its ctx does, and Do not at all.
	MaxWait time.Duration
	// MaxWaiters is how many callers of a key may wait at a time.
	MaxWaiters int
}

// DefaultSharedConfig returns a SharedConfig without a Threshold: leases for 100 ms,
// 20 ms for the store, and an equal share of the limit when it does not answer.
func DefaultSharedConfig() SharedConfig {
	return SharedConfig{
		Burst: Auto, SyncEvery: 100 * time.Millisecond, MaxLease: Auto,
		StoreTimeout: 20 * time.Millisecond, OnFailure: FailLocal, ReuseFor: time.Minute,
		Nodes: 1, NodeTTL: 10 * time.Second,
		MaxWait: Auto, MaxWaiters: 10_000,
	}
}

// sharedConfigOf is DefaultSharedConfig with a threshold.
func sharedConfigOf(t Threshold) SharedConfig {
	c := DefaultSharedConfig()
	c.Threshold = t
	return c
}

// maxNodes is how many nodes are counted at most. One more is no new one.
const maxNodes = 10_000

// Validate returns all that is wrong with c, each complaint with the field, its value
// and what is wanted, joined; nil if nothing is.
func (c SharedConfig) Validate() error {
	var v complaints
	if err := c.Threshold.Validate(); err != nil {
		v = append(v, err)
	} else if c.limits() {
		v = append(v, c.validateBurst())
	}
	v.between("SyncEvery", c.SyncEvery, time.Millisecond, time.Minute)
	v.unless(c.MaxLease == Auto || c.MaxLease >= 1, "MaxLease %d is less than 1, and not Auto; to hold none is Strict", c.MaxLease)
	v.between("StoreTimeout", c.StoreTimeout, time.Microsecond, time.Minute)
	v.unless(c.OnFailure >= FailLocal && c.OnFailure <= ReuseLast, "OnFailure %v is not one of FailLocal, FailOpen, FailClosed, ReuseLast", c.OnFailure)
	if c.LocalRate != (Rate{}) {
		if err := c.LocalRate.Validate(); err != nil {
			v.add("LocalRate: %w", err)
		}
	}
	v.between("ReuseFor", c.ReuseFor, 0, maxPer)
	v.unless(c.Nodes >= 1 && c.Nodes <= maxNodes, "Nodes %d is not in [1, %d]", c.Nodes, maxNodes)
	v.between("NodeTTL", c.NodeTTL, 100*time.Millisecond, time.Hour)
	v.unless(c.MaxWait == Auto || c.MaxWait >= 0 && c.MaxWait <= maxFill, "MaxWait %v is not in [0, %v], and not Auto", c.MaxWait, time.Duration(maxFill))
	v.unless(c.MaxWaiters >= 0, "MaxWaiters %d is negative", c.MaxWaiters)
	return errors.Join(v...)
}

func (v *complaints) between(field string, d, least, most time.Duration) {
	v.unless(d >= least && d <= most, "%s %v is not in [%v, %v]", field, d, least, most)
}

// validateBurst returns what is wrong with Burst at a rate that is one, both as a
// limiter of this process counts and, where it is shared, as a store does.
func (c SharedConfig) validateBurst() error {
	var v complaints
	v.fill("Burst", c.Burst, 1, c.Threshold.Rate)
	if len(v) == 0 && c.Threshold.Kind != PerNodeThreshold {
		q := Quota{c.Threshold.Rate, c.burst()}
		if err := q.Validate(); err != nil {
			v = append(v, err)
		} else if err := q.times(maxNodes).Validate(); err != nil && c.Threshold.Kind == ClusterAverageThreshold {
			v.add("Threshold %v with Burst %d, for %d nodes: %w", c.Threshold, q.Burst, maxNodes, err)
		}
	}
	return errors.Join(v...)
}

// limits reports whether the rate is neither Unlimited nor Blocked.
func (c SharedConfig) limits() bool {
	return !c.Threshold.Rate.IsUnlimited() && !c.Threshold.Rate.IsBlocked()
}

// burst is Burst worked out.
func (c SharedConfig) burst() int64 { return orElse(c.Burst, c.Threshold.Rate.Tokens) }

// sharedConfigJSON is SharedConfig as JSON has it.
type sharedConfigJSON struct {
	Threshold    Threshold             `json:"threshold"`
	Burst        autoInt               `json:"burst"`
	Strict       bool                  `json:"strict"`
	SyncEvery    jsontime.Duration     `json:"sync_every"`
	MaxLease     autoInt               `json:"max_lease"`
	StoreTimeout jsontime.Duration     `json:"store_timeout"`
	OnFailure    FailurePolicy         `json:"on_failure"`
	LocalRate    autoRate              `json:"local_rate"`
	ReuseFor     jsontime.Duration     `json:"reuse_for"`
	Nodes        int64                 `json:"nodes"`
	NodeTTL      jsontime.Duration     `json:"node_ttl"`
	MaxWait      jsontime.AutoDuration `json:"max_wait"`
	MaxWaiters   int                   `json:"max_waiters"`
}

// MarshalJSON writes every key, rates and durations as text; a LocalRate that is an
// equal share is "auto".
func (c SharedConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is an
// error. It does not validate more than each value by itself; c is as before when it
// returns an error.
func (c *SharedConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = SharedConfig{
		j.Threshold, int64(j.Burst), j.Strict, time.Duration(j.SyncEvery), int64(j.MaxLease), time.Duration(j.StoreTimeout),
		j.OnFailure, Rate(j.LocalRate), time.Duration(j.ReuseFor), j.Nodes, time.Duration(j.NodeTTL), time.Duration(j.MaxWait), j.MaxWaiters,
	}
	return nil
}

func (c SharedConfig) toJSON() sharedConfigJSON {
	return sharedConfigJSON{
		c.Threshold, autoInt(c.Burst), c.Strict, jsontime.Duration(c.SyncEvery), autoInt(c.MaxLease), jsontime.Duration(c.StoreTimeout),
		c.OnFailure, autoRate(c.LocalRate), jsontime.Duration(c.ReuseFor), c.Nodes, jsontime.Duration(c.NodeTTL), jsontime.AutoDuration(c.MaxWait), c.MaxWaiters,
	}
}

// An autoRate is a Rate of which the zero one is "auto" in text.
type autoRate Rate

func (r autoRate) MarshalText() ([]byte, error) {
	if r == (autoRate{}) {
		return []byte("auto"), nil
	}
	return Rate(r).MarshalText()
}

func (r *autoRate) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*r = autoRate{}
		return nil
	}
	return (*Rate)(r).UnmarshalText(text)
}
