package retry

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfig_DefaultsAreValidAndWhatTheySay(t *testing.T) {
	require.NoError(t, DefaultConfig().Validate())
	require.NoError(t, DefaultBudgetConfig().Validate())
	p, err := New("payments")
	require.NoError(t, err)
	assert.Equal(t, DefaultConfig(), p.Config())
	assert.Equal(t, DefaultBudgetConfig(), p.Budget().Config())
	assert.Equal(t, "payments", p.Budget().Name())
	assert.Equal(t, "payments", p.Name())
	assert.Error(t, Config{}.Validate(), "a Config is taken literally")
	assert.Error(t, BudgetConfig{}.Validate())
	assert.Error(t, HedgerConfig{}.Validate())
}

// Each complaint names the field and its value.
func TestConfig_Complaints(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"Attempts 0 is not in [1, 2147483647]":                     func(c *Config) { c.Attempts = 0 },
		"Attempts -1":                                              func(c *Config) { c.Attempts = -1 },
		"Backoff -1ns is negative":                                 func(c *Config) { c.Backoff = -1 },
		"BackoffMax 49ms is less than Backoff 50ms (the default)":  func(c *Config) { c.BackoffMax = 49 * time.Millisecond },
		"BackoffMax 2s (the default) is less than Backoff 3s":      func(c *Config) { c.Backoff = 3 * time.Second },
		"BackoffFactor 0.5 is not in [1, 1000]":                    func(c *Config) { c.BackoffFactor = 0.5 },
		"BackoffFactor 1001":                                       func(c *Config) { c.BackoffFactor = 1001 },
		"BackoffFactor NaN":                                        func(c *Config) { c.BackoffFactor = math.NaN() },
		"BackoffFactor +Inf":                                       func(c *Config) { c.BackoffFactor = math.Inf(1) },
		"Jitter -0.1 is not in [0, 1]":                             func(c *Config) { c.Jitter = -0.1 },
		"Jitter 1.1":                                               func(c *Config) { c.Jitter = 1.1 },
		"Jitter NaN":                                               func(c *Config) { c.Jitter = math.NaN() },
		"MaxRetryAfter -1ns is negative":                           func(c *Config) { c.MaxRetryAfter = -1 },
		"AttemptTimeout -1ns is negative":                          func(c *Config) { c.AttemptTimeout = -1 },
		"AttemptGrowth 0 is not in [1, 1000]":                      func(c *Config) { c.AttemptGrowth = 0 },
		"AttemptGrowth NaN":                                        func(c *Config) { c.AttemptTimeout, c.AttemptGrowth = 1, math.NaN() },
		"AttemptGrowth 2 has no meaning without an AttemptTimeout": func(c *Config) { c.AttemptGrowth = 2 },
	} {
		t.Run(want, func(t *testing.T) {
			c := DefaultConfig()
			spoil(&c)
			err := c.Validate()
			require.ErrorContains(t, err, "retry: "+want)
			assert.NotContains(t, err.Error(), "\n", "nothing else is wrong")
			_, err = New("payments", WithConfig(c))
			require.ErrorContains(t, err, want)
		})
	}
	assert.Len(t, strings.Split(Config{BackoffFactor: -1, Jitter: 2, AttemptGrowth: 1}.Validate().Error(), "\n"), 3, "all at once")
}

func TestBudgetConfig_Complaints(t *testing.T) {
	for want, spoil := range map[string]func(*BudgetConfig){
		"Ratio -0.1 is not 0, and not in [0.000001, 1]": func(c *BudgetConfig) { c.Ratio = -0.1 },
		"Ratio 1.1":                              func(c *BudgetConfig) { c.Ratio = 1.1 },
		"Ratio 1e-07":                            func(c *BudgetConfig) { c.Ratio = 0.0000001 },
		"Ratio NaN":                              func(c *BudgetConfig) { c.Ratio = math.NaN() },
		"MinPerSecond -1 is not in [0, 1000000]": func(c *BudgetConfig) { c.MinPerSecond = -1 },
		"MinPerSecond 1e+07":                     func(c *BudgetConfig) { c.MinPerSecond = 1e7 },
		"MinPerSecond NaN":                       func(c *BudgetConfig) { c.MinPerSecond = math.NaN() },
		"Window 0s is not in [100ms, 1h0m0s]":    func(c *BudgetConfig) { c.Window = 0 },
		"Window 99ms":                            func(c *BudgetConfig) { c.Window = 99 * time.Millisecond },
		"Window 1h0m0.00000005s":                 func(c *BudgetConfig) { c.Window = time.Hour + 50 },
		"Window 1.000000001s is not a multiple of 50ns": func(c *BudgetConfig) { c.Window = time.Second + 1 },
	} {
		t.Run(want, func(t *testing.T) {
			c := DefaultBudgetConfig()
			spoil(&c)
			err := c.Validate()
			require.ErrorContains(t, err, "retry: "+want)
			assert.NotContains(t, err.Error(), "\n", "nothing else is wrong")
			_, err = NewBudget("payments", WithBudgetConfig(c))
			require.ErrorContains(t, err, want)
		})
	}
}

// What Validate accepts works.
func TestConfig_BoundsHold(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	for name, opts := range map[string][]Option{
		"longest": {WithBackoff(forever, forever), WithBackoffFactor(1000), WithMaxRetryAfter(forever), WithAttemptTimeout(forever), WithAttemptGrowth(1000)},
		"least":   {WithAttempts(1), WithBackoff(0, 0), WithBackoffFactor(1), WithMaxRetryAfter(0), WithAttemptTimeout(1)},
		"most":    {WithAttempts(math.MaxInt32), WithSplitDeadline()},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := New("payments", opts...)
			require.NoError(t, err)
			require.NoError(t, p.Do(t.Context(), succeed))
		})
	}
	for _, c := range []BudgetConfig{
		{Ratio: 1, MinPerSecond: maxMinPerSecond, Window: maxWindow}, {Window: minWindow}, {Ratio: minRatio, Window: time.Minute},
	} {
		b, err := NewBudget("payments", WithBudgetConfig(c))
		require.NoError(t, err)
		b.Deposit()
		assert.Equal(t, c.MinPerSecond > 0, b.Withdraw())
	}
}

func TestNew_RefusesWhatIsNone(t *testing.T) {
	_, err := New("", nil, WithAttempts(0))
	for _, want := range []string{"retry: the name is empty", "retry: option 0 is nil", "retry: Attempts 0"} {
		assert.ErrorContains(t, err, want)
	}
	_, err = NewBudget("", WithRatio(2), nil)
	for _, want := range []string{"retry: the name is empty", "retry: option 1 is nil", "retry: Ratio 2"} {
		assert.ErrorContains(t, err, want)
	}
	_, err = NewHedger("", 0, nil)
	for _, want := range []string{"retry: the name is empty", "retry: option 0 is nil", "retry: Delay 0s is not positive"} {
		assert.ErrorContains(t, err, want)
	}
}

// Each option sets its field, the last one wins, and a Config that is given whole
// replaces what was set before it.
func TestOptions(t *testing.T) {
	p, err := New("payments",
		WithAttempts(9), WithConfig(DefaultConfig()), WithAttempts(4), WithAttempts(5), WithBackoff(1, 2), WithBackoffFactor(3), WithJitter(0.4),
		WithMaxRetryAfter(5), WithAttemptTimeout(6), WithAttemptGrowth(7), WithSplitDeadline(), WithBudget(nil))
	require.NoError(t, err)
	assert.Equal(t, Config{5, 1, 3, 2, 0.4, 5, 6, 7, true}, p.Config())
	assert.Nil(t, p.Budget())
	b, err := NewBudget("payments", WithRatio(0.5), WithBudgetConfig(BudgetConfig{Window: time.Second}), WithRatio(0.2), WithMinPerSecond(3), WithWindow(time.Minute))
	require.NoError(t, err)
	assert.Equal(t, BudgetConfig{0.2, 3, time.Minute}, b.Config())
	h, err := NewHedger("payments", 7)
	require.NoError(t, err)
	assert.Equal(t, HedgerConfig{7}, h.Config())
	assert.Equal(t, DefaultBudgetConfig(), h.Budget().Config())
}

// JSON goes there and back, is strict, and decodes over what was there.
func TestJSON(t *testing.T) {
	out, err := json.Marshal(DefaultConfig())
	require.NoError(t, err)
	assert.Equal(t, `{"attempts":3,"backoff":"50ms","backoff_factor":2,"backoff_max":"2s","jitter":1,"max_retry_after":"10s","attempt_timeout":"0s","attempt_growth":1,"split_deadline":false}`, string(out))
	var back Config
	require.NoError(t, json.Unmarshal(out, &back))
	assert.Equal(t, DefaultConfig(), back)
	require.NoError(t, json.Unmarshal([]byte(`{"attempts": 5, "attempt_timeout": "250ms", "split_deadline": true}`), &back))
	want := DefaultConfig()
	want.Attempts, want.AttemptTimeout, want.SplitDeadline = 5, 250*time.Millisecond, true
	assert.Equal(t, want, back)

	out, err = json.Marshal(DefaultBudgetConfig())
	require.NoError(t, err)
	assert.Equal(t, `{"ratio":0.1,"min_per_second":1,"window":"10s"}`, string(out))
	b := DefaultBudgetConfig()
	require.NoError(t, json.Unmarshal([]byte(`{"ratio": 0}`), &b))
	assert.Equal(t, BudgetConfig{0, 1, 10 * time.Second}, b, "an explicit zero is kept")

	out, err = json.Marshal(HedgerConfig{50 * time.Millisecond})
	require.NoError(t, err)
	assert.Equal(t, `{"delay":"50ms"}`, string(out))
	var h HedgerConfig
	require.NoError(t, json.Unmarshal(out, &h))
	assert.Equal(t, HedgerConfig{50 * time.Millisecond}, h)

	for doc, wrong := range map[string]any{
		`{"backoff": 50}`:        &Config{Attempts: 7},
		`{"backof": "50ms"}`:     &Config{Attempts: 7},
		`{"attempts": "3"}`:      &Config{Attempts: 7},
		`{"window": -1}`:         &BudgetConfig{Ratio: 0.7},
		`{"ratio_": 1}`:          &BudgetConfig{Ratio: 0.7},
		`{"delay": "-1s"}`:       &HedgerConfig{7},
		`{"delay": "1s", "x":1}`: &HedgerConfig{7},
	} {
		err := json.Unmarshal([]byte(doc), wrong)
		key := strings.Split(doc, `"`)[1]
		if strings.Contains(doc, "x") {
			key = "x"
		}
		assert.ErrorContains(t, err, key+": ", doc)
		switch c := wrong.(type) {
		case *Config:
			assert.Equal(t, Config{Attempts: 7}, *c, "as before")
		case *BudgetConfig:
			assert.Equal(t, BudgetConfig{Ratio: 0.7}, *c)
		case *HedgerConfig:
			assert.Equal(t, HedgerConfig{7}, *c)
		}
	}
}
