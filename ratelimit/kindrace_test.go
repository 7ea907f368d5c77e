package ratelimit

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rush is goroutines that share a clock which each of them moves on, and ask at the
// time that they read, which is late by the time that they ask.
type rush struct {
	clock atomic.Int64
	mu    sync.Mutex
	kept  windowLedger
}

func (x *rush) run(steps int, jump int64, do func(r *rand.Rand, now int64)) {
	x.clock.Store(1)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 17))
			for range steps {
				now := x.clock.Add(r.Int64N(jump))
				if r.IntN(8) == 0 {
					runtime.Gosched()
				}
				do(r, now)
			}
		})
	}
	wg.Wait()
}

func (x *rush) keep(n, at int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.kept.take(n, at)
}

const rushSteps = 3_000

// Whatever goroutines do, no window has more than its kind promises, and the totals are
// exact. Each tells the time that a token was counted at.
func TestRush_Windows(t *testing.T) {
	const limit, width = 12, 1000
	for name, tc := range map[string]struct {
		worst int
		// make returns how to take n tokens at a time, or none, and how to give them back.
		make func() (k kind, take func(n, now int64) (Decision, int64), giveBack func(d Decision, now int64))
	}{
		"SlidingWindow": {2*limit - 1, func() (kind, func(n, now int64) (Decision, int64), func(Decision, int64)) {
			w := slidingOf(Rate{limit, width}, nil)
			return w, func(n, now int64) (Decision, int64) {
				d := w.take(0, n, now)
				w.count(0, d)
				return d, d.mark
			}, func(d Decision, _ int64) { w.Refund(d) }
		}},
		"SlidingLog": {limit, func() (kind, func(n, now int64) (Decision, int64), func(Decision, int64)) {
			l := logOf(Rate{limit, width}, nil)
			return l, func(n, now int64) (Decision, int64) {
				d := l.take(0, n, now)
				l.count(0, d)
				return d, d.mark
			}, func(d Decision, _ int64) { l.Refund(d) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			k, take, giveBack := tc.make()
			var x rush
			var admitted, tokens, refused, refunded atomic.Int64
			x.run(rushSteps, width/20, func(r *rand.Rand, now int64) {
				d, at := take(1+r.Int64N(3), now)
				if !d.OK() {
					refused.Add(1)
					return
				}
				admitted.Add(1)
				tokens.Add(d.Tokens())
				if r.IntN(3) == 0 {
					runtime.Gosched()
					giveBack(d, now)
					refunded.Add(1)
					return
				}
				x.keep(d.Tokens(), at)
			})
			assert.LessOrEqual(t, x.kept.worst(width), tc.worst)
			assert.Positive(t, refused.Load())
			assert.GreaterOrEqual(t, int64(len(x.kept.times)), x.clock.Load()/width*limit/4, "and it is used")
			totals, no := totalsOf(k)
			assert.Equal(t, TotalsSnapshot{Admitted: admitted.Load(), Tokens: tokens.Load(), Refunded: refunded.Load()}, totals)
			assert.Equal(t, refused.Load(), no.Limited)
		})
	}
}

func totalsOf(k kind) (TotalsSnapshot, RefusedSnapshot) {
	switch s := k.View().(type) {
	case WindowSnapshot:
		return s.Totals, s.Refused
	case WarmUpSnapshot:
		return s.Totals, s.Refused
	case PacerSnapshot:
		return s.Totals, s.Refused
	}
	return TotalsSnapshot{}, RefusedSnapshot{}
}

// All that is kept of a window is in its counts, and no more: nothing is lost, and
// nothing invented, when goroutines take, give back and roll.
func TestRush_SlidingWindowLosesNothing(t *testing.T) {
	const limit, width = 1 << 20, 1 << 40
	w := slidingOf(Rate{limit, width}, nil)
	var x rush
	var kept atomic.Int64
	x.run(rushSteps, 2, func(r *rand.Rand, now int64) {
		d := w.take(0, 1+r.Int64N(5), now)
		require.True(t, d.OK())
		kept.Add(d.n)
		if r.IntN(2) == 0 {
			w.giveBack(0, d, now)
			kept.Add(-d.n)
		}
	})
	assert.Equal(t, limit-kept.Load(), w.peek(0, 0, x.clock.Load()).Remaining())
	assert.Equal(t, limit-kept.Load()-1, w.take(0, 1, 1+width).Remaining(), "and in the next window")
}

func TestRush_SlidingLogLosesNothing(t *testing.T) {
	l := logOf(Rate{maxLog, time.Hour}, nil)
	var x rush
	var kept atomic.Int64
	x.run(rushSteps, 2, func(r *rand.Rand, now int64) {
		if d := l.take(0, 1+r.Int64N(5), now); d.OK() {
			kept.Add(d.n)
			if r.IntN(10) > 0 {
				runtime.Gosched()
				l.giveBack(0, d, now)
				kept.Add(-d.n)
			}
		}
		l.peek(0, 1, now)
	})
	assert.Equal(t, maxLog-kept.Load(), l.peek(0, 0, x.clock.Load()).Remaining())
}

// Updates in between: no window is lost, and nobody hangs.
func TestRush_Updates(t *testing.T) {
	w, l := slidingOf(Rate{100, 1000}, nil), logOf(Rate{100, 1000}, nil)
	u, p := warmOf(Every(time.Millisecond), time.Second, nil), pacerOf(Every(10), nil)
	var x rush
	x.run(rushSteps, 50, func(r *rand.Rand, now int64) {
		w.take(0, 1, now)
		l.Take(1)
		u.Take(1)
		p.Take(1)
		if r.IntN(50) > 0 {
			return
		}
		limit := Rate{50 + r.Int64N(100), time.Duration(500 + 500*r.Int64N(3))}
		assert.NoError(t, w.Update(windowConfigOf(limit)))
		assert.NoError(t, l.Update(SlidingLogConfig(windowConfigOf(limit))))
		assert.NoError(t, u.Update(warmConfigOf(PerSecond(1+r.Int64N(1000)), time.Duration(r.Int64N(1000)))))
		assert.NoError(t, p.Update(pacerConfigOf(limit)))
	})
}

// No two slots are closer than they may be, whoever comes at the same time and whoever
// gives his back.
func TestRush_Pacer(t *testing.T) {
	const token = 100
	p := pacerOf(Every(token), nil)
	var x rush
	x.run(rushSteps, token/2, func(r *rand.Rand, now int64) {
		d, at := p.reserve(1, now+r.Int64N(10*token), now)
		if !d.OK() {
			return
		}
		if r.IntN(4) == 0 {
			p.giveBack(0, d, now)
			return
		}
		x.keep(1, at)
	})
	assert.Equal(t, 1, x.kept.worst(token))
	assert.Greater(t, int64(len(x.kept.times)), x.clock.Load()/token/3)
}

// Burst + rate × time, and a heat that is one.
func TestRush_WarmUp(t *testing.T) {
	const burst, token, period = 5, 1000, 300_000
	u := warmOf(Every(token), period, func(c *WarmUpConfig) { c.Burst = burst })
	var x rush
	x.run(rushSteps, token/2, func(r *rand.Rand, now int64) {
		if d := u.take(0, 1+r.Int64N(2), now); d.OK() {
			x.keep(d.n, now)
		}
		share := u.cur.Load().heat.share(now)
		assert.GreaterOrEqual(t, share, 0.0)
		assert.LessOrEqual(t, share, 1.0)
	})
	for _, width := range []int64{token, 20 * token, 100 * token} {
		// A goroutine that was held up counts at the time that it read.
		assert.LessOrEqual(t, x.kept.worst(width), int(burst+width/token)+4)
	}
	assert.Equal(t, 1.0, u.cur.Load().heat.share(x.clock.Load()))
}
