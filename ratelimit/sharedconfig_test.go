package ratelimit

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSharedConfig_Validate(t *testing.T) {
	assert.NoError(t, sharedConfigOf(Global(PerSecond(100))).Validate())
	assert.NoError(t, sharedConfigOf(ClusterAverage(PerSecond(1_000_000))).Validate())
	assert.NoError(t, sharedConfigOf(PerNode(Unlimited())).Validate())
	assert.NoError(t, sharedConfigOf(Global(Blocked())).Validate())
	assert.NoError(t, sharedConfigOf(PerNode(Rate{3, 7 * time.Nanosecond})).Validate(), "no store counts it")
	for _, c := range []struct {
		want   string
		change func(*SharedConfig)
	}{
		{`Threshold "ThresholdKind(0) 1/s" is not one of Global, ClusterAverage, PerNode`, func(c *SharedConfig) { c.Threshold.Kind = 0 }},
		{`Rate.Tokens 0 is not positive; no tokens at all is Blocked()`, func(c *SharedConfig) { c.Threshold.Rate.Tokens = 0 }},
		{`Rate.Per 1ns is not whole microseconds, which a store counts in`, func(c *SharedConfig) { c.Threshold.Rate.Per = 1 }},
		{`Burst 0 is less than 1, and not Auto`, func(c *SharedConfig) { c.Burst = 0 }},
		{`Burst 3000000000 at 999999/s is more than the 2251799813 that a store can count`, func(c *SharedConfig) { c.Burst, c.Threshold.Rate.Tokens = 3_000_000_000, 999_999 }},
		{`Threshold cluster_average 2000000/s with Burst 2000000, for 10000 nodes: ratelimit: Rate 20000000000/s is more than 10000000000/s: count in larger units`, func(c *SharedConfig) { c.Threshold = ClusterAverage(PerSecond(2_000_000)) }},
		{`SyncEvery 0s is not in [1ms, 1m0s]`, func(c *SharedConfig) { c.SyncEvery = 0 }},
		{`MaxLease 0 is less than 1, and not Auto; to hold none is Strict`, func(c *SharedConfig) { c.MaxLease = 0 }},
		{`StoreTimeout -1ns is not in [1µs, 1m0s]`, func(c *SharedConfig) { c.StoreTimeout = -1 }},
		{`OnFailure FailurePolicy(9) is not one of FailLocal, FailOpen, FailClosed, ReuseLast`, func(c *SharedConfig) { c.OnFailure = 9 }},
		{`LocalRate: ratelimit: Rate.Tokens -1 is not positive; no tokens at all is Blocked()`, func(c *SharedConfig) { c.LocalRate = PerSecond(-1) }},
		{`ReuseFor -1ns is not in [0s, 8784h0m0s]`, func(c *SharedConfig) { c.ReuseFor = -1 }},
		{`Nodes 10001 is not in [1, 10000]`, func(c *SharedConfig) { c.Nodes = 10_001 }},
		{`NodeTTL 1ms is not in [100ms, 1h0m0s]`, func(c *SharedConfig) { c.NodeTTL = time.Millisecond }},
		{`MaxWait -2ns is not in [0, 17520h0m0s], and not Auto`, func(c *SharedConfig) { c.MaxWait = -2 }},
		{`MaxWaiters -1 is negative`, func(c *SharedConfig) { c.MaxWaiters = -1 }},
	} {
		config := sharedConfigOf(Global(PerSecond(1)))
		c.change(&config)
		assert.EqualError(t, config.Validate(), "ratelimit: "+c.want)
	}
	err := SharedConfig{}.Validate()
	for _, field := range []string{"Threshold", "SyncEvery", "MaxLease", "StoreTimeout", "OnFailure", "Nodes", "NodeTTL"} {
		assert.ErrorContains(t, err, field)
	}
}

func TestSharedConfig_JSON(t *testing.T) {
	c := sharedConfigOf(ClusterAverage(PerSecond(100)))
	text, err := json.Marshal(c)
	require.NoError(t, err)
	assert.JSONEq(t, `{"threshold": "cluster_average 100/s", "burst": "auto", "strict": false, "sync_every": "100ms", "max_lease": "auto",
		"store_timeout": "20ms", "on_failure": "local", "local_rate": "auto", "reuse_for": "1m0s", "nodes": 1, "node_ttl": "10s",
		"max_wait": "auto", "max_waiters": 10000}`, string(text))
	var back SharedConfig
	require.NoError(t, json.Unmarshal(text, &back))
	assert.Equal(t, c, back)

	require.NoError(t, json.Unmarshal([]byte(`{"threshold": "global 5/m", "on_failure": "reuse_last", "local_rate": "3/s", "burst": 7}`), &back))
	c.Threshold, c.OnFailure, c.LocalRate, c.Burst = Global(PerMinute(5)), ReuseLast, PerSecond(3), 7
	assert.Equal(t, c, back, "absent keys keep their value")

	for _, bad := range []string{
		`{"treshold": "global 5/m"}`, `{"threshold": "5/m"}`, `{"threshold": "global 5"}`, `{"threshold": "local 5/s"}`, `{"threshold": ""}`,
		`{"on_failure": "pray"}`, `{"sync_every": 5}`, `{"local_rate": "fast"}`, `{"burst": -3}`, `{"nodes": "many"}`,
	} {
		before := back
		assert.Error(t, json.Unmarshal([]byte(bad), &back), bad)
		assert.Equal(t, before, back, bad)
	}
}

func TestSharedTexts(t *testing.T) {
	for want, v := range map[string]interface{ String() string }{
		"global 5/s": Global(PerSecond(5)), "cluster_average blocked": ClusterAverage(Blocked()), "per_node unlimited": PerNode(Unlimited()),
		"ThresholdKind(7)": ThresholdKind(7), "local": FailLocal, "open": FailOpen, "closed": FailClosed, "reuse_last": ReuseLast,
		"FailurePolicy(0)": FailurePolicy(0), "shared": ModeShared, "fallback": ModeFallback, "Mode(3)": Mode(3),
	} {
		assert.Equal(t, want, v.String())
	}
	for _, th := range []Threshold{Global(PerSecond(5)), ClusterAverage(Blocked()), PerNode(Every(250 * time.Millisecond))} {
		text, err := th.MarshalText()
		require.NoError(t, err)
		var back Threshold
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, th, back)
	}
}

func TestWithSharedConfig(t *testing.T) {
	m := newMemoryStore(t, 16)
	c := DefaultSharedConfig()
	c.Burst = 7
	s, err := NewShared("api", m, Global(PerSecond(5)), WithSharedConfig(c), WithStrict())
	require.NoError(t, err)
	c.Threshold, c.Strict = Global(PerSecond(5)), true
	assert.Equal(t, c, s.Config())
	c.Threshold = Global(PerSecond(6))
	_, err = NewShared("api", m, Global(PerSecond(5)), WithSharedConfig(c))
	assert.EqualError(t, err, "ratelimit: Threshold global 6/s of WithSharedConfig is not the threshold global 5/s given")
}

func TestSharedOptions(t *testing.T) {
	s, err := NewShared("api", newMemoryStore(t, 16), Global(PerSecond(5)),
		WithSharedThreshold(PerNode(PerSecond(6))), WithBurst(7), WithMaxLease(3), WithSyncEvery(time.Second), WithStoreTimeout(time.Millisecond),
		WithFailure(ReuseLast), WithLocalRate(PerSecond(2)), WithReuseFor(time.Hour), WithNodes(4), WithNodeTTL(time.Minute),
		WithMaxWait(time.Second), WithMaxWaiters(8))
	require.NoError(t, err)
	assert.Equal(t, SharedConfig{
		Threshold: PerNode(PerSecond(6)), Burst: 7, MaxLease: 3, SyncEvery: time.Second, StoreTimeout: time.Millisecond,
		OnFailure: ReuseLast, LocalRate: PerSecond(2), ReuseFor: time.Hour, Nodes: 4, NodeTTL: time.Minute,
		MaxWait: time.Second, MaxWaiters: 8,
	}, s.Config())
}

// Of the two, the smaller: what comes in SyncEvery for a node, and a quarter of its
// share of the burst.
func TestTerms_Lease(t *testing.T) {
	for _, c := range []struct {
		change func(*SharedConfig)
		nodes  int64
		want   int64
	}{
		{func(*SharedConfig) {}, 1, 100},
		{func(*SharedConfig) {}, 10, 10},
		{func(*SharedConfig) {}, 1000, 1},
		{func(c *SharedConfig) { c.Burst = 100 }, 10, 2},
		{func(c *SharedConfig) { c.SyncEvery = time.Second }, 10, 25},
		{func(c *SharedConfig) { c.MaxLease = 77 }, 10, 77},
		{func(c *SharedConfig) { c.Strict, c.MaxLease = true, 77 }, 10, 0},
		{func(c *SharedConfig) { c.Threshold.Kind = ClusterAverageThreshold }, 10, 100},
		{func(c *SharedConfig) { c.Threshold.Kind = PerNodeThreshold }, 10, 0},
	} {
		config := sharedConfigOf(Global(PerSecond(1000)))
		c.change(&config)
		assert.Equal(t, c.want, newTerms("api", config, c.nodes).most, "%+v of %d", config, c.nodes)
	}
}

func TestRate_Share(t *testing.T) {
	assert.Equal(t, Rate{100, 10 * time.Second}, PerSecond(100).share(10))
	assert.Equal(t, Rate{1, 30 * time.Second}, Rate{1, 3 * time.Second}.share(10))
	assert.Equal(t, Unlimited(), Unlimited().share(3))
	assert.Equal(t, Blocked(), Blocked().share(3))
	assert.Equal(t, Rate{5, 300 * 24 * time.Hour}, Rate{10, 300 * 24 * time.Hour}.share(2), "a Per has its limits")
	assert.Equal(t, Rate{1, maxPer}, PerDay(1).share(1000))
}
