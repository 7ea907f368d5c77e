package adaptive

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLimiterConfig_TheDefaultIsValid(t *testing.T) {
	assert.NoError(t, DefaultLimiterConfig().Validate())
	assert.Error(t, LimiterConfig{}.Validate())
}

func TestLimiterConfig_EveryComplaintAtOnce(t *testing.T) {
	c := LimiterConfig{
		Rule: LimitRule{Kind: LimitByVegas, Tolerance: math.NaN(), MaxHealthy: -1, Limit: 3}, Min: 0, Max: -2, Initial: 7, Window: time.Hour,
		MaxQueue: -1, MaxWait: -1, CoDelTarget: -1, CoDelInterval: 0, Aging: -1, Shares: [3]float64{math.Inf(1), -1, math.NaN()},
	}
	err := c.Validate()
	require.Error(t, err)
	for _, complaint := range []string{
		"Min 0 is not in [1, 1000000]", "Max -2 is not in [Min 0, 1000000]", "Initial 7 is not in [Min 0, Max -2]", "Window 1h0m0s is not in [10ms, 1m0s]",
		"Rule.Tolerance NaN is not in [0, 0.5]", "Rule.MaxHealthy -1ns is not in [0, 1h0m0s]", "Rule.Limit 3 has no meaning for vegas",
		"MaxQueue -1 is not in [0, 1000000]", "MaxWait -1ns is negative", "CoDelTarget -1ns is negative", "CoDelInterval 0s is not positive", "Aging -1ns is negative",
		"Shares[0] +Inf", "Shares[1] -1", "Shares[2] NaN",
	} {
		assert.ErrorContains(t, err, "adaptive: "+complaint)
	}
	for complaint, change := range map[string]func(*LimiterConfig){
		"Rule.Kind 0 is not one of vegas, aimd, gradient2, fixed":  func(c *LimiterConfig) { c.Rule = LimitRule{} },
		"Rule.Kind 9 is not one of":                                func(c *LimiterConfig) { c.Rule.Kind = 9 },
		"Rule.Limit 0 is not in [Min 1, Max 1000]":                 func(c *LimiterConfig) { c.Rule = FixedLimit(0) },
		"Rule.Limit 1001 is not in":                                func(c *LimiterConfig) { c.Rule = FixedLimit(1001) },
		"Rule.Tolerance 0.1 has no meaning for fixed":              func(c *LimiterConfig) { c.Rule = LimitRule{Kind: LimitFixed, Limit: 5, Tolerance: 0.1} },
		"Rule.MaxHealthy 1s has no meaning for fixed":              func(c *LimiterConfig) { c.Rule = LimitRule{Kind: LimitFixed, Limit: 5, MaxHealthy: time.Second} },
		"Rule.Tolerance 0.6 is not in [0, 0.5]":                    func(c *LimiterConfig) { c.Rule.Tolerance = 0.6 },
		"Max 10000000 is not in [Min 1, 1000000]":                  func(c *LimiterConfig) { c.Max = 10_000_000 },
		"Initial 1001 is not in [Min 1, Max 1000]":                 func(c *LimiterConfig) { c.Initial = 1001 },
		"MaxQueue 5 lets calls wait, and MaxWait 0s does not":      func(c *LimiterConfig) { c.MaxQueue = 5 },
		"MaxWait 1s lets calls wait, and with MaxQueue 0 none may": func(c *LimiterConfig) { c.MaxWait = time.Second },
		"Shares [0.5 0.5 0.1] are more than 1 together":            func(c *LimiterConfig) { c.Shares = [3]float64{0.5, 0.5, 0.1} },
		"Shares[1] 1e-09 is not 0, and not in [0.000001, 1]":       func(c *LimiterConfig) { c.Shares[1] = 1e-9 },
	} {
		c := DefaultLimiterConfig()
		change(&c)
		assert.ErrorContains(t, c.Validate(), complaint)
	}
	_, err = NewLimiter("", nil, WithLimits(5, 3), WithMaxLimiters(3))
	for _, complaint := range []string{"name is empty", "option 0 is nil", "Max 3 is not in [Min 5", "are for NewLimiterGroup"} {
		assert.ErrorContains(t, err, complaint)
	}
}

func TestLimiterConfig_JSONRoundTrip(t *testing.T) {
	for _, r := range []LimitRule{Vegas(), AIMD(50 * ms), AIMD(0), Gradient2(), FixedLimit(7), {Kind: LimitByVegas, MaxHealthy: time.Second}} {
		c := DefaultLimiterConfig()
		c.Rule, c.MaxQueue, c.MaxWait, c.Shares, c.NewestFirst = r, 5, time.Second, [3]float64{0.25, 0, 0.1}, true
		text, err := json.Marshal(c)
		require.NoError(t, err)
		var back LimiterConfig
		require.NoError(t, json.Unmarshal(text, &back), string(text))
		assert.Equal(t, c, back)
	}
	text, err := json.Marshal(DefaultLimiterConfig())
	require.NoError(t, err)
	assert.JSONEq(t, `{"rule":{"kind":"vegas","tolerance":0.05},"min":1,"max":1000,"initial":20,"window":"1s","max_queue":0,"max_wait":"0s",
		"codel_target":"0s","codel_interval":"100ms","newest_first":false,"aging":"50ms","shares":[0,0,0]}`, string(text))
}

func TestLimiterConfig_JSONGoesOverWhatWasThere(t *testing.T) {
	c := DefaultLimiterConfig()
	require.NoError(t, json.Unmarshal([]byte(`{"rule":{"kind":"aimd","max_healthy":"50ms"},"max":50,"shares":[0,0,0.1]}`), &c))
	want := DefaultLimiterConfig()
	want.Rule, want.Max, want.Shares = AIMD(50*ms), 50, [3]float64{0, 0, 0.1}
	assert.Equal(t, want, c, "a tolerance that is absent is AIMD's")
	require.NoError(t, json.Unmarshal([]byte(`{"rule":{"kind":"aimd","tolerance":0}}`), &c))
	assert.Zero(t, c.Rule.Tolerance, "an explicit zero is kept")

	before := c
	for text, complaint := range map[string]string{
		`{"limit":3}`:                       "limit",
		`{"rule":{"kind":"vegas","max":3}}`: "rule.max",
		`{"rule":{"kind":"tcp"}}`:           `"tcp" is not one of vegas, aimd, gradient2, fixed`,
		`{"window":1000}`:                   "window",
		`{"shares":[0.5]}`:                  "1 shares, 3 are wanted",
		`{"shares":[0,0,0,0]}`:              "4 shares, 3 are wanted",
		`{"min":1,"min":2}`:                 "min",
		`{"Min":1}`:                         "Min",
		`{"newest_first":"yes"}`:            "newest_first",
	} {
		assert.ErrorContains(t, json.Unmarshal([]byte(text), &c), complaint, text)
		assert.Equal(t, before, c, text)
	}
}

func TestLimitRule_Words(t *testing.T) {
	for want, r := range map[string]LimitRule{
		"Vegas()": Vegas(), "AIMD(50ms)": AIMD(50 * ms), "Gradient2()": Gradient2(), "FixedLimit(7)": FixedLimit(7), "LimitKind(9)": {Kind: 9},
		"Vegas() below 1s": {Kind: LimitByVegas, MaxHealthy: time.Second}, "Gradient2() below 1s": {Kind: LimitByGradient2, MaxHealthy: time.Second},
	} {
		assert.Equal(t, want, r.String())
	}
}

// Options are the fields of the same name; the last one wins.
func TestLimiterOptions(t *testing.T) {
	l := buildLimiter(t, WithLimiterConfig(DefaultLimiterConfig()), WithLimitRule(Gradient2()), WithLimitRule(AIMD(50*ms)), WithLimits(2, 30), WithInitialLimit(5),
		WithLimitWindow(500*ms), WithQueue(7, time.Second), WithCoDel(5*ms, 50*ms), WithNewestFirst(true), WithAging(ms), WithShares(0.1, 0.2, 0.3))
	assert.Equal(t, LimiterConfig{
		Rule: AIMD(50 * ms), Min: 2, Max: 30, Initial: 5, Window: 500 * ms, MaxQueue: 7, MaxWait: time.Second,
		CoDelTarget: 5 * ms, CoDelInterval: 50 * ms, NewestFirst: true, Aging: ms, Shares: [3]float64{0.1, 0.2, 0.3},
	}, l.Config())
	assert.Equal(t, 5, l.Limit())
	p := l.plan.Load().config.policy()
	assert.Equal(t, [3]int{100_000, 200_000, 300_000}, p.Shares)
}

// What decodes and is valid makes a Limiter, and says the same when it is written; what
// does not leaves the configuration as it was.
func FuzzLimiterConfig(f *testing.F) {
	f.Add(`{"rule": {"kind": "aimd", "max_healthy": "50ms"}, "max": 30, "shares": [0.1, 0, 0.2], "max_queue": 5, "max_wait": "1s"}`)
	f.Fuzz(func(t *testing.T, in string) {
		c := DefaultLimiterConfig()
		if json.Unmarshal([]byte(in), &c) != nil {
			require.Equal(t, DefaultLimiterConfig(), c)
			return
		}
		if c.Validate() != nil {
			return
		}
		data, err := json.Marshal(c)
		require.NoError(t, err)
		var back LimiterConfig
		require.NoError(t, json.Unmarshal(data, &back), string(data))
		require.Equal(t, c, back)
		l, err := NewLimiter("fuzzed", WithLimiterConfig(c))
		require.NoError(t, err)
		require.True(t, l.Limit() >= c.Min && l.Limit() <= c.Max)
	})
}
