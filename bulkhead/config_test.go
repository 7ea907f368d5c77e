package bulkhead

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// waits is a Config in which every field is in use.
func waits() Config {
	return Config{
		Limit: 3, MaxQueue: 5, MaxWait: time.Second, Order: AdaptiveLIFO, Aging: time.Millisecond,
		CoDelTarget: 5 * time.Millisecond, CoDelInterval: 100 * time.Millisecond,
	}
}

func TestConfig_Defaults(t *testing.T) {
	c := DefaultConfig()
	assert.ErrorContains(t, c.Validate(), "Limit -1", "there is none for the limit")
	c.Limit = 7
	require.NoError(t, c.Validate())
	assert.Equal(t, c, build(t, 7).Config())
	assert.Error(t, Config{}.Validate(), "a Config is taken literally")
	require.NoError(t, waits().Validate())
}

// Each complaint names the field and its value.
func TestConfig_Complaints(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"Limit -2 is not in":                 func(c *Config) { c.Limit = -2 },
		"Limit 1073741825 is not in":         func(c *Config) { c.Limit = 1<<30 + 1 },
		"MaxQueue -1 is not in":              func(c *Config) { c.MaxQueue = -1 },
		"MaxQueue 1000001 is not in":         func(c *Config) { c.MaxQueue = 1_000_001 },
		"MaxWait -1s is negative":            func(c *Config) { c.MaxWait = -time.Second },
		"Order 0 is not one of fifo, adap":   func(c *Config) { c.Order = 0 },
		"Order 3 is not one of fifo, adap":   func(c *Config) { c.Order = 3 },
		"Aging -1ns is negative":             func(c *Config) { c.Aging = -1 },
		"CoDelTarget -1ns is negative":       func(c *Config) { c.CoDelTarget = -1 },
		"CoDelTarget 2s is more than MaxWa":  func(c *Config) { c.CoDelTarget = 2 * time.Second },
		"CoDelInterval 0s is not positive":   func(c *Config) { c.CoDelInterval = 0 },
		"CoDelInterval -1ns is not positive": func(c *Config) { c.CoDelInterval = -1 },
		"MaxQueue 5 lets calls wait, and Ma": func(c *Config) { c.MaxWait = 0 },
		"MaxWait 1s lets calls wait, and wi": func(c *Config) { c.MaxQueue = 0 },
		"Order adaptive_lifo is for calls t": func(c *Config) { c.MaxQueue = 0 },
		"Aging 1ms is for calls that wait":   func(c *Config) { c.MaxQueue = 0 },
		"CoDelTarget 5ms is for calls that ": func(c *Config) { c.MaxQueue = 0 },
	} {
		t.Run(want, func(t *testing.T) {
			c := waits()
			spoil(&c)
			assert.ErrorContains(t, c.Validate(), "bulkhead: "+want)
			_, err := New("payments", c.Limit, WithConfig(c))
			assert.ErrorContains(t, err, "bulkhead: "+want)
		})
	}
}

func TestNew_EveryComplaintAtOnce(t *testing.T) {
	_, err := New("", -3, nil, WithQueue(-1, -1), WithConfig(Config{Limit: 4}), WithAging(-1))
	for _, want := range []string{"name is empty", "option 0 is nil", "WithConfig has Limit 4, and the argument is -3", "Order 0", "Aging -1ns"} {
		assert.ErrorContains(t, err, want)
	}
}

func TestOptions_SetWhatTheySay(t *testing.T) {
	b := build(t, 3, WithQueue(5, time.Second), WithOrder(AdaptiveLIFO), WithAging(time.Millisecond),
		WithCoDel(5*time.Millisecond, 100*time.Millisecond))
	assert.Equal(t, waits(), b.Config())
	assert.Equal(t, waits(), build(t, 3, WithQueue(9, time.Minute), WithConfig(waits())).Config(), "it replaces all")
	unset := waits()
	unset.Limit = -1
	assert.Equal(t, waits(), build(t, 3, WithConfig(unset)).Config())
	assert.Equal(t, 9, build(t, 3, WithConfig(waits()), WithQueue(9, time.Minute)).Config().MaxQueue, "the last one wins")
}

// What Validate accepts, New can make.
func TestConfig_BoundsHold(t *testing.T) {
	c := Config{
		Limit: 1 << 30, MaxQueue: 1_000_000, MaxWait: math.MaxInt64, Order: AdaptiveLIFO, Aging: math.MaxInt64,
		CoDelTarget: math.MaxInt64, CoDelInterval: math.MaxInt64,
	}
	b := build(t, 1<<30, WithConfig(c))
	p, err := b.AcquireN(t.Context(), 1<<30)
	require.NoError(t, err)
	_, err = b.TryAcquire(t.Context())
	assert.Equal(t, ReasonFull, reasonFor(t, err))
	p.Close()
}

func TestConfig_JSON(t *testing.T) {
	data, err := json.Marshal(waits())
	require.NoError(t, err)
	assert.JSONEq(t, `{"limit": 3, "max_queue": 5, "max_wait": "1s", "order": "adaptive_lifo", "aging": "1ms",
		"codel_target": "5ms", "codel_interval": "100ms"}`, string(data))
	var back Config
	require.NoError(t, json.Unmarshal(data, &back))
	assert.Equal(t, waits(), back)

	c := waits()
	require.NoError(t, json.Unmarshal([]byte(`{"limit": 9}`), &c))
	want := waits()
	want.Limit = 9
	assert.Equal(t, want, c, "absent keys keep what was there")

	for wrong, complaint := range map[string]string{
		`{"limits": 3}`:           "limits: unknown key",
		`{"max_wait": 100}`:       "max_wait: 100 is a bare number",
		`{"order": "lifo"}`:       `order "lifo" is not one of fifo, adaptive_lifo`,
		`{"limit": 1, "limit":2}`: "limit",
		`{"limit": 1.5}`:          "limit: 1.5 is not an integer",
	} {
		c := waits()
		assert.ErrorContains(t, json.Unmarshal([]byte(wrong), &c), complaint)
		assert.Equal(t, waits(), c, "as before")
	}
}

func TestOrder_String(t *testing.T) {
	assert.Equal(t, "fifo", FIFO.String())
	assert.Equal(t, "Order(0)", Order(0).String())
	assert.Equal(t, "Order(9)", Order(9).String())
}

func TestPoolConfig_Defaults(t *testing.T) {
	c := DefaultPoolConfig()
	assert.ErrorContains(t, c.Validate(), "Workers 0", "there is none for the workers")
	c.Workers = 7
	require.NoError(t, c.Validate())
	p, err := NewPool("mail", 7)
	require.NoError(t, err)
	assert.Equal(t, c, p.Config())
}

func TestPoolConfig_Complaints(t *testing.T) {
	for want, c := range map[string]PoolConfig{
		"Workers 0 is not in":        {},
		"Workers -1 is not in":       {Workers: -1},
		"Workers 1000001 is not in":  {Workers: 1_000_001},
		"MaxQueue -1 is not in":      {Workers: 1, MaxQueue: -1},
		"MaxQueue 1000001 is not in": {Workers: 1, MaxQueue: 1_000_001},
		"KeepAlive -1ns is negative": {Workers: 1, KeepAlive: -1},
	} {
		assert.ErrorContains(t, c.Validate(), "bulkhead: "+want)
		_, err := NewPool("mail", c.Workers, WithPoolConfig(c))
		assert.ErrorContains(t, err, "bulkhead: "+want)
	}
	_, err := NewPool("", 0, nil, WithPoolQueue(-1), WithKeepAlive(-1))
	for _, want := range []string{"name is empty", "option 0 is nil", "Workers 0", "MaxQueue -1", "KeepAlive -1ns"} {
		assert.ErrorContains(t, err, want)
	}
	_, err = NewPool("mail", 3, WithPoolConfig(PoolConfig{Workers: 4}))
	assert.ErrorContains(t, err, "WithPoolConfig has Workers 4, and NewPool was given 3")
}

func TestPoolConfig_JSON(t *testing.T) {
	want := PoolConfig{Workers: 3, MaxQueue: 5, KeepAlive: time.Minute}
	data, err := json.Marshal(want)
	require.NoError(t, err)
	assert.JSONEq(t, `{"workers": 3, "max_queue": 5, "keep_alive": "1m0s"}`, string(data))
	c := PoolConfig{MaxQueue: 5, KeepAlive: time.Minute}
	require.NoError(t, json.Unmarshal([]byte(`{"workers": 3}`), &c))
	assert.Equal(t, want, c)
	assert.ErrorContains(t, json.Unmarshal([]byte(`{"worker": 3}`), &c), "worker: unknown key")
	assert.ErrorContains(t, json.Unmarshal([]byte(`{"workers": "3"}`), &c), "workers")
	assert.Equal(t, want, c, "as before")
	p, err := NewPool("mail", 3, WithPoolConfig(PoolConfig{MaxQueue: 5}), WithKeepAlive(time.Minute))
	require.NoError(t, err)
	assert.Equal(t, want, p.Config())
}
