package ratelimit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// storeSecond is a second in a store's time.
const storeSecond = int64(time.Second / time.Microsecond)

func TestQuota_Validate(t *testing.T) {
	for _, c := range []struct {
		quota Quota
		want  string
	}{
		{Quota{PerSecond(100), 100}, ""},
		{Quota{PerDay(1_000_000), 1_000_000}, ""},
		{Quota{PerSecond(999_999), 2_000_000_000}, ""},
		{Quota{PerSecond(10_000_000_000), 1 << 51}, ""},
		{Quota{Rate{1, time.Nanosecond}, 1}, "ratelimit: Rate.Per 1ns is not whole microseconds, which a store counts in"},
		{Quota{PerSecond(1), 0}, "ratelimit: Burst 0 is less than 1"},
		{Quota{PerSecond(1), -1}, "ratelimit: Burst -1 is less than 1"},
		{Quota{PerDay(7), 30_000}, "ratelimit: Burst 30000 at 7/d is more than the 26062 that a store can count"},
		{Quota{Unlimited(), 1}, "ratelimit: a store keeps no bucket for the rate unlimited\nratelimit: Rate.Per -1ns is not whole microseconds, which a store counts in"},
		{Quota{Blocked(), 1}, "ratelimit: a store keeps no bucket for the rate blocked\nratelimit: Rate.Per -2ns is not whole microseconds, which a store counts in"},
		{Quota{}, "ratelimit: Rate.Tokens 0 is not positive; no tokens at all is Blocked()\nratelimit: Rate.Per 0s is not positive"},
		{Quota{Rate{1<<51 + 1, 366 * 24 * time.Hour}, 1}, "ratelimit: Rate.Tokens 2251799813685249 is more than the 2251799813685248 that a store can count"},
	} {
		err := c.quota.Validate()
		if c.want == "" {
			assert.NoError(t, err, "%v", c.quota)
			continue
		}
		assert.EqualError(t, err, c.want, "%v", c.quota)
	}
}

func TestAsk_Validate(t *testing.T) {
	q := Quota{PerSecond(1), 10}
	assert.NoError(t, Ask{}.Validate(q))
	assert.NoError(t, Ask{10, 100, time.Second}.Validate(q))
	assert.EqualError(t, Ask{Min: -1}.Validate(q), "ratelimit: Ask.Min -1 is not in [0, Max 0]")
	assert.EqualError(t, Ask{Min: 11, Max: 10, MaxWait: -1}.Validate(q),
		"ratelimit: Ask.Min 11 is not in [0, Max 10]\nratelimit: Ask.Min 11 is more than Burst 10\nratelimit: Ask.MaxWait -1ns is negative")
}

// A step is an Ask at a time, and what comes of it.
type storeStep struct {
	at        int64
	ask       Ask
	tokens    int64
	remaining int64
	wait      time.Duration // Wait if granted, else RetryAfter
	reset     time.Duration
}

func playStore(t *testing.T, l *storeLevel, q Quota, steps []storeStep) {
	t.Helper()
	for i, s := range steps {
		l.advance(q, s.at)
		g := l.take(q, s.ask)
		assert.Equalf(t, s.tokens, g.Tokens, "step %d: tokens", i)
		assert.Equalf(t, s.remaining, g.Remaining, "step %d: remaining", i)
		assert.Equalf(t, s.wait, g.Wait+g.RetryAfter, "step %d: wait", i)
		assert.Equalf(t, s.reset, g.ResetAfter, "step %d: reset", i)
	}
}

func TestStoreLevel_Steps(t *testing.T) {
	const ms = storeSecond / 1000
	playStore(t, new(storeLevel), Quota{PerSecond(10), 10}, []storeStep{
		{0, Ask{Min: 4, Max: 4}, 4, 6, 0, 400 * time.Millisecond},
		{0, Ask{Min: 7, Max: 7}, 0, 6, 100 * time.Millisecond, 400 * time.Millisecond},
		{0, Ask{Min: 1, Max: 100}, 6, 0, 0, time.Second},
		{0, Ask{Min: 0, Max: 100}, 0, 0, 0, time.Second},
		{99 * ms, Ask{Min: 1, Max: 1}, 0, 0, time.Millisecond, 901 * time.Millisecond},
		{100 * ms, Ask{Min: 1, Max: 1}, 1, 0, 0, time.Second},
		{100 * ms, Ask{Min: 2, Max: 5, MaxWait: 199 * time.Millisecond}, 0, 0, 200 * time.Millisecond, time.Second},
		{100 * ms, Ask{Min: 2, Max: 5, MaxWait: 200 * time.Millisecond}, 2, 0, 200 * time.Millisecond, 1200 * time.Millisecond},
		{300 * ms, Ask{}, 0, 0, 0, time.Second},
		{time.Hour.Microseconds(), Ask{}, 0, 10, 0, 0},
	})
}

// 1 token in 1.9 s, asked for every 100 ms: at most 6 in 10 s. A store that forgets
// the key after a second let 9 pass.
func TestStoreLevel_ForgetsNotBeforeItIsFull(t *testing.T) {
	q := Quota{Every(1900 * time.Millisecond), 1}
	var l storeLevel
	granted := int64(0)
	for now := int64(0); now < 10*storeSecond; now += storeSecond / 10 {
		if l.gain > 0 && l.fullAt(q) <= now {
			l = storeLevel{} // forgotten as soon as it may be
		}
		l.advance(q, now)
		granted += l.take(q, Ask{Min: 1, Max: 1}).Tokens
	}
	assert.Equal(t, int64(6), granted)
}

func TestStoreLevel_SetBackClock(t *testing.T) {
	q := Quota{PerSecond(10), 10}
	const far = 1000 * storeSecond
	var l storeLevel
	playStore(t, &l, q, []storeStep{
		{far, Ask{Min: 10, Max: 10}, 10, 0, 0, time.Second},
		{far - 600*storeSecond, Ask{Min: 1, Max: 1}, 0, 0, 100 * time.Millisecond, time.Second}, // nothing lost, nothing won
		{far - 600*storeSecond + storeSecond/10, Ask{Min: 1, Max: 1}, 1, 0, 0, time.Second},     // and it goes on at once
		{far, Ask{Min: 10, Max: 11}, 10, 0, 0, time.Second},                                     // set forward: full
	})
}

// What the oracle says, in every answer, for rates that come out in no whole number
// of units, and with the key forgotten whenever it may be.
func TestStoreLevel_Oracle(t *testing.T) {
	steps := 20_000
	if testing.Short() {
		steps = 2_000
	}
	for i, rate := range []Rate{PerSecond(10), PerSecond(7), PerSecond(3_000_000), PerDay(1), PerSecond(999), Rate{3, 7 * time.Microsecond}} {
		t.Run(rate.String(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(7, uint64(i)))
			q := Quota{rate, 1 + r.Int64N(20)}
			o := newOracle(rate, q.Burst, 0)
			var l storeLevel
			now, perToken := int64(0), max(1, rate.Per.Microseconds()/rate.Tokens)
			due := now
			for range steps {
				switch r.IntN(4) {
				case 0:
					now += r.Int64N(2 * perToken)
				case 1:
					now = max(now, due)
				case 2:
					now = max(now, due-1)
				case 3:
					now += r.Int64N(3*q.Burst*perToken) * r.Int64N(2)
				}
				if now > 1<<52 {
					break // a store's time ends in 2112
				}
				o.pass(now * 1000)
				if l.gain > 0 && l.fullAt(q) <= now {
					l = storeLevel{}
				}
				l.advance(q, now)
				least := r.Int64N(q.Burst + 1)
				g := l.take(q, Ask{Min: least, Max: least + r.Int64N(3)})
				if missing := o.missing(least); missing.Sign() > 0 {
					require.Zero(t, g.Tokens)
					require.Equal(t, (o.wait(missing)+999)/1000*1000, int64(g.RetryAfter))
				} else {
					require.GreaterOrEqual(t, g.Tokens, least)
					require.Zero(t, g.RetryAfter)
				}
				o.take(g.Tokens)
				require.GreaterOrEqual(t, o.level.Sign(), 0)
				require.Equal(t, o.remaining(), g.Remaining)
				require.Equal(t, (o.wait(o.parts(0).Sub(o.burst, o.level))+999)/1000*1000, int64(g.ResetAfter))
				due = now + max(g.RetryAfter, g.ResetAfter).Microseconds()
			}
		})
	}
}

func TestStoreLevel_Refund(t *testing.T) {
	q := Quota{PerSecond(10), 10}
	unit, _, full := q.Units()
	take := func(l *storeLevel, n, now int64) Receipt {
		l.advance(q, now)
		g := l.take(q, Ask{Min: n, Max: n})
		require.Equal(t, n, g.Tokens)
		return g.Receipt
	}

	var l storeLevel
	r := take(&l, 5, 0)
	l.refund(q, r, 5)
	assert.Equal(t, full, l.level, "at once, all of it")
	l.refund(q, r, 5)
	assert.Equal(t, full, l.level, "and never above the brim")

	l = storeLevel{}
	r = take(&l, 5, 0)
	l.advance(q, storeSecond/5)
	l.refund(q, r, 3)
	assert.Equal(t, full, l.level, "two have come by themselves: three are missing")
	l.refund(q, r, 2)
	assert.Equal(t, full, l.level)

	l = storeLevel{}
	r = take(&l, 5, 0)
	take(&l, 5, storeSecond/5) // two of the five were there again, and more was taken
	l.refund(q, r, 5)
	assert.Equal(t, 5*unit, l.level, "what would be there if the first had never been")

	l = storeLevel{}
	r = take(&l, 5, 0)
	take(&l, 5, storeSecond)
	l.refund(q, r, 5)
	assert.Equal(t, 5*unit, l.level, "the bucket was full in between: its receipt is worth nothing")

	l = storeLevel{}
	r = take(&l, 5, 0)
	l = storeLevel{} // lost
	take(&l, 5, 1)
	l.refund(q, r, 5)
	assert.Equal(t, 5*unit, l.level, "so is one of a key that was lost")

	l = storeLevel{}
	r = take(&l, 5, 10*storeSecond)
	take(&l, 5, 9*storeSecond)
	l.refund(q, r, 5)
	assert.Zero(t, l.level, "and one of before the clock was set back")
	l.refund(q, r, -5)
	assert.Zero(t, l.level)
}

func TestStoreLevel_Debit(t *testing.T) {
	q := Quota{PerSecond(10), 10}
	unit, _, full := q.Units()
	var l storeLevel
	l.advance(q, 0)
	l.debit(q, 3)
	assert.Equal(t, 7*unit, l.level)
	l.debit(q, 9)
	assert.Equal(t, -2*unit, l.level, "below 0")
	l.debit(q, 1<<60)
	assert.Equal(t, -full, l.level, "but no more than the burst")
	playStore(t, &l, q, []storeStep{
		{0, Ask{Min: 1, Max: 1}, 0, 0, 1100 * time.Millisecond, 2 * time.Second},
		{0, Ask{Min: 1, Max: 1, MaxWait: time.Hour}, 1, 0, 1100 * time.Millisecond, 2100 * time.Millisecond},
	})
	l.debit(q, 1)
	assert.Equal(t, -11*unit, l.level, "a debit makes a longer queue no longer")
}

// An operator changes the rate: tokens that are there stay, and none appears.
func TestStoreLevel_AnotherQuotaKeepsTheLevel(t *testing.T) {
	for _, c := range []struct {
		name   string
		q      Quota
		tokens int64
	}{
		{"faster", Quota{PerSecond(1000), 10}, 4},
		{"slower", Quota{PerMinute(7), 10}, 4},
		{"larger", Quota{PerSecond(10), 1000}, 4},
		{"smaller", Quota{PerSecond(10), 2}, 2},
	} {
		q := Quota{PerSecond(10), 10}
		var l storeLevel
		l.advance(q, 0)
		r := l.take(q, Ask{Min: 6, Max: 6}).Receipt
		l.advance(c.q, 0)
		unit, _, _ := c.q.Units()
		assert.Equal(t, c.tokens*unit, l.level, c.name)
		if c.q.Rate != q.Rate {
			l.refund(c.q, r, 6)
			assert.Equal(t, c.tokens*unit, l.level, "%s: a receipt is for the rate it was given at", c.name)
		}
	}
	q := Quota{PerSecond(10), 10}
	var l storeLevel
	l.advance(q, 0)
	l.take(q, Ask{Min: 10, Max: 10})
	l.advance(Quota{PerSecond(10), 10}, storeSecond/2)
	l.advance(Quota{PerSecond(1000), 10}, storeSecond/2)
	assert.Equal(t, int64(5*1000), l.level, "what came before came at the old rate")
}

// Whatever is taken and given back, in no time are more tokens kept than the burst
// and what came in it.
func TestStoreLevel_RefundsMintNothing(t *testing.T) {
	traces := 3_000
	if testing.Short() {
		traces = 300
	}
	for i := range traces {
		r := rand.New(rand.NewPCG(11, uint64(i)))
		q := Quota{Rate{1 + r.Int64N(3), time.Duration(1+r.Int64N(12)) * time.Microsecond}, 1 + r.Int64N(10)}
		type taken struct {
			n, at   int64
			receipt Receipt
		}
		var l storeLevel
		var all []taken
		now := int64(0)
		for range 40 {
			now += r.Int64N(15) * r.Int64N(3)
			if l.gain > 0 && l.fullAt(q) <= now && r.IntN(2) == 0 {
				l = storeLevel{}
			}
			l.advance(q, now)
			if i := r.IntN(2 * (len(all) + 1)); i < len(all) {
				n := min(all[i].n, 1+r.Int64N(q.Burst))
				l.refund(q, all[i].receipt, n)
				all[i].n -= n
				continue
			}
			n := 1 + r.Int64N(q.Burst)
			if g := l.take(q, Ask{Min: n, Max: n}); g.Tokens > 0 {
				all = append(all, taken{g.Tokens, now, g.Receipt})
			}
		}
		unit, gain, full := q.Units()
		for _, from := range all {
			for _, to := range all {
				sum := int64(0)
				for _, e := range all {
					if from.at <= e.at && e.at <= to.at {
						sum += e.n
					}
				}
				if to.at >= from.at {
					require.LessOrEqual(t, sum*unit, full+(to.at-from.at)*gain, "trace %d from %d to %d at %v", i, from.at, to.at, q)
				}
			}
		}
	}
}
