package ratelimit

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ms = int64(time.Millisecond)

// at10 is a limiter of 10/s with a burst of 5, begun at 1.
func at10(change func(*Config)) *Limiter {
	c := with(DefaultConfigOf(PerSecond(10)), func(c *Config) { c.Burst = 5 })
	if change != nil {
		change(&c)
	}
	return newLimiter("test", settings{Config: c}, 1)
}

func TestTake_Steps(t *testing.T) {
	l := at10(nil)
	for i, step := range []struct {
		at    int64
		n     int64
		want  bool
		left  int64
		retry time.Duration
		reset time.Duration
	}{
		{0, 2, true, 3, 0, 200 * time.Millisecond},
		{0, 3, true, 0, 0, 500 * time.Millisecond},
		{0, 1, false, 0, 100 * time.Millisecond, 500 * time.Millisecond},
		{99*ms + 999_999, 1, false, 0, 1, 400*time.Millisecond + 1},
		{100 * ms, 1, true, 0, 0, 500 * time.Millisecond},
		{50 * ms, 1, false, 0, 150 * time.Millisecond, 550 * time.Millisecond}, // a clock that steps back
		{150 * ms, 1, false, 0, 50 * time.Millisecond, 450 * time.Millisecond},
		{250 * ms, 5, false, 1, 350 * time.Millisecond, 350 * time.Millisecond},
		{250 * ms, 0, true, 1, 0, 350 * time.Millisecond},
		{600 * ms, 5, true, 0, 0, 500 * time.Millisecond},
		{600 * ms, 6, false, 0, -1, 500 * time.Millisecond},
		{600 * ms, math.MaxInt64, false, 0, -1, 500 * time.Millisecond},
		{3600_000 * ms, 6, false, 5, -1, 0}, // an hour later it holds no more
		{3600_000 * ms, 5, true, 0, 0, 500 * time.Millisecond},
		{3600_000 * ms, -1, false, 0, -1, 0},
		{3600_000 * ms, math.MinInt64, false, 0, -1, 0},
		{1 << 62, 1, true, 4, 0, 100 * time.Millisecond},
	} {
		peeked := l.peek(0, step.n, 1+step.at)
		d := l.take(0, step.n, 1+step.at)
		assert.Equal(t, step.want, d.OK(), "step %d", i)
		assert.Equal(t, step.want, peeked.OK(), "step %d", i)
		assert.Equal(t, step.left, d.Remaining(), "step %d", i)
		assert.Equal(t, step.retry, d.RetryAfter(), "step %d", i)
		assert.Equal(t, step.retry, peeked.RetryAfter(), "step %d", i)
		assert.Equal(t, step.reset, d.ResetAfter(), "step %d", i)
		assert.Equal(t, step.retry < 0, d.Never(), "step %d", i)
		assert.Equal(t, step.n, d.Tokens(), "step %d", i)
	}
}

func TestTakeUpTo_Steps(t *testing.T) {
	l := at10(nil)
	for i, step := range []struct {
		at          int64
		least, most int64
		want        bool
		tokens      int64
	}{
		{0, 1, 3, true, 3},
		{0, 1, 3, true, 2},
		{0, 1, 3, false, 1},
		{0, 0, 3, true, 0},
		{250 * ms, 3, 4, false, 3},
		{250 * ms, 1, math.MaxInt64, true, 2},
		{3600_000 * ms, 6, 7, false, 6}, // more than there can be
		{3600_000 * ms, 0, 100, true, 5},
		{3600_000 * ms, -1, 3, false, -1},
		{3600_000 * ms, 3, 2, false, -1},
	} {
		d := l.takeUpTo(step.least, step.most, 1+step.at)
		assert.Equal(t, step.want, d.OK(), "step %d", i)
		assert.Equal(t, step.tokens, d.Tokens(), "step %d", i)
	}
	assert.EqualValues(t, 7, newLimiter("test", settings{Config: DefaultConfigOf(Unlimited())}, 1).takeUpTo(1, 7, 1).Tokens())
}

func TestDebit_Steps(t *testing.T) {
	l := at10(func(c *Config) { c.MaxDebt = 10 })
	level := func(now int64) float64 { return l.snapshot(now).Level }
	assert.True(t, l.debit(3, 1).OK())
	assert.Equal(t, 2.0, level(1))
	owes := l.debit(4, 1)
	assert.False(t, owes.OK())
	assert.Equal(t, 200*time.Millisecond, owes.RetryAfter(), "until it owes nothing")
	assert.Equal(t, -2.0, level(1))
	assert.Equal(t, 300*time.Millisecond, l.take(0, 1, 1).RetryAfter())
	assert.False(t, l.take(0, 0, 1).OK())
	assert.Equal(t, 300*time.Millisecond, l.takeUpTo(1, 3, 1).RetryAfter())
	for _, n := range []int64{100, math.MaxInt64} {
		l.debit(n, 1)
		assert.Equal(t, -10.0, level(1), "no more than MaxDebt")
	}
	assert.True(t, l.take(0, 0, 1+1000*ms).OK())
	assert.False(t, l.take(0, 1, 1+1000*ms).OK())
	assert.True(t, l.take(0, 1, 1+1100*ms).OK())
	assert.True(t, l.debit(0, 1+1100*ms).OK())
	assert.Equal(t, 0.0, level(1+1100*ms))
	for _, n := range []int64{-1, math.MinInt64} {
		assert.Equal(t, ReasonInvalid, l.debit(n, 1+1100*ms).Err().(*LimitError).Reason())
	}
	l.debit(math.MaxInt64, 1+1000_000*ms)
	assert.Equal(t, -10.0, level(1+1000_000*ms), "also from a full bucket")

	assert.EqualValues(t, 3+4+3*15, l.snapshot(1).Totals.Tokens, "by Debit: no more than there can be and MaxDebt at a time")

	none := at10(func(c *Config) { c.MaxDebt = 0 })
	none.debit(9, 1)
	assert.Equal(t, 0.0, level0(none))
	assert.True(t, newLimiter("test", settings{Config: DefaultConfigOf(Unlimited())}, 1).debit(1<<40, 1).OK())
	assert.False(t, newLimiter("test", settings{Config: DefaultConfigOf(Blocked())}, 1).take(0, 1, 1).OK())
}

func level0(l *Limiter) float64 { return l.snapshot(1).Level }

// A debit does not shorten what waiters owe, and those who wait are not passed.
func TestDebit_BehindWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(1), WithInitial(0), WithMaxDebt(1))
		r, err := l.Reserve(1, time.Minute)
		require.NoError(t, err)
		_, err = l.Reserve(1, time.Minute)
		require.NoError(t, err)
		l.Debit(1)
		assert.Equal(t, -2.0, l.Snapshot().Level, "deeper than MaxDebt already")
		r.Cancel()
		l.Debit(1)
		assert.Equal(t, -1.0, l.Snapshot().Level)
	})
}

func TestInitial(t *testing.T) {
	for initial, want := range map[int64]int64{Auto: 5, 0: 0, 3: 3, 5: 5} {
		l := at10(func(c *Config) { c.Initial = initial })
		assert.Equal(t, want, l.peek(0, 0, 1).Remaining())
	}
}

func TestUnlimitedAndBlocked(t *testing.T) {
	free := build(t, Unlimited())
	for _, n := range []int64{0, 1, math.MaxInt64} {
		d := free.Take(n)
		assert.True(t, d.OK())
		assert.Equal(t, int64(math.MaxInt64), d.Remaining())
		assert.Equal(t, int64(math.MaxInt64), d.Capacity())
		assert.Zero(t, d.ResetAfter())
		assert.Equal(t, Unlimited(), d.Limit())
		free.Refund(d)
	}
	assert.False(t, free.AllowN(-1))

	shut := build(t, Blocked())
	for _, n := range []int64{1, math.MaxInt64} {
		d := shut.Take(n)
		assert.False(t, d.OK())
		assert.True(t, d.Never())
		assert.Zero(t, d.Remaining())
		assert.Zero(t, d.ResetAfter())
		assert.EqualValues(t, -1, d.RetryAfter())
		assert.Equal(t, ReasonBlocked, d.Err().(*LimitError).Reason())
	}
	assert.True(t, shut.Take(0).OK())
}

func TestNilLimiterLetsEverythingPass(t *testing.T) {
	var l *Limiter
	assert.True(t, l.Allow())
	assert.True(t, l.AllowN(-1))
	for _, d := range []Decision{l.Take(5), l.TakeUpTo(1, 5), l.Peek(1), l.Debit(7), {}} {
		assert.True(t, d.OK())
		assert.NoError(t, d.Err())
		assert.Equal(t, int64(math.MaxInt64), d.Remaining())
		assert.Equal(t, int64(math.MaxInt64), d.Capacity())
		assert.Zero(t, d.RetryAfter())
		assert.Zero(t, d.ResetAfter())
		assert.False(t, d.Never())
		assert.Empty(t, d.Resource())
		assert.Empty(t, d.Policy())
		assert.Equal(t, Unlimited(), d.Limit())
		l.Refund(d)
	}
	assert.Empty(t, l.Name())
	assert.Equal(t, Layer{}, l.Layer())
	assert.NoError(t, l.Do(t.Context(), nothing))
	assert.Equal(t, Snapshot{Rate: Unlimited()}, l.Snapshot())
}

func TestNew(t *testing.T) {
	l, err := New("api", PerMinute(60), WithBurst(10), WithInitial(4), WithMaxDebt(7), WithMaxWait(time.Second), WithMaxWaiters(3))
	require.NoError(t, err)
	assert.Equal(t, "api", l.Name())
	assert.Equal(t, Config{PerMinute(60), 10, 4, time.Second, 3, 7}, l.Config())
	d := l.Take(1)
	assert.Equal(t, []any{"api", "token_bucket", PerMinute(60), int64(10), int64(3)}, []any{d.Resource(), d.Policy(), d.Limit(), d.Capacity(), d.Remaining()})

	for _, tc := range []struct {
		name string
		rate Rate
		opts []Option
		want string
	}{
		{"", PerSecond(1), nil, "ratelimit: the name is empty"},
		{"x", Rate{}, nil, "ratelimit: Rate.Tokens 0 is not positive; no tokens at all is Blocked()\nratelimit: Rate.Per 0s is not positive"},
		{"x", PerSecond(-1), nil, "ratelimit: Rate.Tokens -1 is not positive; no tokens at all is Blocked()"},
		{"x", PerSecond(1), []Option{nil, WithBurst(0)}, "ratelimit: option 0 is nil\nratelimit: Burst 0 is less than 1, and not Auto"},
		{"x", PerSecond(1), []Option{WithBurst(3), WithInitial(4)}, "ratelimit: Initial 4 is more than Burst 3"},
		{"x", PerSecond(1), []Option{WithInitial(4)}, "ratelimit: Initial 4 is more than Burst 1"},
		{"x", PerDay(1), []Option{WithBurst(1000)}, "ratelimit: Burst 1000 does not come at 1/d within 17520h0m0s; the most is 730"},
		{"x", PerSecond(1), []Option{WithMaxDebt(-2), WithMaxWait(-2), WithMaxWaiters(-1)},
			"ratelimit: MaxDebt -2 is less than 0, and not Auto\nratelimit: MaxWait -2ns is not in [0, 17520h0m0s], and not Auto\nratelimit: MaxWaiters -1 is negative"},
		{"x", PerSecond(1), []Option{WithConfig(Config{Rate: PerSecond(2), Burst: 1})}, "ratelimit: Rate 2/s of WithConfig is not the rate 1/s given to New"},
	} {
		_, err := New(tc.name, tc.rate, tc.opts...)
		assert.EqualError(t, err, tc.want)
	}

	c := with(DefaultConfig(), func(c *Config) { c.Burst = 9 })
	l, err = New("x", PerSecond(1), WithBurst(3), WithConfig(c), WithMaxDebt(4))
	require.NoError(t, err)
	assert.Equal(t, with(c, func(c *Config) { c.Rate, c.MaxDebt = PerSecond(1), 4 }), l.Config())
}
