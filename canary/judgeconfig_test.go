package canary

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJudgeConfig_Refuses(t *testing.T) {
	require.NoError(t, DefaultJudgeConfig().Validate())
	require.Error(t, JudgeConfig{}.Validate())
	nan, inf := math.NaN(), math.Inf(1)
	for want, change := range map[string]func(*JudgeConfig){
		"Alpha 0 is not in [1e-9, 0.5]":                   func(c *JudgeConfig) { c.Alpha = 0 },
		"PassAlpha NaN is not in":                         func(c *JudgeConfig) { c.PassAlpha = nan },
		"SampleAlpha 0.6 is not in":                       func(c *JudgeConfig) { c.SampleAlpha = 0.6 },
		"MinFailing 0 is not in [1, 1000000]":             func(c *JudgeConfig) { c.MinFailing = 0 },
		"MaxErrorRate 1.1 is not in [0.000001, 1]":        func(c *JudgeConfig) { c.MaxErrorRate = 1.1 },
		"MaxErrorRate NaN is not in":                      func(c *JudgeConfig) { c.MaxErrorRate = nan },
		"MinUsers -1 is not in [1, 1000000]":              func(c *JudgeConfig) { c.MinUsers = -1 },
		"MinRequests 0 is not in":                         func(c *JudgeConfig) { c.MinRequests = 0 },
		"Margin +Inf is not in [0.01, 100]":               func(c *JudgeConfig) { c.Margin = inf },
		"Tolerance 1 is not in [0.001, 1)":                func(c *JudgeConfig) { c.Tolerance = 1 },
		"Tolerance NaN is not in":                         func(c *JudgeConfig) { c.Tolerance = nan },
		"SlowAbove -2ns is negative, and not Auto":        func(c *JudgeConfig) { c.SlowAbove = -2 },
		"SlowQuantile 1 is not in [0.5, 0.9999]":          func(c *JudgeConfig) { c.SlowQuantile = 1 },
		"WarmUp -1s is not in [0, 24h0m0s]":               func(c *JudgeConfig) { c.WarmUp = -time.Second },
		"WarmUp 24h0m0.000000001s is not in [0, 24h0m0s]": func(c *JudgeConfig) { c.WarmUp = 24*time.Hour + 1 },
	} {
		c := DefaultJudgeConfig()
		change(&c)
		assert.ErrorContains(t, c.Validate(), "canary: "+want)
		_, err := NewJudge("x", WithJudgeConfig(c))
		assert.ErrorContains(t, err, want)
	}
	_, err := NewJudge("", nil, WithAlpha(2))
	for _, want := range []string{"the judge's name is empty", "option 0 is nil", "Alpha 2"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestJudgeConfig_Options(t *testing.T) {
	j, err := NewJudge("x", WithJudgeConfig(DefaultJudgeConfig()), WithAlpha(0.01), WithMinFailing(6), WithMaxErrorRate(0.3), WithMinUsers(7),
		WithMinRequests(8), WithMargin(0.25), WithTolerance(0.1), WithSlowCalls(time.Second), WithSlowQuantile(0.95), WithWarmUp(time.Minute))
	require.NoError(t, err)
	assert.Equal(t, JudgeConfig{
		Alpha: 0.01, MinFailing: 6, MaxErrorRate: 0.3, MinUsers: 7, MinRequests: 8, Margin: 0.25, Tolerance: 0.1,
		PassAlpha: 0.05, SampleAlpha: 0.001, SlowAbove: time.Second, SlowQuantile: 0.95, WarmUp: time.Minute,
	}, j.Config())
	c := j.Config()
	c.Alpha = 0
	require.Error(t, j.Update(c))
	assert.EqualValues(t, 0.01, j.Config().Alpha)
}

func TestJudgeConfig_JSON(t *testing.T) {
	data, err := json.Marshal(DefaultJudgeConfig())
	require.NoError(t, err)
	assert.JSONEq(t, `{"alpha":0.001,"min_failing":5,"max_error_rate":0.2,"min_users":30,"min_requests":20,"margin":0.5,"tolerance":0.2,
		"pass_alpha":0.05,"sample_alpha":0.001,"slow_above":"auto","slow_quantile":0.99,"warm_up":"30s"}`, string(data))
	var c JudgeConfig
	require.NoError(t, json.Unmarshal(data, &c))
	assert.Equal(t, DefaultJudgeConfig(), c)

	require.NoError(t, json.Unmarshal([]byte(`{"slow_above":"250ms","alpha":0.01}`), &c))
	assert.Equal(t, 250*time.Millisecond, c.SlowAbove)
	assert.Equal(t, 30, c.MinUsers, "what is absent stays")
	before := c
	for _, bad := range []string{`{"Alfa":1}`, `{"warm_up":30}`, `{"alpha":"x"}`, `{"alpha":1,"alpha":1}`} {
		assert.Error(t, json.Unmarshal([]byte(bad), &c))
		assert.Equal(t, before, c)
	}
}

func TestTrial_Refuses(t *testing.T) {
	for want, trial := range map[string]Trial{
		"Canary is empty":                  {Stable: "a", CanaryWeight: 1},
		"Stable is empty":                  {Canary: "a", CanaryWeight: 1},
		`Canary and Stable are both "a"`:   {Canary: "a", Stable: "a", CanaryWeight: 1},
		"CanaryWeight 0% is not above 0%":  {Canary: "a", Stable: "b", StableWeight: 1},
		"more than 100% together":          {Canary: "a", Stable: "b", CanaryWeight: Percent(60), StableWeight: Percent(41)},
		"weight 101% is not in [0%, 100%]": {Canary: "a", Stable: "b", CanaryWeight: Percent(101)},
		"weight 1e-05% is no whole ppm":    {Canary: "a", Stable: "b", CanaryWeight: 1, StableWeight: Percent(0.00001)},
	} {
		assert.ErrorContains(t, trial.Validate(), want)
	}
}
