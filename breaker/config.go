package breaker

import (
	"encoding/json"
	"reflect"
	"slices"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// Auto stands for a value that New and Update work out from others. It is "auto"
// in JSON.
const Auto = jsontime.Auto

// Config is what a breaker decides on, as plain data: start from DefaultConfig,
// because a Config is taken literally and the zero Config does not validate.
//
// In JSON the keys are in snake case, durations are text such as "250ms", and
// decoding goes over what was there: absent keys keep their value, lists are
// replaced whole, an unknown key is an error.
type Config struct {
	// Rules trip the breaker, each by itself. At least one.
	Rules []Rule
	// Window is the span of the time window, in Buckets equal parts: it covers
	// between Window − Window/Buckets and Window.
	Window  time.Duration
	Buckets int
	// CountWindow, if not 0, replaces the time window by the last so many calls. At
	// most 16 384. Rules with an Over of their own keep their time window.
	CountWindow int
	// MinRequests is how many calls a window must hold before a ratio rule may
	// trip.
	MinRequests int
	// Confidence, if not 0, is a number of standard deviations z: a ratio rule
	// trips only when the Wilson lower bound of the ratio reaches it. 1.645 is a
	// one-sided 95 %.
	Confidence float64
	// OpenFor is how long the breaker stays open, before backoff and jitter.
	OpenFor time.Duration
	// BackoffFactor multiplies the open period each time a recovery fails, up to
	// BackoffMax; 1 is no backoff. BackoffMax Auto is the larger of a minute and
	// the open period.
	BackoffFactor float64
	BackoffMax    time.Duration
	// Jitter in [0, 1) spreads each open period evenly over ± that share.
	Jitter float64
	// Probes are the stages of half-open: each is how many calls must end well
	// before the next begins, and the last closes the breaker.
	Probes []int
	// ProbeTolerance in [0, 1) is the share of a stage that may fail.
	ProbeTolerance float64
	// ProbeLease is how long a probe may stay unsettled before it is written off as
	// failed. Auto is the larger of the open period and 10 s.
	ProbeLease time.Duration
	// Recovery admits a share of the calls after the breaker has closed, step by
	// step. Empty is off.
	Recovery []Step
	// InFlightSlow lets calls count as slow before they return.
	InFlightSlow bool
	// MinBudget is how long a call must have run for the caller's own deadline to
	// count as a failure. Auto is the shortest slow limit, 0 without slow rules.
	MinBudget time.Duration
}

// Step is a part of the recovery after closing: Share in [0.000001, 1] of the
// calls for a time.
type Step struct {
	Share float64
	For   time.Duration
}

// DefaultConfig returns: trip at half of at least 20 calls in 10 s failing, open
// for 5 s, doubling to at most a minute with 10 % jitter, one probe.
func DefaultConfig() Config {
	return Config{
		Rules:         []Rule{{Kind: ErrorRatio, Ratio: 0.5}},
		Window:        10 * time.Second,
		Buckets:       10,
		MinRequests:   20,
		OpenFor:       5 * time.Second,
		BackoffFactor: 2,
		BackoffMax:    Auto,
		Jitter:        0.1,
		Probes:        []int{1},
		ProbeLease:    Auto,
		MinBudget:     Auto,
	}
}

// Clone returns a copy that shares nothing with c.
func (c Config) Clone() Config {
	c.Rules = slices.Clone(c.Rules)
	c.Probes = slices.Clone(c.Probes)
	c.Recovery = slices.Clone(c.Recovery)
	return c
}

// Equal reports whether c and d decide the same.
func (c Config) Equal(d Config) bool {
	lists := slices.Equal(c.Rules, d.Rules) && slices.Equal(c.Probes, d.Probes) && slices.Equal(c.Recovery, d.Recovery)
	c.Rules, c.Probes, c.Recovery = nil, nil, nil
	d.Rules, d.Probes, d.Recovery = nil, nil, nil
	return lists && reflect.DeepEqual(c, d)
}

// configJSON is Config as JSON has it.
type configJSON struct {
	Rules          []Rule                `json:"rules"`
	Window         jsontime.Duration     `json:"window"`
	Buckets        int                   `json:"buckets"`
	CountWindow    int                   `json:"count_window"`
	MinRequests    int                   `json:"min_requests"`
	Confidence     float64               `json:"confidence"`
	OpenFor        jsontime.Duration     `json:"open_for"`
	BackoffFactor  float64               `json:"backoff_factor"`
	BackoffMax     jsontime.AutoDuration `json:"backoff_max"`
	Jitter         float64               `json:"jitter"`
	Probes         []int                 `json:"probes"`
	ProbeTolerance float64               `json:"probe_tolerance"`
	ProbeLease     jsontime.AutoDuration `json:"probe_lease"`
	Recovery       []Step                `json:"recovery"`
	InFlightSlow   bool                  `json:"in_flight_slow"`
	MinBudget      jsontime.AutoDuration `json:"min_budget"`
}

// MarshalJSON writes every key, durations as text.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, lists are
// replaced whole, an unknown key is an error. It does not validate; c is as
// before when it returns an error.
func (c *Config) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	j.Rules, j.Probes, j.Recovery = nil, nil, nil
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	rules, probes, recovery := c.Rules, c.Probes, c.Recovery
	if j.Rules != nil {
		rules = j.Rules
	}
	if j.Probes != nil {
		probes = j.Probes
	}
	if j.Recovery != nil {
		recovery = j.Recovery
	}
	*c = Config{
		rules, time.Duration(j.Window), j.Buckets, j.CountWindow, j.MinRequests, j.Confidence, time.Duration(j.OpenFor),
		j.BackoffFactor, time.Duration(j.BackoffMax), j.Jitter, probes, j.ProbeTolerance, time.Duration(j.ProbeLease),
		recovery, j.InFlightSlow, time.Duration(j.MinBudget),
	}
	return nil
}

func (c Config) toJSON() configJSON {
	return configJSON{
		c.Rules, jsontime.Duration(c.Window), c.Buckets, c.CountWindow, c.MinRequests, c.Confidence, jsontime.Duration(c.OpenFor),
		c.BackoffFactor, jsontime.AutoDuration(c.BackoffMax), c.Jitter, c.Probes, c.ProbeTolerance, jsontime.AutoDuration(c.ProbeLease),
		c.Recovery, c.InFlightSlow, jsontime.AutoDuration(c.MinBudget),
	}
}

// stepJSON is Step as JSON has it.
type stepJSON struct {
	Share float64           `json:"share"`
	For   jsontime.Duration `json:"for"`
}

// MarshalJSON writes the time as text.
func (s Step) MarshalJSON() ([]byte, error) {
	return json.Marshal(stepJSON{s.Share, jsontime.Duration(s.For)})
}

// UnmarshalJSON decodes over s; an unknown key is an error.
func (s *Step) UnmarshalJSON(data []byte) error {
	j := stepJSON{s.Share, jsontime.Duration(s.For)}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*s = Step{j.Share, time.Duration(j.For)}
	return nil
}
