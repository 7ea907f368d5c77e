package breaker

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfig_DefaultsAreValidAndWhatTheySay(t *testing.T) {
	require.NoError(t, DefaultConfig().Validate())
	b, err := New("payments")
	require.NoError(t, err)
	assert.Equal(t, DefaultConfig(), b.Config())
	assert.Error(t, Config{}.Validate(), "a Config is taken literally")
}

// Each complaint names the field and its value.
func TestConfig_Complaints(t *testing.T) {
	rule := func(r Rule) func(*Config) { return func(c *Config) { c.Rules = []Rule{r} } }
	for want, spoil := range map[string]func(*Config){
		"Rules is empty":          func(c *Config) { c.Rules = nil },
		"Window 0s":               func(c *Config) { c.Window = 0 },
		"Window -1s":              func(c *Config) { c.Window = -time.Second },
		"Buckets 0":               func(c *Config) { c.Buckets = 0 },
		"Buckets 10001":           func(c *Config) { c.Buckets = 10_001 },
		"Window 10s is not":       func(c *Config) { c.Buckets = 7 },
		"CountWindow -1":          func(c *Config) { c.CountWindow = -1 },
		"MinRequests 20 (the def": func(c *Config) { c.CountWindow = 19 },
		"MinRequests 0":           func(c *Config) { c.MinRequests = 0 },
		"Confidence -1":           func(c *Config) { c.Confidence = -1 },
		"Confidence NaN":          func(c *Config) { c.Confidence = math.NaN() },
		"OpenFor 0s":              func(c *Config) { c.OpenFor = 0 },
		"BackoffFactor 0.5":       func(c *Config) { c.BackoffFactor = 0.5 },
		"BackoffFactor NaN":       func(c *Config) { c.BackoffFactor = math.NaN() },
		"BackoffMax 4s":           func(c *Config) { c.BackoffMax = 4 * time.Second },
		"BackoffMax -2ns":         func(c *Config) { c.BackoffMax = -2 },
		"Jitter 1":                func(c *Config) { c.Jitter = 1 },
		"Jitter -0.1":             func(c *Config) { c.Jitter = -0.1 },
		"Jitter NaN":              func(c *Config) { c.Jitter = math.NaN() },
		"Probes has 0":            func(c *Config) { c.Probes = nil },
		"Probes[1] 0":             func(c *Config) { c.Probes = []int{1, 0} },
		"ProbeTolerance 1":        func(c *Config) { c.ProbeTolerance = 1 },
		"ProbeTolerance -0.1":     func(c *Config) { c.ProbeTolerance = -0.1 },
		"ProbeLease 0s":           func(c *Config) { c.ProbeLease = 0 },
		"ProbeLease -2ns":         func(c *Config) { c.ProbeLease = -2 },
		"MinBudget -2ns":          func(c *Config) { c.MinBudget = -2 },
		"Recovery[0].Share 0":     func(c *Config) { c.Recovery = []Step{{0, time.Second}} },
		"Recovery[1].Share 1.1":   func(c *Config) { c.Recovery = []Step{{0.5, time.Second}, {1.1, time.Second}} },
		"Recovery[0].For 0s":      func(c *Config) { c.Recovery = []Step{{0.5, 0}} },
		"InFlightSlow true":       func(c *Config) { c.InFlightSlow = true },

		"Rules[0].Kind 0":         rule(Rule{}),
		"Rules[0].Kind 9":         rule(Rule{Kind: 9}),
		"Rules[0].Ratio 0 ":       rule(Rule{Kind: ErrorRatio}),
		"Rules[0].Ratio 1e-07":    rule(Rule{Kind: ErrorRatio, Ratio: 0.0000001}),
		"Rules[0].Ratio 1.1":      rule(Rule{Kind: ErrorRatio, Ratio: 1.1}),
		"Rules[0].Ratio NaN":      rule(Rule{Kind: ErrorRatio, Ratio: math.NaN()}),
		"Rules[0].Ratio 0.5":      rule(Rule{Kind: ErrorCount, Count: 1, Ratio: 0.5}),
		"Rules[0].Count 0":        rule(Rule{Kind: ErrorCount}),
		"Rules[0].Count -1":       rule(Rule{Kind: ConsecutiveFailures, Count: -1}),
		"Rules[0].Count 3":        rule(Rule{Kind: ErrorRatio, Ratio: 0.5, Count: 3}),
		"Rules[0].MinRequests -1": rule(Rule{Kind: ErrorRatio, Ratio: 0.5, MinRequests: -1}),
		"Rules[0].MinRequests 5":  rule(Rule{Kind: ErrorCount, Count: 1, MinRequests: 5}),
		"Rules[0].SlowerThan 0s":  rule(Rule{Kind: SlowCallRatio, Ratio: 0.5}),
		"Rules[0].SlowerThan 1s":  rule(Rule{Kind: ErrorRatio, Ratio: 0.5, SlowerThan: time.Second}),
		"Rules[0].Over -1s":       rule(Rule{Kind: ErrorCount, Count: 1, Over: -time.Second}),
		"Rules[0].Over 1s":        rule(Rule{Kind: ConsecutiveFailures, Count: 1, Over: time.Second}),
		"Rules[0].Over 3ns":       rule(Rule{Kind: ErrorCount, Count: 1, Over: 3}),
		"Rules[0].OpenFor -1s":    rule(Rule{Kind: ErrorCount, Count: 1, OpenFor: -time.Second}),
	} {
		t.Run(want, func(t *testing.T) {
			c := DefaultConfig()
			spoil(&c)
			err := c.Validate()
			require.Error(t, err)
			assert.Contains(t, err.Error(), want)
			_, err = New("payments", WithConfig(c))
			require.Error(t, err)
			assert.Contains(t, err.Error(), want)
		})
	}
}

// What Validate accepts, New can make: the bounds of the one are no wider than
// those of the other.
func TestConfig_BoundsHold(t *testing.T) {
	for name, opts := range map[string][]Option{
		"buckets":       {WithWindow(10_000*time.Second, 10_000)},
		"least ratio":   {WithErrorRatio(0.000001)},
		"one bucket":    {WithWindow(1, 1)},
		"long":          {WithOpenFor(math.MaxInt64), WithWindow(math.MaxInt64, 1), WithProbeLease(math.MaxInt64), WithRecovery(Step{0.5, math.MaxInt64}, Step{0.6, math.MaxInt64})},
		"in flight":     {WithSlowCallRatio(1, 1), WithInFlightSlow(), WithWindow(24*time.Hour, 10_000/10)},
		"slow for ever": {WithSlowCallRatio(math.MaxInt64, 1), WithInFlightSlow()},
		"stages":        {WithProbes(make1s(100)...)},
	} {
		t.Run(name, func(t *testing.T) {
			var b *Breaker
			require.NotPanics(t, func() {
				var err error
				b, err = New("payments", opts...)
				require.NoError(t, err)
			})
			require.NoError(t, b.Do(t.Context(), nothing))
			require.NoError(t, b.Trip(0))
			require.ErrorIs(t, b.Do(t.Context(), nothing), ErrOpen)
		})
	}
	t.Run("count window", func(t *testing.T) {
		accepted := 0
		for n := 1; n <= 1<<20; n *= 2 {
			c := DefaultConfig()
			c.CountWindow, c.MinRequests = n, 1
			if c.Validate() != nil {
				continue
			}
			accepted = n
			require.NotPanicsf(t, func() { build(t, WithConfig(c)) }, "a count window of %d", n)
		}
		assert.GreaterOrEqual(t, accepted, 10_000)
	})
}

func make1s(n int) []int {
	ones := make([]int, n)
	for i := range ones {
		ones[i] = 1
	}
	return ones
}

func TestNew_RefusesWhatIsNoBreaker(t *testing.T) {
	for want, opts := range map[string][]Option{
		"name":     nil,
		"option 1": {WithMinRequests(1), nil},
	} {
		name := "payments"
		if want == "name" {
			name = ""
		}
		b, err := New(name, opts...)
		require.Error(t, err, want)
		assert.Nil(t, b)
		assert.Contains(t, err.Error(), want)
	}
	_, err := New("payments", WithMaxKeys(3))
	assert.Error(t, err, "an option of a Group")
}

func TestConfig_JSONRoundTrip(t *testing.T) {
	c := DefaultConfig()
	c.Rules = []Rule{
		{Kind: SlowCallRatio, Ratio: 0.5, SlowerThan: 800 * time.Millisecond, MinRequests: 5, Over: time.Minute, OpenFor: 15 * time.Second},
		{Kind: ConsecutiveFailures, Count: 7},
	}
	c.Recovery = []Step{{0.1, 30 * time.Second}}
	c.Probes, c.InFlightSlow, c.BackoffMax = []int{1, 5, 20}, true, 2*time.Minute
	for _, want := range []Config{DefaultConfig(), c} {
		data, err := json.Marshal(want)
		require.NoError(t, err)
		var got Config
		require.NoError(t, json.Unmarshal(data, &got))
		assert.True(t, want.Equal(got), "%s", data)
	}
	data, err := json.Marshal(c)
	require.NoError(t, err)
	for _, part := range []string{`"slower_than":"800ms"`, `"backoff_max":"2m0s"`, `"probe_lease":"auto"`, `"kind":"slow_call_ratio"`, `"share":0.1,"for":"30s"`} {
		assert.Contains(t, string(data), part)
	}
}

// Decoding goes over what is there: absent keys keep it, lists are replaced whole
// and shared with nobody, and what is not understood changes nothing.
func TestConfig_JSONDecodesOver(t *testing.T) {
	c := DefaultConfig()
	c.Probes = []int{1, 5, 20}
	shared := c
	require.NoError(t, json.Unmarshal([]byte(`{"open_for": "7s", "probes": [9]}`), &c))
	want := DefaultConfig()
	want.OpenFor, want.Probes = 7*time.Second, []int{9}
	assert.Equal(t, want, c)
	assert.Equal(t, []int{1, 5, 20}, shared.Probes)

	for _, bad := range []string{
		`{"open_for": 7}`, `{"open_for": "7"}`, `{"open": "7s"}`, `{"rules": [{"kind": "error_ratio", "ration": 1}]}`,
		`{"rules": [{"kind": "errors"}]}`, `{"recovery": [{"share": 0.5, "during": "1s"}]}`, `{"window": "auto"}`, `{"probes": "1"}`,
	} {
		assert.Error(t, json.Unmarshal([]byte(bad), &c), bad)
		assert.Equal(t, want, c, bad)
	}
}

func TestConfig_CloneSharesNothing(t *testing.T) {
	c := DefaultConfig()
	c.Recovery = []Step{{0.5, time.Second}}
	d := c.Clone()
	assert.True(t, c.Equal(d))
	d.Rules[0].Ratio, d.Probes[0], d.Recovery[0].Share = 0.1, 2, 0.1
	assert.Equal(t, 0.5, c.Rules[0].Ratio)
	assert.Equal(t, 1, c.Probes[0])
	assert.Equal(t, 0.5, c.Recovery[0].Share)
}

// Equal sees every field there is, and every one to come.
func TestConfig_EqualSeesEveryField(t *testing.T) {
	for i, change := range []func(*Config){
		func(c *Config) { c.Rules[0].Ratio = 0.4 },
		func(c *Config) { c.Rules = append(c.Rules, Rule{Kind: ErrorCount, Count: 1}) },
		func(c *Config) { c.Window++ },
		func(c *Config) { c.Buckets++ },
		func(c *Config) { c.CountWindow++ },
		func(c *Config) { c.MinRequests++ },
		func(c *Config) { c.Confidence++ },
		func(c *Config) { c.OpenFor++ },
		func(c *Config) { c.BackoffFactor++ },
		func(c *Config) { c.BackoffMax++ },
		func(c *Config) { c.Jitter++ },
		func(c *Config) { c.Probes[0]++ },
		func(c *Config) { c.ProbeTolerance++ },
		func(c *Config) { c.ProbeLease++ },
		func(c *Config) { c.Recovery = []Step{{1, 1}} },
		func(c *Config) { c.InFlightSlow = true },
		func(c *Config) { c.MinBudget++ },
	} {
		c := DefaultConfig()
		change(&c)
		assert.False(t, DefaultConfig().Equal(c), i)
	}
}

func TestNames(t *testing.T) {
	for want, v := range map[string]fmt.Stringer{
		"closed": Closed, "open": Open, "half_open": HalfOpen, "State(9)": State(9),
		"none": Mode(0), "forced_open": ForcedOpen, "forced_closed": ForcedClosed, "disabled": Disabled, "shadow": Shadow, "Mode(9)": Mode(9),
		"slow_call_ratio": SlowCallRatio, "error_ratio": ErrorRatio, "error_count": ErrorCount, "consecutive_failures": ConsecutiveFailures, "Kind(9)": Kind(9),
		"rule_tripped": RuleTripped, "probe_failed": ProbeFailed, "probe_lost": ProbeLost, "probes_passed": ProbesPassed,
		"deadline_passed": DeadlinePassed, "trip_requested": TripRequested, "reset_requested": ResetRequested, "CauseReason(99)": CauseReason(99),
	} {
		assert.Equal(t, want, v.String())
		text, err := v.(interface{ MarshalText() ([]byte, error) }).MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
