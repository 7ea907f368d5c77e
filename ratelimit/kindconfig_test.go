package ratelimit

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func warmConfigOf(r Rate, period time.Duration) WarmUpConfig {
	c := DefaultWarmUpConfig()
	c.Rate, c.Period = r, period
	return c
}

func strictConfigOf(limit Rate) StrictWindowConfig {
	c := DefaultStrictWindowConfig()
	c.Limit = limit
	return c
}

func pacerConfigOf(r Rate) PacerConfig {
	c := DefaultPacerConfig()
	c.Rate = r
	return c
}

func TestKindConfigs_JSON(t *testing.T) {
	roundTrip(t, windowConfigOf(PerMinute(5)), `{"limit":"5/m","count_rejected":false,"max_wait":"auto","max_waiters":10000}`)
	roundTrip(t, SlidingLogConfig(windowConfigOf(PerMinute(5))), `{"limit":"5/m","count_rejected":false,"max_wait":"auto","max_waiters":10000}`)
	roundTrip(t, strictConfigOf(PerHour(1000)), `{"limit":"1000/h","share":0.5,"max_wait":"auto","max_waiters":10000}`)
	roundTrip(t, warmConfigOf(PerSecond(100), 10*time.Second), `{"rate":"100/s","period":"10s","cold_factor":3,"burst":"auto","max_wait":"auto","max_waiters":10000}`)
	roundTrip(t, pacerConfigOf(PerSecond(50)), `{"rate":"50/s","slack":0,"max_wait":"500ms"}`)

	window := windowConfigOf(PerMinute(5))
	require.NoError(t, json.Unmarshal([]byte(`{"count_rejected":true,"max_wait":"3s"}`), &window))
	assert.Equal(t, SlidingWindowConfig{PerMinute(5), true, 3 * time.Second, 10_000}, window, "absent keys keep what was there")
	log := SlidingLogConfig(window)
	require.NoError(t, json.Unmarshal([]byte(`{"limit":"7/s","count_rejected":false}`), &log))
	assert.Equal(t, SlidingLogConfig{PerSecond(7), false, 3 * time.Second, 10_000}, log)
	pacer := pacerConfigOf(PerSecond(50))
	assert.EqualError(t, json.Unmarshal([]byte(`{"max_wait":"auto","slak":1}`), &pacer), "max_wait: \"auto\" is not a duration in text such as \"250ms\", \"1.5s\" or \"1h30m\"; the longest is 2562047h\nslak: unknown key")
	assert.Equal(t, pacerConfigOf(PerSecond(50)), pacer)
}

// roundTrip writes c, reads it back, and sees that an unknown key is an error that
// leaves it alone.
func roundTrip[C comparable](t *testing.T, c C, want string) {
	t.Helper()
	out, err := json.Marshal(c)
	require.NoError(t, err)
	assert.Equal(t, want, string(out))
	var in C
	require.NoError(t, json.Unmarshal(out, &in))
	assert.Equal(t, c, in)
	assert.EqualError(t, json.Unmarshal([]byte(`{"limits":"5/s"}`), &in), "limits: unknown key")
	assert.Equal(t, c, in)
}

func TestKindConfigs_Validate(t *testing.T) {
	window := func(change func(*SlidingWindowConfig)) error {
		c := windowConfigOf(PerSecond(10))
		change(&c)
		return c.Validate()
	}
	log := func(change func(*SlidingLogConfig)) error {
		c := SlidingLogConfig(windowConfigOf(PerSecond(10)))
		change(&c)
		return c.Validate()
	}
	strict := func(change func(*StrictWindowConfig)) error {
		c := strictConfigOf(PerSecond(10))
		change(&c)
		return c.Validate()
	}
	warm := func(change func(*WarmUpConfig)) error {
		c := warmConfigOf(PerSecond(10), time.Second)
		change(&c)
		return c.Validate()
	}
	pacer := func(change func(*PacerConfig)) error {
		c := pacerConfigOf(PerSecond(10))
		change(&c)
		return c.Validate()
	}
	const noRate = "ratelimit: Rate.Tokens 0 is not positive; no tokens at all is Blocked()\nratelimit: Rate.Per 0s is not positive"
	for i, tc := range []struct {
		err  error
		want string // "" is fine
	}{
		{window(func(c *SlidingWindowConfig) { c.Limit, c.MaxWait, c.MaxWaiters = Rate{maxPair, maxPer}, 0, 0 }), ""},
		{window(func(c *SlidingWindowConfig) { c.Limit = Rate{10, 1} }), ""},
		{window(func(c *SlidingWindowConfig) { c.Limit = Unlimited() }), ""},
		{window(func(c *SlidingWindowConfig) { c.Limit = Blocked() }), ""},
		{window(func(c *SlidingWindowConfig) { c.Limit = PerHour(maxPair + 1) }), "ratelimit: Limit 16777215/h is of more than 16777214 tokens, which a SlidingWindow cannot count"},
		{window(func(c *SlidingWindowConfig) { c.MaxWait, c.MaxWaiters = -2, -1 }), "ratelimit: MaxWait -2ns is not in [0, 17520h0m0s], and not Auto\nratelimit: MaxWaiters -1 is negative"},
		{SlidingWindowConfig{}.Validate(), noRate},
		{log(func(c *SlidingLogConfig) { c.Limit = Rate{maxLog, maxLogPer} }), ""},
		{log(func(c *SlidingLogConfig) { c.Limit = Rate{maxLog + 1, maxLogPer + 1} }), "ratelimit: Limit 1001/744h0m0.000000001s is of more than 1000 tokens, which a SlidingLog cannot count\nratelimit: Limit 1001/744h0m0.000000001s is for more than 744h0m0s, which a SlidingLog does not remember"},
		{SlidingLogConfig{}.Validate(), noRate},
		{strict(func(c *StrictWindowConfig) { c.Share = minShare }), ""},
		{strict(func(c *StrictWindowConfig) { c.Share = 1 }), ""},
		{strict(func(c *StrictWindowConfig) { c.Limit = Unlimited() }), ""},
		{strict(func(c *StrictWindowConfig) { c.Share = 0 }), "ratelimit: Share 0 is not in [0.000001, 1]"},
		{strict(func(c *StrictWindowConfig) { c.Share = math.NaN() }), "ratelimit: Share NaN is not in [0.000001, 1]"},
		{strict(func(c *StrictWindowConfig) { c.Share = math.Inf(1) }), "ratelimit: Share +Inf is not in [0.000001, 1]"},
		{strict(func(c *StrictWindowConfig) { c.Limit, c.Share = PerDay(1_000_000), 1 }), "ratelimit: Share 1 of Limit 1000000/d is a burst of 1000000 tokens, which do not come at 1/d within 17520h0m0s"},
		{StrictWindowConfig{}.Validate(), noRate + "\nratelimit: Share 0 is not in [0.000001, 1]"},
		{warm(func(c *WarmUpConfig) { c.Period, c.ColdFactor = 0, 1 }), ""},
		{warm(func(c *WarmUpConfig) { c.Rate, c.Period, c.ColdFactor = PerSecond(1_000_000), day, 10 }), ""},
		{warm(func(c *WarmUpConfig) { c.Rate = Unlimited() }), ""},
		{warm(func(c *WarmUpConfig) { c.Burst = 864_000 }), ""},
		{warm(func(c *WarmUpConfig) { c.Rate, c.Burst = PerHour(1), 24 }), ""},
		{warm(func(c *WarmUpConfig) { c.Rate, c.Burst = Every(maxPer), 1 }), ""},
		{warm(func(c *WarmUpConfig) { c.Burst = 864_001 }), "ratelimit: Burst 864001 is not in [1, 864000], what comes at 10/s within 24h0m0s, and not Auto"},
		{warm(func(c *WarmUpConfig) { c.Burst = 0 }), "ratelimit: Burst 0 is not in [1, 864000], what comes at 10/s within 24h0m0s, and not Auto"},
		{warm(func(c *WarmUpConfig) { c.Rate = PerSecond(1_000_001) }), "ratelimit: Rate 1000001/s is more than a WarmUp can do, 1000000/s"},
		{warm(func(c *WarmUpConfig) { c.Rate = Every(999) }), "ratelimit: Rate 1/999ns is more than a WarmUp can do, 1000000/s"},
		{warm(func(c *WarmUpConfig) { c.Period, c.ColdFactor = -1, math.NaN() }), "ratelimit: Period -1ns is not in [0, 24h0m0s]\nratelimit: ColdFactor NaN is not in [1, 10]"},
		{warm(func(c *WarmUpConfig) { c.Period, c.ColdFactor = day+1, 0.5 }), "ratelimit: Period 24h0m0.000000001s is not in [0, 24h0m0s]\nratelimit: ColdFactor 0.5 is not in [1, 10]"},
		{WarmUpConfig{}.Validate(), noRate + "\nratelimit: ColdFactor 0 is not in [1, 10]"},
		{pacer(func(c *PacerConfig) { c.MaxWait = 0 }), ""},
		{pacer(func(c *PacerConfig) { c.MaxWait, c.Slack = maxFill, 630_720_000 }), ""},
		{pacer(func(c *PacerConfig) { c.Rate = Blocked() }), ""},
		{pacer(func(c *PacerConfig) { c.MaxWait, c.Slack = Auto, -1 }), "ratelimit: Slack -1 is not in [0, 630720000], what comes at 10/s within 17520h0m0s\nratelimit: MaxWait -1ns is not in [0, 17520h0m0s]"},
		{pacer(func(c *PacerConfig) { c.Slack = math.MaxInt64 }), "ratelimit: Slack 9223372036854775807 is not in [0, 630720000], what comes at 10/s within 17520h0m0s"},
		{PacerConfig{}.Validate(), noRate},
	} {
		if tc.want == "" {
			assert.NoError(t, tc.err, "%d", i)
			continue
		}
		assert.EqualError(t, tc.err, tc.want)
	}
}

func TestKindOptions(t *testing.T) {
	w, err := NewSlidingWindow("login", PerMinute(5), WithRejectedCounted(), WithMaxWait(time.Second), WithMaxWaiters(3))
	require.NoError(t, err)
	assert.Equal(t, "login", w.Name())
	assert.Equal(t, SlidingWindowConfig{PerMinute(5), true, time.Second, 3}, w.Config())
	l, err := NewSlidingLog("login", PerMinute(5), WithRejectedCounted(), WithSlidingLogConfig(DefaultSlidingLogConfig()), WithMaxWaiters(3))
	require.NoError(t, err)
	assert.Equal(t, SlidingLogConfig{PerMinute(5), false, Auto, 3}, l.Config(), "a configuration replaces what was set so far")
	s, err := NewStrictWindow("partner", PerHour(1000), WithStrictWindowConfig(StrictWindowConfig{PerHour(1000), 0.2, 0, 1}), WithMaxWait(time.Second))
	require.NoError(t, err)
	assert.Equal(t, StrictWindowConfig{PerHour(1000), 0.2, time.Second, 1}, s.Config())
	u, err := NewWarmUp("db", PerSecond(100), time.Minute, WithWarmUpConfig(WarmUpConfig{ColdFactor: 4, Burst: 7, MaxWait: Auto, MaxWaiters: 1}), WithBurst(3), WithColdFactor(2))
	require.NoError(t, err)
	assert.Equal(t, WarmUpConfig{PerSecond(100), time.Minute, 2, 3, Auto, 1}, u.Config())
	p, err := NewPacer("mail", PerSecond(10), WithPacerConfig(PacerConfig{Slack: 3}), WithMaxWait(time.Minute))
	require.NoError(t, err)
	assert.Equal(t, PacerConfig{PerSecond(10), 3, time.Minute}, p.Config())
	p, err = NewPacer("mail", PerSecond(10))
	require.NoError(t, err)
	assert.Equal(t, pacerConfigOf(PerSecond(10)), p.Config())

	_, err = NewSlidingWindow("", PerSecond(1), nil, WithBurst(5), WithMaxDebt(1), Option(nil))
	assert.EqualError(t, err, "ratelimit: option 0 is nil\nratelimit: an option is nil\nratelimit: the name is empty\nratelimit: WithBurst means nothing to a SlidingWindow\nratelimit: WithMaxDebt means nothing to a SlidingWindow")
	_, err = NewSlidingLog("x", PerSecond(1001), WithSlidingLogConfig(SlidingLogConfig{Limit: PerSecond(2), MaxWaiters: -1}))
	assert.EqualError(t, err, "ratelimit: Limit 2/s of the configuration is not the 1001/s given to the constructor\nratelimit: Limit 1001/s is of more than 1000 tokens, which a SlidingLog cannot count\nratelimit: MaxWaiters -1 is negative")
	_, err = NewStrictWindow("x", PerSecond(1), WithInitial(3), WithShare(2))
	assert.EqualError(t, err, "ratelimit: WithInitial means nothing to a StrictWindow\nratelimit: Share 2 is not in [0.000001, 1]")
	_, err = NewWarmUp("x", PerSecond(1), time.Second, WithInitial(0), WithWarmUpConfig(WarmUpConfig{Rate: PerSecond(2), Period: 5, ColdFactor: 3, Burst: Auto}))
	assert.EqualError(t, err, "ratelimit: Rate 2/s of the configuration is not the 1/s given to the constructor\nratelimit: Period 5ns of the configuration is not the 1s given to the constructor\nratelimit: WithInitial means nothing to a WarmUp")
	_, err = NewPacer("x", PerSecond(1), WithMaxWaiters(5), WithMaxWait(Auto))
	assert.EqualError(t, err, "ratelimit: WithMaxWaiters means nothing to a Pacer\nratelimit: MaxWait -1ns is not in [0, 17520h0m0s]")
}

// An equal configuration touches nothing, and one that is wrong neither.
func TestKindUpdates_TouchNothing(t *testing.T) {
	w, err := NewSlidingWindow("test", PerSecond(5))
	require.NoError(t, err)
	l, err := NewSlidingLog("test", PerSecond(5))
	require.NoError(t, err)
	s, err := NewStrictWindow("test", PerSecond(5))
	require.NoError(t, err)
	u, err := NewWarmUp("test", PerSecond(5), time.Second)
	require.NoError(t, err)
	p, err := NewPacer("test", PerSecond(5))
	require.NoError(t, err)
	before := []any{w.cur.Load(), l.cur.Load(), s.bucket.cur.Load(), u.cur.Load(), p.cur.Load()}
	require.NoError(t, w.Update(w.Config()))
	require.NoError(t, l.Update(l.Config()))
	require.NoError(t, s.Update(s.Config()))
	require.NoError(t, u.Update(u.Config()))
	require.NoError(t, p.Update(p.Config()))
	assert.Error(t, w.Update(SlidingWindowConfig{}))
	assert.Error(t, l.Update(SlidingLogConfig{}))
	assert.Error(t, s.Update(StrictWindowConfig{}))
	assert.Error(t, u.Update(WarmUpConfig{}))
	assert.Error(t, p.Update(PacerConfig{}))
	for i, now := range []any{w.cur.Load(), l.cur.Load(), s.bucket.cur.Load(), u.cur.Load(), p.cur.Load()} {
		assert.Same(t, before[i], now)
	}
}
