package canary

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// ControllerConfig is what a Controller goes by, as plain data: start from
// DefaultControllerConfig, because it is taken literally and the zero ControllerConfig
// does not validate.
//
// In JSON the keys are in snake case, durations are text such as "5m", weights "5%", and
// decoding goes over what was there: absent keys keep their value, the list of steps is
// replaced whole, an unknown key is an error.
type ControllerConfig struct {
	// Steps are the weights that the version goes through, each larger than the one before
	// it, at most 100.
	Steps []RampStep
	// MinHold is how long a step lasts at least, where it does not say so itself.
	MinHold time.Duration
	// StuckAfter is how long a step may last before a ControllerStuck event tells of it.
	// Auto is three times the step's hold; 0 never tells.
	StuckAfter time.Duration
	// NoData is what happens when nothing was seen of the version for NoDataAfter.
	NoData      NoDataPolicy
	NoDataAfter time.Duration
	// AutoRollback takes the version's weight away when the Judge condemns it. Otherwise
	// the step is held, and an event tells of it.
	AutoRollback bool
	// RollbackOver is how long a rollback takes when StableReady says that stable could not
	// bear all users at once; 0 is at once all the same.
	RollbackOver time.Duration
	// Promote makes the version the stable one after the step of 100 %.
	Promote bool
	// Interval is how often Run looks.
	Interval time.Duration
}

// RampStep is one step of a ladder.
type RampStep struct {
	Weight Weight
	// Hold is how long it lasts at least; Auto is the MinHold of the configuration.
	Hold time.Duration
	// Gate keeps the version below this step until Approve is called, or the function of
	// WithApproval agrees.
	Gate bool
}

// NoDataPolicy is what happens to a version of which nothing is seen.
type NoDataPolicy uint8

const (
	// NoDataHold: the step goes on.
	NoDataHold NoDataPolicy = iota + 1
	// NoDataRollback: it is rolled back.
	NoDataRollback
	// NoDataProceed: it goes on to the next step.
	NoDataProceed
)

var noDataNames = [...]string{NoDataHold: "hold", NoDataRollback: "rollback", NoDataProceed: "proceed"}

// String returns "hold", "rollback" or "proceed".
func (p NoDataPolicy) String() string {
	if p.known() {
		return noDataNames[p]
	}
	return fmt.Sprintf("NoDataPolicy(%d)", uint8(p))
}

func (p NoDataPolicy) known() bool { return p > 0 && int(p) < len(noDataNames) }

// MarshalText returns the text of String.
func (p NoDataPolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String writes.
func (p *NoDataPolicy) UnmarshalText(text []byte) error {
	i := slices.Index(noDataNames[:], string(text))
	if i < 1 {
		return fmt.Errorf(`canary: no_data %.40q is not one of "hold", "rollback", "proceed"`, text)
	}
	*p = NoDataPolicy(i)
	return nil
}

// DefaultControllerConfig returns: 1, 5, 10, 25, 50 and 100 %, each for five minutes at
// least, then promotion; rollback when condemned; hold without data.
func DefaultControllerConfig() ControllerConfig {
	return ControllerConfig{
		Steps:   ladder(Percent(1), Percent(5), Percent(10), Percent(25), Percent(50), All),
		MinHold: 5 * time.Minute, StuckAfter: Auto,
		NoData: NoDataHold, NoDataAfter: 30 * time.Minute,
		AutoRollback: true, RollbackOver: 30 * time.Second, Promote: true, Interval: time.Second,
	}
}

// ladder makes steps without gates.
func ladder(weights ...Weight) []RampStep {
	steps := make([]RampStep, len(weights))
	for i, w := range weights {
		steps[i] = RampStep{Weight: w, Hold: Auto}
	}
	return steps
}

const (
	maxRampSteps = 100
	maxRampTime  = 365 * 24 * time.Hour
)

// Clone returns a copy that shares nothing with c.
func (c ControllerConfig) Clone() ControllerConfig {
	c.Steps = slices.Clone(c.Steps)
	return c
}

// Validate returns all that is wrong with c, each complaint with the field, its value
// and what is wanted, joined; nil if nothing is.
func (c ControllerConfig) Validate() error {
	var v complaints
	v.unless(len(c.Steps) > 0 && len(c.Steps) <= maxRampSteps, "%d Steps are not 1 to %d", len(c.Steps), maxRampSteps)
	last := Weight(0)
	for i, s := range c.Steps {
		if err := s.Weight.Validate(); err != nil {
			v = append(v, fmt.Errorf("canary: Steps[%d].Weight: %w", i, err))
			continue
		}
		v.unless(s.Weight > last, "Steps[%d].Weight %v is not above %v", i, s.Weight, last)
		last = max(last, s.Weight)
		v.unless(s.Hold == Auto || s.Hold >= 0 && s.Hold <= maxRampTime, "Steps[%d].Hold %v is not in [0, %v], and not Auto", i, s.Hold, maxRampTime)
	}
	for _, d := range []struct {
		name  string
		value time.Duration
	}{{"MinHold", c.MinHold}, {"NoDataAfter", c.NoDataAfter}, {"RollbackOver", c.RollbackOver}} {
		v.unless(d.value >= 0 && d.value <= maxRampTime, "%s %v is not in [0, %v]", d.name, d.value, maxRampTime)
	}
	v.unless(c.StuckAfter == Auto || c.StuckAfter >= 0, "StuckAfter %v is negative, and not Auto", c.StuckAfter)
	v.unless(c.NoData.known(), "NoData %d is not one of %v, %v, %v", uint8(c.NoData), NoDataHold, NoDataRollback, NoDataProceed)
	v.unless(c.Interval >= time.Millisecond && c.Interval <= time.Hour, "Interval %v is not in [%v, %v]", c.Interval, time.Millisecond, time.Hour)
	return errors.Join(v...)
}

// hold is how long the step of that weight lasts at least.
func (c *ControllerConfig) hold(w Weight) time.Duration {
	for _, s := range c.Steps {
		if s.Weight == w && s.Hold != Auto {
			return s.Hold
		}
	}
	return c.MinHold
}

// stuckAfter is when it is told that the step of that weight does not end, 0 for never.
func (c *ControllerConfig) stuckAfter(w Weight) time.Duration {
	if c.StuckAfter == Auto {
		return 3 * c.hold(w)
	}
	return c.StuckAfter
}

// next is the smallest step above w; ok is false if there is none. It goes by the weight
// and not by the number of the step, so a ladder may be changed under way.
func (c *ControllerConfig) next(w Weight) (step RampStep, ok bool) {
	for _, s := range c.Steps {
		if s.Weight > w {
			return s, true
		}
	}
	return RampStep{}, false
}

// controllerConfigJSON is ControllerConfig as JSON has it.
type controllerConfigJSON struct {
	Steps        []RampStep            `json:"steps"`
	MinHold      jsontime.Duration     `json:"min_hold"`
	StuckAfter   jsontime.AutoDuration `json:"stuck_after"`
	NoData       NoDataPolicy          `json:"no_data"`
	NoDataAfter  jsontime.Duration     `json:"no_data_after"`
	AutoRollback bool                  `json:"auto_rollback"`
	RollbackOver jsontime.Duration     `json:"rollback_over"`
	Promote      bool                  `json:"promote"`
	Interval     jsontime.Duration     `json:"interval"`
}

// MarshalJSON writes every key, durations and weights as text.
func (c ControllerConfig) MarshalJSON() ([]byte, error) {
	j := c.toJSON()
	j.Steps = append([]RampStep{}, c.Steps...)
	return json.Marshal(j)
}

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is an
// error. It does not validate; c is as before when it returns an error.
func (c *ControllerConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	if j.Steps == nil {
		j.Steps = c.Steps
	}
	*c = ControllerConfig{
		j.Steps, time.Duration(j.MinHold), time.Duration(j.StuckAfter), j.NoData, time.Duration(j.NoDataAfter),
		j.AutoRollback, time.Duration(j.RollbackOver), j.Promote, time.Duration(j.Interval),
	}
	return nil
}

func (c ControllerConfig) toJSON() controllerConfigJSON {
	return controllerConfigJSON{
		nil, jsontime.Duration(c.MinHold), jsontime.AutoDuration(c.StuckAfter), c.NoData, jsontime.Duration(c.NoDataAfter),
		c.AutoRollback, jsontime.Duration(c.RollbackOver), c.Promote, jsontime.Duration(c.Interval),
	}
}

// rampStepJSON is RampStep as JSON has it.
type rampStepJSON struct {
	Weight Weight                `json:"weight"`
	Hold   jsontime.AutoDuration `json:"hold"`
	Gate   bool                  `json:"gate"`
}

// MarshalJSON writes every key.
func (s RampStep) MarshalJSON() ([]byte, error) {
	return json.Marshal(rampStepJSON{s.Weight, jsontime.AutoDuration(s.Hold), s.Gate})
}

// UnmarshalJSON decodes a step, whose hold is "auto" if it is absent; an unknown key is an
// error.
func (s *RampStep) UnmarshalJSON(data []byte) error {
	j := rampStepJSON{Hold: Auto}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*s = RampStep{j.Weight, time.Duration(j.Hold), j.Gate}
	return nil
}
