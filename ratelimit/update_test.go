package ratelimit

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// with is c with something changed.
func with(c Config, change func(*Config)) Config {
	change(&c)
	return c
}

func TestUpdate_KeepsTheLevel(t *testing.T) {

	for _, tc := range []struct {
		name   string
		taken  int64 // of 100, at 100/s
		to     Rate
		burst  int64
		how    Level
		want   int64
		within time.Duration // until one more token is there
	}{
		{"a higher rate", 40, PerSecond(1000), 100, KeepLevel, 60, time.Millisecond},
		{"a lower rate", 40, PerMinute(1), 100, KeepLevel, 60, time.Minute},
		{"a larger burst", 40, PerSecond(100), 1000, KeepLevel, 60, 10 * time.Millisecond},
		{"a smaller burst", 40, PerSecond(100), 50, KeepLevel, 50, 0},
		{"a share of it", 40, PerSecond(100), 1000, ProportionalLevel, 600, 10 * time.Millisecond},
		{"a share of less", 40, PerSecond(100), 10, ProportionalLevel, 6, 10 * time.Millisecond},
		{"nothing left", 100, PerSecond(1), 100, KeepLevel, 0, time.Second},
		{"a share of nothing", 100, PerSecond(1), 1000, ProportionalLevel, 0, time.Second},
		{"anew", 100, PerSecond(1), 1000, ResetLevel, 1000, 0},
		{"from exact to rounded", 40, PerSecond(997), 100, KeepLevel, 60, 1_003_010},
		{"no limit at all", 100, Unlimited(), Auto, KeepLevel, 1<<63 - 1, 0},
		{"nothing any more", 0, Blocked(), Auto, KeepLevel, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLimiter("test", settings{Config: with(DefaultConfig(), func(c *Config) { c.Rate = PerSecond(100) })}, 1)
			l.take(0, tc.taken, 1)
			c := with(l.Config(), func(c *Config) { c.Rate, c.Burst = tc.to, tc.burst })
			require.NoError(t, c.Validate())
			l.mu.Lock()
			p := l.cur.Load()
			now := 1 + int64(100*time.Microsecond) // a hundredth of a token later
			l.swap(p, c, tc.how, now)
			l.mu.Unlock()
			there := l.peek(0, 0, now)
			assert.Equal(t, tc.want, there.Remaining())
			if tc.within > 0 {
				more := tc.want + 1
				assert.InDelta(t, tc.within, l.peek(0, more, now).RetryAfter(), float64(tc.within)/9, "the part of a token is kept too")
			}
		})
	}
}

func TestUpdate_KeepsADebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(10))
		l.Debit(20)
		require.Equal(t, -10.0, l.Snapshot().Level)
		for _, how := range []Level{KeepLevel, ProportionalLevel} {
			c := l.Config()
			c.Rate.Tokens *= 2
			require.NoError(t, l.UpdateLevel(c, how))
			assert.Equal(t, -10.0, l.Snapshot().Level)
		}
		assert.Equal(t, 275*time.Millisecond, l.Peek(1).RetryAfter(), "at 40/s")
	})
}

func TestUpdate_EqualConfigTouchesNothing(t *testing.T) {
	l := build(t, PerSecond(10))
	before := l.cur.Load()
	require.NoError(t, l.Update(l.Config()))
	require.NoError(t, l.UpdateLevel(l.Config(), ProportionalLevel))
	assert.Same(t, before, l.cur.Load())
	l.Take(10)
	require.NoError(t, l.UpdateLevel(l.Config(), ResetLevel))
	assert.EqualValues(t, 10, l.Peek(0).Remaining(), "but a reset is wanted whatever the Config")
}

func TestUpdate_RefusesWhatIsWrong(t *testing.T) {
	l := build(t, PerSecond(10))
	before := l.cur.Load()
	assert.EqualError(t, l.Update(Config{}), "ratelimit: Rate.Tokens 0 is not positive; no tokens at all is Blocked()\nratelimit: Rate.Per 0s is not positive")
	assert.EqualError(t, l.UpdateLevel(l.Config(), 0), "ratelimit: Level 0 is not one of keep, proportional, reset")
	assert.EqualError(t, l.UpdateLevel(l.Config(), 4), "ratelimit: Level 4 is not one of keep, proportional, reset")
	assert.Same(t, before, l.cur.Load())
	var none *Limiter
	assert.NoError(t, none.Update(DefaultConfigOf(PerSecond(1))))
	assert.Error(t, none.Update(Config{}), "a nil limiter still says what is wrong")
	assert.Equal(t, Config{}, none.Config())
}

// DefaultConfigOf is DefaultConfig with a rate.
func DefaultConfigOf(r Rate) Config { return with(DefaultConfig(), func(c *Config) { c.Rate = r }) }

// What was taken before a change is given back after it, in tokens.
func TestUpdate_RefundsOfBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(1), WithBurst(10))
		change := func(r Rate, burst int64, how Level) {
			require.NoError(t, l.UpdateLevel(with(l.Config(), func(c *Config) { c.Rate, c.Burst = r, burst }), how))
		}
		first, second := l.Take(4), l.Take(3)
		change(PerSecond(997), 20, KeepLevel)
		change(PerMinute(1), 30, KeepLevel)
		l.Refund(second)
		assert.EqualValues(t, 6, l.Peek(0).Remaining())
		l.Refund(first)
		assert.EqualValues(t, 10, l.Peek(0).Remaining())

		// What came since runs over the same brim on the other side of a change.
		change(PerSecond(1), 10, ResetLevel)
		first = l.Take(2)
		l.Take(8)
		change(PerSecond(1), 11, KeepLevel)
		change(PerSecond(1), 10, KeepLevel)
		time.Sleep(time.Second)
		l.Refund(first)
		assert.EqualValues(t, 2, l.Peek(0).Remaining(), "one that came and one of the two")

		change(PerMinute(1), 10, ResetLevel)
		gone := l.Take(10)
		change(PerMinute(2), 10, ResetLevel)
		l.Take(10)
		l.Refund(gone)
		assert.Zero(t, l.Peek(0).Remaining(), "a reset has forgotten it")

		change(PerSecond(1), 10, ResetLevel)
		gone = l.Take(10)
		change(Unlimited(), Auto, KeepLevel)
		l.Refund(gone)
		change(PerSecond(1), 10, KeepLevel)
		assert.EqualValues(t, 10, l.Peek(0).Remaining(), "where there was no limit, all was there")
		free := l.Take(1)
		change(Blocked(), Auto, KeepLevel)
		l.Refund(free)
		change(PerSecond(1), 10, KeepLevel)
		assert.Zero(t, l.Peek(0).Remaining(), "and where all was blocked, nothing was")
		l.Refund(free)
		assert.Zero(t, l.Peek(0).Remaining())
	})
}

func TestUpdate_WaitersKeepTheirPromiseOrGoSooner(t *testing.T) {
	for _, tc := range []struct {
		name string
		to   Rate
		how  Level
		want []string
	}{
		{"faster", PerSecond(10), KeepLevel, []string{"first at 550ms", "second at 650ms", "third at 750ms"}},
		{"slower", PerHour(1), KeepLevel, []string{"first at 1s", "second at 2s", "third at 3s"}},
		{"blocked", Blocked(), KeepLevel, []string{"first at 1s", "second at 2s", "third at 3s"}},
		{"unlimited", Unlimited(), KeepLevel, []string{"first at 500ms", "second at 500ms", "third at 500ms"}},
		{"proportional", PerSecond(10), ProportionalLevel, []string{"first at 550ms", "second at 650ms", "third at 750ms"}},
		{"reset", PerSecond(2), ResetLevel, []string{"first at 500ms", "second at 500ms", "third at 1s"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, j := build(t, PerSecond(1), WithBurst(2), WithInitial(0)), &journal{began: time.Now()}
				for _, who := range []string{"first", "second", "third"} {
					go func() {
						assert.NoError(t, l.Wait(t.Context()))
						j.write(who)
					}()
					synctest.Wait()
				}
				time.Sleep(500 * time.Millisecond)
				c := with(l.Config(), func(c *Config) { c.Rate, c.Initial = tc.to, Auto })
				require.NoError(t, l.UpdateLevel(c, tc.how))
				synctest.Wait()
				time.Sleep(time.Minute)
				assert.Equal(t, tc.want, j.read())
				assert.Zero(t, l.queued.Load())
			})
		})
	}
}

// A rate that changes all the time, while goroutines take and give back: no answer
// hangs, nothing is minted, and the totals are exact.
func TestUpdate_Race(t *testing.T) {
	l := build(t, PerSecond(1000), WithBurst(100), WithInitial(0))
	began := time.Now()
	var admitted, refused, refunded atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for !stop.Load() {
				d := l.Take(1)
				switch {
				case !d.OK():
					refused.Add(1)
				case rand.IntN(4) == 0:
					l.Refund(d)
					refunded.Add(1)
					admitted.Add(1)
				default:
					admitted.Add(1)
				}
			}
		})
	}
	for range 300 {
		c := l.Config()
		c.Rate = []Rate{PerSecond(1000), PerMinute(59_999), PerSecond(997), PerSecond(1)}[rand.IntN(4)]
		c.Burst = 50 + rand.Int64N(50)
		require.NoError(t, l.Update(c))
		l.Snapshot()
	}
	stop.Store(true)
	wg.Wait()
	s := l.Snapshot()
	assert.Equal(t, admitted.Load(), s.Totals.Admitted)
	assert.Equal(t, refused.Load(), s.Refused.Limited)
	assert.Equal(t, refunded.Load(), s.Totals.Refunded)
	kept := float64(admitted.Load() - refunded.Load())
	assert.LessOrEqual(t, kept+s.Level, 1000*time.Since(began).Seconds(), "the highest of the rates, from empty")
}

// Once in four years a scale ends, and the limiter goes on by itself with the next one.
func TestRenew(t *testing.T) {
	for _, r := range []Rate{PerSecond(7), PerSecond(997), PerDay(1)} {
		now := int64(1)
		l := newLimiter("test", settings{Config: with(DefaultConfigOf(r), func(c *Config) { c.Burst = 10 })}, now)
		o := newOracle(r, 10, now)
		perToken := int64(r.Per) / r.Tokens
		for range 20_000 {
			now += rand.Int64N(int64(2 * time.Hour * 24))
			o.pass(now)
			n := 1 + rand.Int64N(3)
			d := l.take(0, n, now)
			require.Equal(t, o.missing(n).Sign() <= 0, d.OK())
			if d.OK() {
				o.take(n)
			}
			if rand.IntN(10) == 0 {
				now += 11 * perToken
			}
		}
		assert.Greater(t, l.cur.Load().own.epoch, int64(maxSpan), "%v: it has been renewed", r)
	}
}
