package ratelimit

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A heatModel gets warmer and colder as it goes from one event to the next.
type heatModel struct {
	period, cold, slack int64
	heat, demand, last  int64 // demand is up to when it is in demand
}

func (m *heatModel) pass(now int64) {
	if up := min(now, m.demand) - m.last; up > 0 {
		m.heat = min(m.period, m.heat+up)
		m.last += up
	}
	m.heat = max(0, m.heat-(now-m.last))
	m.last = now
}

func (m *heatModel) ask(n int64, refused bool, now int64) {
	m.pass(now)
	if m.demand-now > m.slack/2 {
		return // plenty
	}
	from := max(m.demand, now-m.slack)
	if refused {
		from = max(m.demand, now)
	}
	m.demand = max(m.demand, min(from+n*m.cold, now+max(m.slack, n*m.cold)))
}

// The line that turns is where the model has gone step by step.
func TestHeat_Model(t *testing.T) {
	walks := 500
	if testing.Short() {
		walks = 100
	}
	for seed := range uint64(walks) {
		r := rand.New(rand.NewPCG(13, seed))
		var w heat
		w.init(r.Int64N(10_000), 1+r.Int64N(1000))
		now := 1 + r.Int64N(1000)
		w.begin(r.Float64(), now)
		m := &heatModel{period: w.period, cold: w.cold, slack: w.slack, heat: w.at(now), demand: now, last: now}
		for range 300 {
			now += r.Int64N(w.cold) * r.Int64N(4)
			if r.IntN(30) == 0 {
				now += r.Int64N(20_000)
			}
			if r.IntN(2) == 0 {
				n, refused := 1+r.Int64N(3), r.IntN(4) == 0
				w.ask(n, refused, now)
				m.ask(n, refused, now)
			}
			m.pass(now)
			require.Equal(t, m.heat, w.at(now), "walk %d at %d", seed, now)
		}
	}
}

// often calls f every so often from one time to another, and returns when it ended.
func often(from, to, every int64, f func(now int64)) int64 {
	for ; from < to; from += every {
		f(from)
	}
	return from
}

// asks is a WarmUp of 100/s and 10 s, which takes 30 ms a token when cold.
func asks(u *WarmUp, from, to, every int64) int64 {
	return often(from, to, every, func(now int64) { u.take(0, 1, now) })
}

func TestHeat_CoolsInTheTimeThatItTookToGetWarm(t *testing.T) {
	for name, every := range map[string]int64{"nothing is asked for": 1 << 40, "a fifth of what it gives when cold": 150 * ms, "two thirds of it": 45 * ms} {
		u := warmOf(PerSecond(100), 10*time.Second, nil)
		now := asks(u, 1, 20_000*ms, ms)
		share := func(now int64) float64 { return u.cur.Load().heat.share(now) }
		require.Equal(t, 1.0, share(now))
		now = asks(u, now, 22_500*ms, every)
		before := share(22_500 * ms)
		assert.InDelta(t, 0.75+0.075, before, 0.075, "%s: it is found out soon", name)
		now = asks(u, now, 27_500*ms, every)
		assert.InDelta(t, before-0.5, share(27_500*ms), 1e-6, name)
		asks(u, now, 31_500*ms, every)
		assert.Zero(t, share(31_500*ms), name)
	}
}

func TestHeat_GetsWarmUnderDemandHoweverItComes(t *testing.T) {
	r := rand.New(rand.NewPCG(14, 0))
	for name, next := range map[string]func() int64{
		"a little more than it gives when cold": func() int64 { return 29 * ms },
		"half of the rate, at random":           func() int64 { return int64(r.ExpFloat64() * float64(20*ms)) },
		"the rate, at random":                   func() int64 { return int64(r.ExpFloat64() * float64(10*ms)) },
		"in bursts of 20":                       func() int64 { return int64(r.IntN(20)/19) * 300 * ms },
	} {
		u := warmOf(PerSecond(100), 10*time.Second, nil)
		now := int64(1)
		for now < 120_000*ms {
			u.take(0, 1, now)
			now += next()
		}
		assert.Greater(t, u.cur.Load().heat.share(now), 0.9, name)
	}
}

func TestHeat_StaysColdWithoutDemand(t *testing.T) {
	r := rand.New(rand.NewPCG(15, 0))
	for name, next := range map[string]func() int64{
		"a little less than it gives when cold":           func() int64 { return 31 * ms },
		"half of what it gives when cold, at random":      func() int64 { return int64(r.ExpFloat64() * float64(60*ms)) },
		"a burst now and then":                            func() int64 { return int64(r.IntN(100)/99) * 3000 * ms },
		"a call an hour, each of which is given its time": func() int64 { return 3600_000 * ms },
	} {
		u := warmOf(PerSecond(100), 10*time.Second, nil)
		now := int64(1)
		for range 4000 {
			u.take(0, 1, now)
			now += next()
			require.Less(t, u.cur.Load().heat.share(now), 0.12, name)
		}
	}
}

// Calls that are refused further in are none: when a breaker within lets calls through
// again after an outage, what it protects is cold.
func TestHeat_CallsThatAreNotMadeDoNotWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, err := NewWarmUp("test", PerSecond(100), 10*time.Second)
		require.NoError(t, err)
		open := func(context.Context) error { return sluice.ErrRejected }
		for range 20_000 {
			time.Sleep(time.Millisecond)
			_ = u.Do(t.Context(), open)
		}
		assert.Less(t, u.Snapshot().Heat, 0.01)
		assert.Equal(t, 10.0, u.Snapshot().Level, "what it cost was given back, with what it cost more")
		for range 20_000 {
			time.Sleep(time.Millisecond)
			_ = u.Do(t.Context(), nothing)
			u.Refund(u.Peek(1)) // who took nothing has not asked either
		}
		assert.Equal(t, 1.0, u.Snapshot().Heat)
	})
}

// One caller who waits is demand for all of the time that he waits: from cold to warm
// he gets what the curve gives.
func TestHeat_WaitersWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, callers := range []int{1, 7} {
			u, err := NewWarmUp("test", PerSecond(100), 10*time.Second, WithBurst(1))
			require.NoError(t, err)
			time.Sleep(time.Hour)
			ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, errors.New("enough"))
			done := make(chan int)
			for range callers {
				go func() {
					n := 0
					for u.Wait(ctx) == nil {
						n++
					}
					done <- n
				}()
			}
			total := 0
			for range callers {
				total += <-done
			}
			cancel()
			assert.InDelta(t, 500, total, 8, "%d callers", callers)
		}
	})
}
