package adaptive

import (
	"encoding/json"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// Auto stands for a value that NewTimeout and Update work out from others. It is
// "auto" in JSON.
const Auto = jsontime.Auto

// TimeoutConfig is what a Timeout decides on, as plain data: start from
// DefaultTimeoutConfig, because it is taken literally and the zero TimeoutConfig does
// not validate. Two that are equal decide the same.
//
// In JSON the keys are in snake case, durations are text such as "250ms", and
// decoding goes over what was there: absent keys keep their value, a rule is
// replaced whole, an unknown key is an error.
type TimeoutConfig struct {
	// Base and Max are what the limit stays within.
	Base, Max time.Duration
	// Initial is the limit until there have been enough calls. Auto is Max.
	Initial time.Duration
	// Rule is by what the limit follows how long calls take.
	Rule Rule
	// Margin is what the quantile of FalseTimeouts is multiplied by. In [1, 10].
	Margin float64
	// OutageCap is how many times the last resolved limit FalseTimeouts lets its limit
	// grow while most calls time out. In [1, 1000].
	OutageCap float64
	// ProbeShare is the share of calls that run as long as Max while FalseTimeouts has
	// to find out what it cuts calls off from; one a second does in any case. In [0, 1].
	ProbeShare float64
	// Window is the time that FalseTimeouts and Quantile always look at; at low traffic
	// they look further back, to History.
	Window, History time.Duration
	// Compact makes these two remember less finely, in 5 instead of 33 KiB: their
	// limits are up to 25 % too long instead of 12.5 %.
	Compact bool
}

// DefaultTimeoutConfig returns, for these bounds: begin at max, and cut off one call
// in a thousand that would have been answered, with a margin of a quarter; look at
// 10 s, and up to 5 min at low traffic; in an outage, wait for at most 4 times as
// long as before it.
func DefaultTimeoutConfig(base, max time.Duration) TimeoutConfig {
	return TimeoutConfig{
		Base: base, Max: max,
		Initial:    Auto,
		Rule:       FalseTimeouts(0.001),
		Margin:     1.25,
		OutageCap:  4,
		ProbeShare: 0.01,
		Window:     10 * time.Second,
		History:    5 * time.Minute,
	}
}

// bounds are what the limit stays within.
func (c *TimeoutConfig) bounds() Bounds { return Bounds{c.Base, c.Max} }

// first is the limit of a new Timeout.
func (c *TimeoutConfig) first() time.Duration {
	switch {
	case c.Rule.Kind == KindFixed:
		return c.Rule.Limit
	case c.Initial == Auto:
		return c.Max
	}
	return c.Initial
}

// timeoutConfigJSON is TimeoutConfig as JSON has it.
type timeoutConfigJSON struct {
	Base       jsontime.Duration     `json:"base"`
	Max        jsontime.Duration     `json:"max"`
	Initial    jsontime.AutoDuration `json:"initial"`
	Rule       Rule                  `json:"rule"`
	Margin     float64               `json:"margin"`
	OutageCap  float64               `json:"outage_cap"`
	ProbeShare float64               `json:"probe_share"`
	Window     jsontime.Duration     `json:"window"`
	History    jsontime.Duration     `json:"history"`
	Compact    bool                  `json:"compact"`
}

// MarshalJSON writes every key, durations as text.
func (c TimeoutConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is
// an error. It does not validate; c is as before when it returns an error.
func (c *TimeoutConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = TimeoutConfig{
		time.Duration(j.Base), time.Duration(j.Max), time.Duration(j.Initial), j.Rule, j.Margin, j.OutageCap, j.ProbeShare,
		time.Duration(j.Window), time.Duration(j.History), j.Compact,
	}
	return nil
}

func (c TimeoutConfig) toJSON() timeoutConfigJSON {
	return timeoutConfigJSON{
		jsontime.Duration(c.Base), jsontime.Duration(c.Max), jsontime.AutoDuration(c.Initial), c.Rule, c.Margin, c.OutageCap, c.ProbeShare,
		jsontime.Duration(c.Window), jsontime.Duration(c.History), c.Compact,
	}
}
