package ratelimit

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConfig_JSON(t *testing.T) {
	c := DefaultConfigOf(PerSecond(100))
	out, err := json.Marshal(c)
	require.NoError(t, err)
	assert.Equal(t, `{"rate":"100/s","burst":"auto","initial":"auto","max_wait":"auto","max_waiters":10000,"max_debt":"auto"}`, string(out))

	var in Config
	require.NoError(t, json.Unmarshal(out, &in))
	assert.Equal(t, c, in)

	require.NoError(t, json.Unmarshal([]byte(`{"rate":"5/m","burst":7,"max_wait":"250ms"}`), &in))
	assert.Equal(t, Config{PerMinute(5), 7, Auto, 250 * time.Millisecond, 10_000, Auto}, in, "absent keys keep what was there")
	require.NoError(t, json.Unmarshal([]byte(`{"burst":null,"max_debt":0}`), &in))
	assert.Equal(t, Config{PerMinute(5), 7, Auto, 250 * time.Millisecond, 10_000, 0}, in)

	before := in
	for text, complaint := range map[string]string{
		`{"rate":"5"}`:                `rate: ratelimit: "5" is not a rate such as "100/s", "60/m" or "1/250ms", nor "unlimited" or "blocked"`,
		`{"rate":5}`:                  `rate: 5 is not text in quotes`,
		`{"rate":"0/s"}`:              `rate: ratelimit: Rate.Tokens 0 is not positive; no tokens at all is Blocked()`,
		`{"burst":"many"}`:            `burst: "many" is not a whole number of tokens, or "auto"`,
		`{"burst":1.5}`:               `burst: 1.5 is not a whole number of tokens, or "auto"`,
		`{"burst":-1}`:                `burst: -1 is negative, want a number of tokens, or "auto"`,
		`{"max_wait":5}`:              `max_wait: 5 is a bare number, want a duration in text such as "250ms", "1.5s" or "1h30m", or "auto"`,
		`{"bursts":5}`:                `bursts: unknown key`,
		`{"burst":5,"burst":6}`:       `burst: the key stands there twice`,
		`{"burst":1e30,"initial":{}}`: "burst: 1e30 is not a whole number of tokens, or \"auto\"\ninitial: {} is not a whole number of tokens, or \"auto\"",
	} {
		assert.EqualError(t, json.Unmarshal([]byte(text), &in), complaint)
		assert.Equal(t, before, in, "%s leaves what was there", text)
	}
}

func TestConfig_Validate(t *testing.T) {
	good := DefaultConfigOf(PerSecond(10))
	require.NoError(t, good.Validate())
	for _, tc := range []struct {
		change func(*Config)
		want   string // "" is fine
	}{
		{func(c *Config) { c.Burst, c.Initial, c.MaxDebt = 1, 0, 0 }, ""},
		{func(c *Config) { c.MaxWait, c.MaxWaiters = 0, 0 }, ""},
		{func(c *Config) { c.MaxWait, c.MaxWaiters = maxFill, math.MaxInt }, ""},
		{func(c *Config) { c.Burst = 630_720_000 }, ""},
		{func(c *Config) { c.Burst = 630_720_001 }, "ratelimit: Burst 630720001 does not come at 10/s within 17520h0m0s; the most is 630720000"},
		{func(c *Config) { c.Burst = math.MaxInt64 }, "ratelimit: Burst 9223372036854775807 does not come at 10/s within 17520h0m0s; the most is 630720000"},
		{func(c *Config) { c.Burst = math.MinInt64 }, "ratelimit: Burst -9223372036854775808 is less than 1, and not Auto"},
		{func(c *Config) { c.Initial = 11 }, "ratelimit: Initial 11 is more than Burst 10"},
		{func(c *Config) { c.Initial = -2 }, "ratelimit: Initial -2 is less than 0, and not Auto"},
		{func(c *Config) { c.MaxDebt = math.MaxInt64 }, "ratelimit: MaxDebt 9223372036854775807 does not come at 10/s within 17520h0m0s; the most is 630720000"},
		{func(c *Config) { c.MaxWait = maxFill + 1 }, "ratelimit: MaxWait 17520h0m0.000000001s is not in [0, 17520h0m0s], and not Auto"},
		{func(c *Config) { c.Rate = Unlimited(); c.Burst, c.Initial = 7, 9 }, ""},
		{func(c *Config) { c.Rate = Blocked() }, ""},
		{func(c *Config) { c.Rate = Blocked(); c.Burst = 0 }, "ratelimit: Burst 0 is less than 1, and not Auto"},
		{func(c *Config) { c.Rate = Rate{10, -5}; c.MaxWaiters = -1 }, "ratelimit: Rate.Per -5ns is not positive\nratelimit: MaxWaiters -1 is negative"},
	} {
		err := with(good, tc.change).Validate()
		if tc.want == "" {
			assert.NoError(t, err)
			continue
		}
		assert.EqualError(t, err, tc.want)
	}
	assert.Error(t, Config{}.Validate(), "the zero Config does not validate")
}

func TestPrioritiesConfig_JSON(t *testing.T) {
	c := prioritiesOf(PerSecond(100))
	out, err := json.Marshal(c)
	require.NoError(t, err)
	assert.Equal(t, `{"rate":"100/s","burst":"auto","p0":{"assured":0.2,"floor":0},"p1":{"assured":0.1,"floor":0.1},"p2":{"assured":0.05,"floor":0.3},"keep":0.9}`, string(out))
	var in PrioritiesConfig
	require.NoError(t, json.Unmarshal(out, &in))
	assert.Equal(t, c, in)
	require.NoError(t, json.Unmarshal([]byte(`{"p1":{"assured":0.5}}`), &in))
	assert.Equal(t, PriorityClass{0.5, 0.1}, in.Classes[1])
	before := in
	assert.EqualError(t, json.Unmarshal([]byte(`{"p3":{},"keep":"all","p0":{"share":1}}`), &in), "p3: unknown key\nkeep: \"all\" is not a number that fits float64\np0.share: unknown key")
	assert.Equal(t, before, in)
}

func TestPrioritiesConfig_Validate(t *testing.T) {
	good := prioritiesOf(PerSecond(100))
	require.NoError(t, good.Validate())
	nan := math.NaN()
	for _, tc := range []struct {
		change func(*PrioritiesConfig)
		want   string // "" is fine
	}{
		{func(c *PrioritiesConfig) { c.Classes = [classes]PriorityClass{} }, ""},
		{func(c *PrioritiesConfig) { c.Classes[0].Assured = 0.85 }, ""},
		{func(c *PrioritiesConfig) { c.Burst = 4 }, ""},
		{func(c *PrioritiesConfig) { c.Rate, c.Burst = Unlimited(), 0 }, ""},
		{func(c *PrioritiesConfig) { c.Burst = 3 }, "ratelimit: Burst 3 has no token left for the shared bucket"},
		{func(c *PrioritiesConfig) { c.Burst = 0 }, "ratelimit: Burst 0 is less than 1, and not Auto"},
		{func(c *PrioritiesConfig) { c.Classes[0].Assured = 0.86 }, "ratelimit: the Assured of all classes add up to more than 1"},
		{func(c *PrioritiesConfig) { c.Classes[2].Assured = -0.1 }, "ratelimit: Assured -0.1 of P2 is not in [0, 1]"},
		{func(c *PrioritiesConfig) { c.Classes[1].Assured = nan }, "ratelimit: Assured NaN of P1 is not in [0, 1]"},
		{func(c *PrioritiesConfig) { c.Classes[1].Floor = math.Inf(1) }, "ratelimit: Floor +Inf of P1 is not in [0, 1)\nratelimit: Floor 0.3 of P2 is less than that of a more important class, +Inf"},
		{func(c *PrioritiesConfig) { c.Classes[2].Floor = nan }, "ratelimit: Floor NaN of P2 is not in [0, 1)"},
		{func(c *PrioritiesConfig) { c.Classes[2].Floor = 1 }, "ratelimit: Floor 1 of P2 is not in [0, 1)"},
		{func(c *PrioritiesConfig) { c.Classes[0].Floor = 0.2 }, "ratelimit: Floor 0.1 of P1 is less than that of a more important class, 0.2"},
		{func(c *PrioritiesConfig) { c.Keep = 1.1 }, "ratelimit: Keep 1.1 is not in [0, 1]"},
		{func(c *PrioritiesConfig) { c.Keep = nan }, "ratelimit: Keep NaN is not in [0, 1]"},
		{func(c *PrioritiesConfig) { c.Rate = PerDay(10); c.Classes[0].Assured = 0.0001 }, "ratelimit: 1 tokens for P0 do not come at its share of 10/d within 17520h0m0s"},
		{func(c *PrioritiesConfig) { c.Rate = Rate{}; c.Keep = -1 }, "ratelimit: Rate.Tokens 0 is not positive; no tokens at all is Blocked()\nratelimit: Rate.Per 0s is not positive\nratelimit: Keep -1 is not in [0, 1]"},
	} {
		c := good
		tc.change(&c)
		err := c.Validate()
		if tc.want == "" {
			assert.NoError(t, err)
			newPriorities("test", c, true, 1)
			continue
		}
		assert.EqualError(t, err, tc.want)
	}
}
