package ratelimit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func strictOf(limit Rate, share float64) *StrictWindow {
	c := DefaultStrictWindowConfig()
	c.Limit, c.Share = limit, share
	return newStrictWindow("test", c, false, 1)
}

// 100 at 0.9 s and 100 at 1.1 s, at 100 a second: a window that is fixed admits all
// 200, https://github.com/envoyproxy/ratelimit/issues/269.
func TestStrictWindow_TheEdgeOfAFixedWindow(t *testing.T) {
	w := strictOf(PerSecond(100), 0.5)
	admitted := func(at int64) (n int) {
		for range 100 {
			if w.bucket.take(0, 1, 1+at).OK() {
				n++
			}
		}
		return n
	}
	assert.Equal(t, 50, admitted(900*ms))
	assert.Equal(t, 10, admitted(1100*ms))
}

// 17 every 30 s: a limiter with a burst let 32 through in 30 s,
// https://github.com/go-redis/redis_rate/issues/24.
func TestStrictWindow_17Every30Seconds(t *testing.T) {
	for _, every := range []int64{250, 750} {
		w, taken := strictOf(Rate{17, 30 * time.Second}, 0.5), &windowLedger{}
		for at := int64(0); at < 120_000*ms; at += every * ms {
			if w.bucket.take(0, 1, 1+at).OK() {
				taken.take(1, at)
			}
		}
		assert.LessOrEqual(t, taken.worst(30_000*ms), 17)
	}
}

// Whatever the limit, the window, the share, and whoever asks when, gives back, or
// waits: no window has more than the limit.
func TestStrictWindow_NeverMoreThanTheLimit(t *testing.T) {
	walks := 4_000
	if testing.Short() || raceEnabled {
		walks = 400
	}
	full := 0
	for seed := range uint64(walks) {
		r := rand.New(rand.NewPCG(9, seed))
		full += walkStrictWindow(t, r)
	}
	assert.Greater(t, full, walks/20, "and the limit is reached")
}

// walkStrictWindow returns 1 if a window had the whole limit.
func walkStrictWindow(t *testing.T, r *rand.Rand) int {
	limit := 1 + r.Int64N(60)
	width := []int64{1 + limit/10, 7, 100, 997, 1_000_000_007, int64(time.Hour)}[r.IntN(6)]
	c := DefaultStrictWindowConfig()
	c.Limit, c.Share = Rate{limit, time.Duration(width)}, []float64{minShare, 0.1, 0.5, 0.9, 1, minShare + r.Float64()*(1-minShare)}[r.IntN(6)]
	if c.Validate() != nil {
		return 0
	}
	w, kept := newStrictWindow("test", c, false, 1), &windowLedger{}
	type part struct {
		d  Decision
		at int64
	}
	var given []part
	due := int64(1)
	for now := int64(1); len(kept.times) < 3*int(limit)+10; {
		switch r.IntN(4) {
		case 0:
			now = max(now, due-1)
		case 1, 2:
			now = max(now, due)
		case 3:
			now += r.Int64N(width) * r.Int64N(2)
		}
		if len(given) > 0 && r.IntN(8) == 0 {
			i := r.IntN(len(given))
			g, b := given[i], &w.bucket.cur.Load().own
			given = slices.Delete(given, i, i+1)
			kept.giveBack(g.d.n, g.at)
			b.giveBack(g.d.n*b.unit, g.d.mark, at(now))
		}
		d := w.bucket.take(0, 1+r.Int64N(min(3, w.Peek(0).Capacity())), now)
		if d.OK() {
			kept.take(d.n, now)
			given = append(given, part{d, now})
		} else {
			due = now + int64(d.RetryAfter())
		}
	}
	worst := kept.worst(width)
	require.LessOrEqual(t, worst, int(limit), "%+v", c)
	if worst == int(limit) {
		return 1
	}
	return 0
}

func TestStrictWindow_BurstAndRate(t *testing.T) {
	for _, tc := range []struct {
		limit int64
		share float64
		burst int64
		rate  int64
	}{
		{100, 0.5, 50, 51}, {17, 0.5, 9, 9}, {1, 0.5, 1, 1}, {1, 1, 1, 1}, {100, 1, 100, 1},
		{100, 0.07, 7, 94}, {100, minShare, 1, 100}, {3, 0.34, 2, 2}, {1_000_000, minShare, 1, 1_000_000},
		{9_000_000_000, 0.000002, 18_000, 8_999_982_001},
	} {
		c := DefaultStrictWindowConfig()
		c.Limit, c.Share = PerSecond(tc.limit), tc.share
		require.NoError(t, c.Validate())
		b := c.bucket()
		assert.Equal(t, tc.burst, b.Burst, "%v of %d", tc.share, tc.limit)
		assert.Equal(t, PerSecond(tc.rate), b.Rate, "%v of %d", tc.share, tc.limit)
	}
}

func TestStrictWindow_SaysItsLimit(t *testing.T) {
	w := strictOf(PerHour(1000), 0.2)
	for range 2 {
		d := w.bucket.take(0, 200, 1)
		assert.Equal(t, []any{"test", "strict_window", PerHour(1000), int64(200)}, []any{d.Resource(), d.Policy(), d.Limit(), d.Capacity()})
	}
	assert.True(t, w.Take(201).Never())
	assert.Equal(t, PerHour(1000), w.Snapshot().Rate)
	assert.EqualValues(t, 200, w.Snapshot().Burst)

	c := w.Config()
	c.Limit = PerHour(10)
	require.NoError(t, w.Update(c))
	assert.Equal(t, c, w.Config())
	assert.Equal(t, PerHour(10), w.Peek(1).Limit())
	assert.EqualValues(t, 2, w.Peek(1).Capacity())
	c.Limit = Unlimited()
	require.NoError(t, w.Update(c))
	assert.True(t, w.AllowN(1<<40))
	assert.Equal(t, Unlimited(), w.Peek(1).Limit())
}
