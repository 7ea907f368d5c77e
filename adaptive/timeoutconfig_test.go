package adaptive

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTimeoutConfig_DefaultIsValid(t *testing.T) {
	assert.NoError(t, DefaultTimeoutConfig(ms, time.Second).Validate())
	assert.Error(t, TimeoutConfig{}.Validate(), "the zero one is not")
}

// Every complaint names the field, its value and what is wanted, and nothing is
// repaired.
func TestTimeoutConfig_Complaints(t *testing.T) {
	for want, change := range map[string]func(*TimeoutConfig){
		"adaptive: Base 0s is not positive":                                                                                  func(c *TimeoutConfig) { c.Base = 0 },
		"adaptive: Base -1ms is not positive":                                                                                func(c *TimeoutConfig) { c.Base = -ms },
		"adaptive: Max 500µs is less than Base 1ms":                                                                          func(c *TimeoutConfig) { c.Max = ms / 2 },
		"adaptive: Max 25h0m0s is not in (0, 24h0m0s]":                                                                       func(c *TimeoutConfig) { c.Max = 25 * time.Hour },
		"adaptive: Initial 2s is not in [Base 1ms, Max 1s], and not Auto":                                                    func(c *TimeoutConfig) { c.Initial = 2 * time.Second },
		"adaptive: Initial 0s is not in [Base 1ms, Max 1s], and not Auto":                                                    func(c *TimeoutConfig) { c.Initial = 0 },
		"adaptive: Margin 0.9 is not in [1, 10]":                                                                             func(c *TimeoutConfig) { c.Margin = 0.9 },
		"adaptive: Margin NaN is not in [1, 10]":                                                                             func(c *TimeoutConfig) { c.Margin = math.NaN() },
		"adaptive: OutageCap +Inf is not in [1, 1000]":                                                                       func(c *TimeoutConfig) { c.OutageCap = math.Inf(1) },
		"adaptive: ProbeShare -0.1 is not in [0, 1]":                                                                         func(c *TimeoutConfig) { c.ProbeShare = -0.1 },
		"adaptive: ProbeShare NaN is not in [0, 1]":                                                                          func(c *TimeoutConfig) { c.ProbeShare = math.NaN() },
		"adaptive: Window 100ms is not in [1s, 1h0m0s]":                                                                      func(c *TimeoutConfig) { c.Window = 100 * ms },
		"adaptive: History 1s is not in [Window 10s, 24h0m0s]":                                                               func(c *TimeoutConfig) { c.History = time.Second },
		"adaptive: Rule.Kind 0 is not one of false_timeouts, mean_multiple, quantile, rfc6298, fixed":                        func(c *TimeoutConfig) { c.Rule = Rule{} },
		"adaptive: Rule.FalseTimeouts 0.6 is not in [0.000001, 0.5]":                                                         func(c *TimeoutConfig) { c.Rule = FalseTimeouts(0.6) },
		"adaptive: Rule.FalseTimeouts 0 is not in [0.000001, 0.5]":                                                           func(c *TimeoutConfig) { c.Rule = FalseTimeouts(0) },
		"adaptive: Rule.FalseTimeouts NaN is not in [0.000001, 0.5]":                                                         func(c *TimeoutConfig) { c.Rule = FalseTimeouts(math.NaN()) },
		"adaptive: Rule.Multiple 0.5 is not in [1, 1000]":                                                                    func(c *TimeoutConfig) { c.Rule = MeanMultiple(0.5) },
		"adaptive: Rule.Calls 0 is not in [1, 10000]":                                                                        func(c *TimeoutConfig) { c.Rule = MeanMultiple(3); c.Rule.Calls = 0 },
		"adaptive: Rule.Quantile 1 is not in [0.5, 0.999999]":                                                                func(c *TimeoutConfig) { c.Rule = Quantile(1, 2) },
		"adaptive: Rule.Limit 2s is not in [Base 1ms, Max 1s]":                                                               func(c *TimeoutConfig) { c.Rule = Fixed(2 * time.Second) },
		"adaptive: Rule.Limit 1s has no meaning for rfc6298":                                                                 func(c *TimeoutConfig) { c.Rule = RFC6298(); c.Rule.Limit = time.Second },
		"adaptive: Rule.Multiple 3 has no meaning for fixed":                                                                 func(c *TimeoutConfig) { c.Rule = Fixed(time.Second); c.Rule.Multiple = 3 },
		"adaptive: Rule.Calls 5 has no meaning for quantile":                                                                 func(c *TimeoutConfig) { c.Rule = Quantile(0.9, 2); c.Rule.Calls = 5 },
		"adaptive: Rule.Quantile 0.9 has no meaning for false_timeouts":                                                      func(c *TimeoutConfig) { c.Rule.Quantile = 0.9 },
		"adaptive: Rule.FalseTimeouts NaN has no meaning for rfc6298":                                                        func(c *TimeoutConfig) { c.Rule = RFC6298(); c.Rule.FalseTimeouts = math.NaN() },
		"adaptive: Base 0s is not positive\nadaptive: Margin 0 is not in [1, 10]\nadaptive: OutageCap 0 is not in [1, 1000]": func(c *TimeoutConfig) { c.Base, c.Margin, c.OutageCap = 0, 0, 0 },
	} {
		c := DefaultTimeoutConfig(ms, time.Second)
		change(&c)
		assert.EqualError(t, c.Validate(), want)
	}
}

func TestTimeoutConfig_JSON(t *testing.T) {
	c := DefaultTimeoutConfig(10*ms, 5*time.Second)
	data, err := json.Marshal(c)
	require.NoError(t, err)
	assert.JSONEq(t, `{"base": "10ms", "max": "5s", "initial": "auto", "rule": {"kind": "false_timeouts", "false_timeouts": 0.001},
		"margin": 1.25, "outage_cap": 4, "probe_share": 0.01, "window": "10s", "history": "5m0s", "compact": false}`, string(data))

	var back TimeoutConfig
	require.NoError(t, json.Unmarshal(data, &back))
	assert.Equal(t, c, back)

	require.NoError(t, json.Unmarshal([]byte(`{"max": "2s", "initial": "1s", "compact": true, "rule": {"kind": "mean_multiple", "multiple": 3}}`), &back))
	c.Max, c.Initial, c.Compact, c.Rule = 2*time.Second, time.Second, true, MeanMultiple(3)
	assert.Equal(t, c, back, "what is absent is as it was, a rule is another rule")

	for _, r := range []Rule{MeanMultiple(3), Quantile(0.99, 2), RFC6298(), Fixed(time.Second)} {
		data, err := json.Marshal(r)
		require.NoError(t, err)
		read := FalseTimeouts(0.1)
		require.NoError(t, json.Unmarshal(data, &read))
		assert.Equal(t, r, read)
	}

	for in, complaint := range map[string]string{
		`{"maximum": "2s"}`:                           "maximum: unknown key",
		`{"max": 5}`:                                  "max: 5 is a bare number",
		`{"rule": {"kind": "median"}}`:                `rule.kind: "median" is not one of false_timeouts, mean_multiple, quantile, rfc6298, fixed`,
		`{"rule": {"kind": "fixed", "limits": "1s"}}`: "rule.limits: unknown key",
		`{"rule": {"kind": "fixed", "limit": 1}}`:     "rule.limit: 1 is a bare number",
		`{"initial": "soon"}`:                         `initial: "soon" is not a duration`,
		`{"margin": "1.25"}`:                          "margin: \"1.25\" is not a number",
		`{"base": "1ms", "base": "2ms"}`:              "base",
		`{"compact": 1}`:                              "compact: 1 is not true or false",
	} {
		before := back
		assert.ErrorContains(t, json.Unmarshal([]byte(in), &back), complaint)
		assert.Equal(t, before, back, "as before")
	}
}

func FuzzTimeoutConfig(f *testing.F) {
	f.Add(`{"rule": {"kind": "quantile", "quantile": 0.99, "multiple": 2}}`)
	f.Fuzz(func(t *testing.T, in string) {
		c := DefaultTimeoutConfig(ms, time.Second)
		if json.Unmarshal([]byte(in), &c) != nil {
			require.Equal(t, DefaultTimeoutConfig(ms, time.Second), c)
			return
		}
		if c.Validate() != nil {
			return
		}
		data, err := json.Marshal(c)
		require.NoError(t, err)
		var back TimeoutConfig
		require.NoError(t, json.Unmarshal(data, &back), string(data))
		require.Equal(t, c, back)
		_, err = NewTimeout("fuzzed", c.Base, c.Max, WithTimeoutConfig(c))
		require.NoError(t, err)
	})
}

func TestOptions_SetWhatTheySay(t *testing.T) {
	to, err := NewTimeout("x", time.Second, 2*time.Second,
		WithTimeoutConfig(DefaultTimeoutConfig(1, 2)), WithBounds(ms, time.Minute), WithInitial(time.Second), WithRule(RFC6298()), WithMargin(2),
		WithOutageCap(3), WithProbeShare(0.5), WithHistory(20*time.Second, time.Hour), WithCompact())
	require.NoError(t, err)
	assert.Equal(t, TimeoutConfig{
		Base: ms, Max: time.Minute, Initial: time.Second, Rule: RFC6298(), Margin: 2, OutageCap: 3, ProbeShare: 0.5,
		Window: 20 * time.Second, History: time.Hour, Compact: true,
	}, to.Config())
	assert.Equal(t, "x", to.Name())

	// An issue elsewhere asked for one knob instead of ten:
	// https://github.com/dodopizza/httpclient-resilience-policies/issues/26.
	to, err = NewTimeout("x", ms, time.Second, WithTargetFalseTimeouts(0.01))
	require.NoError(t, err)
	want := DefaultTimeoutConfig(ms, time.Second)
	want.Rule.FalseTimeouts = 0.01
	assert.Equal(t, want, to.Config())
}

func TestOptions_SayTheirDefaults(t *testing.T) {
	c := DefaultTimeoutConfig(ms, time.Second)
	assert.Equal(t, []any{0.001, 1.25, 4.0, 0.01, 10 * time.Second, 5 * time.Minute, false},
		[]any{c.Rule.FalseTimeouts, c.Margin, c.OutageCap, c.ProbeShare, c.Window, c.History, c.Compact})
}
