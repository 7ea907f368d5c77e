package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// begun is a limiter that begins at 1 with those changes, for steps.
func begun(r Rate, change func(*Config)) *Limiter {
	c := DefaultConfigOf(r)
	if change != nil {
		change(&c)
	}
	return newLimiter("test", settings{Config: c}, 1)
}

// x/time/rate takes now before its lock. Two callers who have read the clock at 9 s and
// at 10 s, and get the lock in turn, put the time back and forth, and each time the
// second between them is paid out again: 100 of 100 are admitted where there is one
// token.
// https://github.com/golang/go/issues/71360
func TestScenario01_LateReadingsOfTheClockMintNothing(t *testing.T) {
	l := begun(PerSecond(10), func(c *Config) { c.Burst = 100 })
	const nine, ten = 1 + 9*int64(time.Second), 1 + 10*int64(time.Second)
	require.True(t, l.take(0, 99, ten).OK())
	admitted := 0
	for range 50 {
		for _, now := range []int64{nine, ten} {
			if l.take(0, 1, now).OK() {
				admitted++
			}
		}
	}
	assert.Equal(t, 1, admitted)
}

// The same with a real crowd: https://github.com/golang/go/issues/65508
func TestScenario01_ContentionMintsNothing(t *testing.T) {
	const burst, perSecond = 100, 100_000
	began := clock.Now()
	l := build(t, PerSecond(perSecond), WithBurst(burst))
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 1000 {
		wg.Go(func() {
			for range 200 {
				if l.Allow() {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, float64(admitted.Load()), burst+perSecond*float64(clock.Now()-began)/1e9)
	assert.Equal(t, admitted.Load(), l.Snapshot().Totals.Admitted)
}

// x/time/rate's Reservation.Cancel gives back each time it is called: 0, 2, 4 tokens
// after the third.
func TestScenario02_CancelTwiceMintsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(1), WithBurst(5))
		l.Take(5)
		r, err := l.Reserve(1, time.Minute)
		require.NoError(t, err)
		require.Equal(t, -1.0, l.Snapshot().Level)
		for range 3 {
			r.Cancel()
			assert.Equal(t, 0.0, l.Snapshot().Level)
		}
	})
}

// x/time/rate gives back the less the more others have reserved since, and one
// nanosecond of rounding loses a whole token.
// https://github.com/golang/go/issues/56924, https://github.com/golang/go/issues/69419,
// https://github.com/thrasher-corp/gocryptotrader/pull/2371
func TestScenario02_CancelGivesBackAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerMinute(60), WithBurst(1))
		l.Take(1)
		for range 1000 {
			time.Sleep(time.Duration(333_333_333))
			r, err := l.Reserve(1, time.Hour)
			require.NoError(t, err)
			later, err := l.Reserve(1, time.Hour)
			require.NoError(t, err)
			r.Cancel()
			later.Cancel()
			if l.Allow() {
				continue
			}
			wait := l.Peek(1).RetryAfter()
			time.Sleep(wait)
			require.True(t, l.Allow(), "after exactly %v", wait)
		}
	})
}

// x/time/rate's Wait says "would exceed context deadline" in text only, so callers
// compare strings; client-go turned a plain ctx error into a limiter's.
// https://github.com/golang/go/issues/54541, https://github.com/kubernetes/kubernetes/pull/137694
func TestScenario04_WaitErrorsHaveTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(1), WithInitial(0))
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := l.Wait(ctx)
		assert.Equal(t, began, time.Now(), "at once")
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		var limited *LimitError
		require.ErrorAs(t, err, &limited)
		assert.Equal(t, time.Second, limited.RetryAfter())
		assert.Equal(t, 0.0, l.Snapshot().Level, "the token was not taken")

		patient, hangUp := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, hangUp)
		err = l.Wait(patient)
		assert.Equal(t, context.Canceled, err)
		assert.NotErrorIs(t, err, sluice.ErrRejected)
	})
}

// uber/ratelimit has no ctx and no way to ask without waiting, so a caller who gives up
// leaves a goroutine behind that takes the token.
// https://github.com/uber-go/ratelimit/issues/73, https://github.com/uber-go/ratelimit/issues/99
func TestScenario05_ACallerWhoIsGoneTakesNothing(t *testing.T) {
	l := build(t, Every(time.Hour), WithBurst(3))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		require.Equal(t, context.Canceled, l.Wait(ctx))
		require.Equal(t, context.Canceled, l.Do(ctx, nothing))
	}
	assert.EqualValues(t, 3, l.Peek(0).Remaining())
}

// failsafe-go keeps what was reserved for a caller whose ctx ends while he waits: ten of
// them at 100 ms a permit, and the next one waits for 1.1 s.
func TestScenario05_CancelledWaitersLeaveNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, Every(100*time.Millisecond))
		l.Take(1)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { assert.Equal(t, context.Canceled, l.Wait(ctx)) })
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		began := time.Now()
		assert.NoError(t, l.Wait(t.Context()))
		assert.Equal(t, 100*time.Millisecond, time.Since(began))
	})
}

// uber/ratelimit counts by the wall clock: set back by an hour, Take sleeps for an hour.
// Here the time is monotonic; and even a reading that is an hour old waits for no more
// than the tokens that it does not know of yet.
func TestScenario07_AClockSetBackHangsNobody(t *testing.T) {
	hour := int64(time.Hour)
	l := begun(PerSecond(100), nil)
	now := 1 + 10*hour
	require.True(t, l.take(0, 100, now).OK())
	require.False(t, l.take(0, 1, now-hour).OK())
	assert.Equal(t, 10*time.Millisecond, l.take(0, 1, now).RetryAfter(), "who knows the time waits for one token")
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(100))
		l.Take(100)
		began := time.Now()
		require.NoError(t, l.Wait(t.Context()))
		assert.Equal(t, 10*time.Millisecond, time.Since(began))
	})
}

// sentinel-golang's window passed 10 000 of 10 000 calls in the 10 s after the wall
// clock was set back by 30 s, with a limit of 10/s.
func TestScenario08_AClockSetBackLimitsAllTheSame(t *testing.T) {
	l := begun(PerSecond(10), nil)
	admitted := 0
	for back := range 2 { // what a reading that is 30 s old does, and what comes after
		start := 1 + int64(60-30*back)*int64(time.Second)
		for i := range int64(10_000) {
			if l.take(0, 1, start+i*ms).OK() {
				admitted++
			}
		}
	}
	assert.LessOrEqual(t, admitted, 110)
}

// redis_rate's AllowAtMost charges the fraction of a token that it does not grant:
// asking for 5 each 150 ms at 10/s, it granted 100 of 150.
func TestScenario10_TakeUpToLosesNothing(t *testing.T) {
	l := begun(PerSecond(10), nil)
	now := int64(1)
	require.True(t, l.take(0, 10, now).OK())
	granted := int64(0)
	for range 100 { // 15 s
		now += 150 * ms
		if d := l.takeUpTo(1, 5, now); d.OK() {
			granted += d.Tokens()
		}
	}
	assert.EqualValues(t, 150, granted)
}

// redis_rate promises a retry in 100 ms for more tokens than there can ever be, for
// ever; and a review of Redis' own command found the opposite, never for what just fits.
// https://github.com/redis/redis/pull/14826
func TestScenario11_MoreThanTheBurstIsNever(t *testing.T) {
	l := begun(PerSecond(10), nil)
	assert.True(t, l.take(0, 11, 1).Never())
	assert.EqualValues(t, -1, l.take(0, 11, 1).RetryAfter())
	assert.ErrorIs(t, l.take(0, 11, 1).Err(), ErrExceedsCapacity)
	assert.EqualValues(t, 10, l.peek(0, 0, 1).Remaining(), "it is as it was")
	require.True(t, l.take(0, 10, 1).OK())
	d := l.take(0, 10, 1)
	assert.False(t, d.Never())
	assert.Equal(t, time.Second, d.RetryAfter())
	assert.NotErrorIs(t, d.Err(), ErrExceedsCapacity)
}

// Others round Retry-After down, or tell of the whole window: redis-cell, httprate,
// fastify-rate-limit, redis-gcra. Here one call passes exactly then, and not before.
// https://github.com/brandur/redis-cell/issues/56, https://github.com/go-chi/httprate/issues/47,
// https://github.com/fastify/fastify-rate-limit/issues/301, https://github.com/Losant/redis-gcra/issues/3
func TestScenario12_RetryAfterIsExact(t *testing.T) {
	l := begun(PerMinute(10), nil)
	for range 10 {
		require.True(t, l.take(0, 1, 1).OK())
	}
	wait := l.take(0, 1, 1).RetryAfter()
	assert.Equal(t, 6*time.Second, wait)
	assert.False(t, l.take(0, 1, int64(wait)).OK())
	assert.True(t, l.take(0, 1, 1+int64(wait)).OK())
	assert.False(t, l.take(0, 1, 1+int64(wait)).OK())
}

// A user who is over his own limit must not use up what all share. Symfony's compound
// limiter took from the shared one first: one client's 20 requests, one of them
// admitted, left nothing for anybody.
// https://github.com/symfony/symfony/pull/65796, https://github.com/milvus-io/milvus/issues/25597,
// https://github.com/ravangen/graphql-rate-limit/issues/129, https://github.com/boinkor-net/governor/issues/167
func TestScenario21_ARefusedUserUsesNothingUp(t *testing.T) {
	global := build(t, Every(time.Hour), WithBurst(10))
	user := func() *Limiter { return build(t, Every(time.Hour)) }
	greedy, admitted := user(), 0
	for range 20 {
		if TakeAll(1, greedy.Layer(), global.Layer()).OK() {
			admitted++
		}
	}
	assert.Equal(t, 1, admitted)
	for range 9 {
		assert.True(t, TakeAll(1, user().Layer(), global.Layer()).OK())
	}
	late := user()
	d := TakeAll(1, late.Layer(), global.Layer())
	assert.False(t, d.OK())
	assert.True(t, late.Allow(), "who was refused by all has lost nothing of his own")
}

// resilience4j waits out its timeout although it knows that there will be no permit.
// https://github.com/resilience4j/resilience4j/issues/1283, https://github.com/resilience4j/resilience4j/issues/1968,
// https://github.com/resilience4j/resilience4j/issues/2194
func TestScenario26_DoesNotWaitInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, Every(10*time.Second), WithMaxWait(5*time.Second), WithInitial(0))
		began := time.Now()
		var limited *LimitError
		require.ErrorAs(t, l.Wait(t.Context()), &limited)
		assert.Equal(t, ReasonMaxWait, limited.Reason())
		require.ErrorAs(t, l.Do(t.Context(), nothing), &limited)
		assert.Equal(t, began, time.Now())
		assert.Equal(t, 10*time.Second, limited.RetryAfter())
	})
}

// A fixed window lets 200 pass around its edge where the limit is 100/s.
// https://github.com/envoyproxy/ratelimit/issues/269
func TestScenario30_NoDoubleBurstAtAnEdge(t *testing.T) {
	l := begun(PerSecond(100), nil)
	admitted := [2]int{}
	for i, now := range []int64{900 * ms, 1100 * ms} {
		for range 100 {
			if l.take(0, 1, 1+now).OK() {
				admitted[i]++
			}
		}
	}
	assert.Equal(t, [2]int{100, 20}, admitted)
}

// Guava's burst is a fixed second, and whether it is there at the beginning has been
// asked for in either direction for ten years.
// https://github.com/google/guava/issues/1707, https://github.com/google/guava/issues/1581,
// https://github.com/google/guava/issues/3112, https://github.com/google/guava/issues/8420
func TestScenario32_BurstAndBeginningAreYours(t *testing.T) {
	for _, tc := range []struct{ burst, initial, want int64 }{
		{Auto, Auto, 10}, {50, Auto, 50}, {50, 0, 0}, {50, 7, 7}, {1, 1, 1}, {Auto, 0, 0},
	} {
		l := begun(PerSecond(10), func(c *Config) { c.Burst, c.Initial = tc.burst, tc.initial })
		assert.Equal(t, tc.want, l.peek(0, 0, 1).Remaining())
		assert.Equal(t, l.cur.Load().most, l.peek(0, 0, 1+int64(time.Hour)).Remaining(), "and an hour later it is full")
	}
}

// Rates above one a nanosecond, and such that do not divide a second: uber/ratelimit and
// others cut the time of a token to whole nanoseconds, so 600 000 000/s runs at
// 1 000 000 000/s, and failsafe-go divides by zero.
func TestScenario_HighRatesAreNotRounded(t *testing.T) {
	for _, perSecond := range []int64{3_000_000, 7_000_000, 600_000_000, 999_999_937, 2_000_000_000, 10_000_000_000} {
		l := begun(PerSecond(perSecond), func(c *Config) { c.Initial = 0 })
		granted := int64(0)
		for now := int64(0); now <= int64(time.Second); now += int64(time.Millisecond) / 4 {
			granted += l.takeUpTo(0, perSecond, 1+now).Tokens()
		}
		assert.LessOrEqual(t, granted, perSecond)
		assert.GreaterOrEqual(t, granted, perSecond-1, "all of a second's tokens, but for what 999 999 937/s is rounded by")
	}
}
