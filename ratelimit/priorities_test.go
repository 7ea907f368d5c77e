package ratelimit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A mix is who asks how often, as shares of the rate.
type mix [classes]float64

// A tale is what became of a simulated load.
type tale struct {
	asked, admitted [classes]float64
	inversions      int // refused, although a less important call would have been admitted
}

func (x tale) success(p sluice.Priority) float64 {
	return x.admitted[classOf(p)] / x.asked[classOf(p)]
}

// simulate sends calls at random (Poisson) for so long a time. Nothing takes real
// time.
func simulate(c PrioritiesConfig, load mix, r *rand.Rand, during time.Duration) (x tale) {
	now := int64(1)
	q := newPriorities("test", c, true, now)
	perNano := float64(c.Rate.Tokens) / float64(c.Rate.Per)
	sum := load[0] + load[1] + load[2]
	for end := now + int64(during); now < end; {
		now += int64(r.ExpFloat64() / (perNano * sum))
		class := 0
		for u := r.Float64() * sum; class < classes-1 && u >= load[class]; class++ {
			u -= load[class]
		}
		x.asked[class]++
		if q.take(uint64(class), 1, now).OK() {
			x.admitted[class]++
			continue
		}
		for less := class + 1; less < classes; less++ {
			// What is assured to the less important one is its own, so it does not count.
			own := &q.cur.Load().buckets[less]
			if level, _ := own.level(now); (!own.inUse() || level < own.unit) && q.peek(uint64(less), 1, now).OK() {
				x.inversions++
			}
		}
	}
	return x
}

func prioritiesOf(r Rate) PrioritiesConfig {
	c := DefaultPrioritiesConfig()
	c.Rate = r
	return c
}

// The users' case: half of the traffic is in the middle, and 1.5 times as much comes as
// can be served. The most important calls do not notice, the least important ones go
// first, and nothing stays unused.
func TestPriorities_OverloadShedsFromBelow(t *testing.T) {
	for _, c := range []PrioritiesConfig{
		prioritiesOf(PerSecond(1000)),
		prioritiesOf(PerSecond(100)),
		prioritiesOf(PerMinute(60_000)),
		func() PrioritiesConfig { c := prioritiesOf(PerSecond(1000)); c.Burst = 100; return c }(),
	} {
		during := 200 * time.Second
		x := simulate(c, mix{0.45, 0.75, 0.30}, rand.New(rand.NewPCG(1, 2)), during)
		assert.GreaterOrEqual(t, x.success(sluice.P0), 0.999, "%v", c.Rate)
		assert.Greater(t, x.success(sluice.P1), x.success(sluice.P2)+0.2, "%v", c.Rate)
		assert.Zero(t, x.inversions, "%v", c.Rate)
		all := x.admitted[0] + x.admitted[1] + x.admitted[2]
		rate := float64(c.Rate.Tokens) / c.Rate.Per.Seconds()
		assert.InDelta(t, rate*during.Seconds()+float64(c.burst()), all, float64(c.burst())+rate, "%v: all of the rate is used, and no more", c.Rate)
		assert.GreaterOrEqual(t, x.admitted[2], 0.05*rate*during.Seconds(), "%v: the least important do not starve", c.Rate)
	}
}

func TestPriorities_WhatIsNotUsedIsLent(t *testing.T) {
	c := prioritiesOf(PerSecond(1000))
	during := 50 * time.Second
	for class, load := range []mix{{2, 0, 0}, {0, 2, 0}, {0, 0, 2}} {
		x := simulate(c, load, rand.New(rand.NewPCG(3, 4)), during)
		assert.InDelta(t, 1000*during.Seconds(), x.admitted[class], 2000, "a class that comes alone has nearly all")
	}
	x := simulate(c, mix{1.5, 0, 0.04}, rand.New(rand.NewPCG(5, 6)), during)
	assert.EqualValues(t, 1, x.success(sluice.P2), "who asks for less than what is his gets all of it")
	assert.InDelta(t, 960*during.Seconds(), x.admitted[0], 2000)
}

// The starvation bound: calls that come no faster than what their class is assured, with
// a burst of what it keeps, are all admitted, whatever the others do. The bound is a
// bucket of its own, that nobody else takes from.
func TestPriorities_NobodyStarves(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 10
	}
	r := rand.New(rand.NewPCG(7, 8))
	served := 0
	for range rounds {
		c := prioritiesOf(Rate{1 + r.Int64N(1000), time.Duration(1 + r.Int64N(1e9))})
		c.Burst = 10 + r.Int64N(500)
		c.Keep = r.Float64()
		rest := 1.0
		for i := range c.Classes {
			c.Classes[i].Assured = rest * r.Float64()
			rest -= c.Classes[i].Assured
		}
		if c.Validate() != nil {
			continue
		}
		now, class := int64(1), r.IntN(classes)
		q := newPriorities("test", c, true, now)
		own := &q.cur.Load().buckets[class]
		if !own.inUse() {
			continue
		}
		bound := bucket{scale: own.scale, burst: own.share(c.Keep)}
		if bound.burst < own.unit {
			bound.burst = own.burst // it lends nothing
		}
		bound.used.Store(-bound.burst)
		gap := int64(c.Rate.Per)/c.Rate.Tokens + 1
		for range 5_000 {
			now += r.Int64N(gap * 2)
			for other := range classes { // they grab whatever they can
				for other != class && q.take(uint64(other), 1, now).OK() {
				}
			}
			if lack, _, ok := bound.take(1, 0, now); lack <= 0 {
				require.True(t, ok)
				require.True(t, q.take(uint64(class), 1, now).OK(), "%+v", c)
				served++
			}
		}
	}
	assert.Greater(t, served, rounds*100)
}

// All together never take more than burst + rate × time.
func TestPriorities_TogetherKeepTheRate(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 50 {
		c := prioritiesOf(Every(10))
		c.Burst = 30 + r.Int64N(100)
		c.Keep = r.Float64()
		q := newPriorities("test", c, true, 1)
		now, taken := int64(1), int64(0)
		for range 2_000 {
			now += r.Int64N(30)
			n := 1 + r.Int64N(3)
			if d := q.take(uint64(r.IntN(classes)), n, now); d.OK() {
				if taken += n; r.IntN(5) == 0 {
					q.giveBack(0, d, 0)
					taken -= n
				}
			}
			require.LessOrEqual(t, 10*(taken-c.Burst), now-1)
		}
	}
}

func TestPriorities_Steps(t *testing.T) {
	c := prioritiesOf(PerSecond(100))
	c.Classes = [classes]PriorityClass{{Assured: 0.2}, {Assured: 0.1, Floor: 0.1}, {Assured: 0.1, Floor: 0.5}}
	q := newPriorities("test", c, true, 1) // 20, 10, 10 of their own, 60 shared
	p := q.cur.Load()
	levels := func(now int64) (all [classes + 1]int64) {
		for i := range p.buckets {
			level, _ := p.buckets[i].level(now)
			all[i] = level / p.buckets[i].unit
		}
		return all
	}
	take := func(class uint64, times int) {
		t.Helper()
		for range times {
			require.True(t, q.take(class, 1, 1).OK())
		}
	}
	refuse := func(class uint64, after time.Duration) {
		t.Helper()
		d := q.take(class, 1, 1)
		require.False(t, d.OK())
		assert.Equal(t, after, d.RetryAfter())
		assert.Equal(t, ReasonLimited, d.reason())
		assert.Equal(t, "priorities", d.Policy())
		assert.False(t, q.peek(class, 1, 1+int64(after)-1).OK())
		assert.True(t, q.peek(class, 1, 1+int64(after)).OK())
	}
	take(0, 30) // in plenty, from what all share
	assert.Equal(t, [...]int64{20, 10, 10, 30}, levels(1))
	take(2, 10)
	assert.Equal(t, [...]int64{20, 10, 0, 30}, levels(1), "then its own")
	take(2, 3)
	assert.Equal(t, [...]int64{18, 9, 0, 30}, levels(1), "then what others lend, the least important first")
	refuse(2, 1_000_000_000/60+1) // what comes first is shared: 60/s
	take(1, 9+24+0)
	assert.Equal(t, [...]int64{18, 0, 0, 6}, levels(1), "its own, and what is shared down to its floor")
	refuse(1, 1_000_000_000/60+1)
	take(0, 18+6)
	assert.Equal(t, [...]int64{0, 0, 0, 0}, levels(1), "and only P0 takes the last")
	refuse(0, 1_000_000_000/60+1)
	assert.True(t, q.peek(2, 1, 1+100*ms).OK(), "what is assured to it comes back first")
	assert.EqualValues(t, 0, q.peek(2, 0, 1).Remaining())
}

func TestPriorities_OddNumbers(t *testing.T) {
	q := newPriorities("test", prioritiesOf(PerSecond(100)), true, 1)
	assert.Equal(t, ReasonInvalid, q.take(0, -1, 1).Err().(*LimitError).Reason())
	never := q.take(0, 66, 1)
	assert.True(t, never.Never())
	assert.EqualValues(t, 65, never.Capacity(), "the most of any of its ways")
	assert.EqualValues(t, 45, q.take(2, math.MaxInt64, 1).Capacity())
	assert.True(t, q.take(0, 0, 1).OK())
	assert.True(t, q.take(0, 65, 1).OK())
	for p, class := range map[sluice.Priority]int{math.MinInt8: 0, sluice.P0: 0, sluice.P1: 1, sluice.P2: 2, math.MaxInt8: 2} {
		assert.Equal(t, class, classOf(p))
	}

	free := newPriorities("test", prioritiesOf(Unlimited()), true, 1)
	assert.True(t, free.take(2, math.MaxInt64, 1).OK())
	shut := newPriorities("test", prioritiesOf(Blocked()), true, 1)
	assert.Equal(t, ReasonBlocked, shut.take(0, 1, 1).Err().(*LimitError).Reason())

	c := prioritiesOf(PerSecond(10))
	c.Classes = [classes]PriorityClass{{Assured: 0.9}, {Assured: 0.1}, {}}
	c.Burst = 1 + 1
	tight := newPriorities("test", c, true, 1)
	assert.True(t, tight.take(1, 1, 1).OK())
	assert.Equal(t, ReasonBlocked, tight.take(2, 1, 1).Err().(*LimitError).Reason(), "all is assured to others, and they have nothing to lend")

	var none *Priorities
	assert.True(t, none.Allow(sluice.P2))
	assert.True(t, none.Peek(sluice.P2, 7).OK())
	none.Refund(none.Take(sluice.P0, 1))
	assert.Empty(t, none.Name())
	assert.NoError(t, none.Do(t.Context(), nothing))
	assert.Equal(t, Layer{}, none.Layer(sluice.P0))
	assert.NoError(t, none.Update(prioritiesOf(PerSecond(10))))
	assert.Equal(t, PrioritiesConfig{}, none.Config())
	assert.Equal(t, PrioritiesSnapshot{Rate: Unlimited()}, none.Snapshot())
}
