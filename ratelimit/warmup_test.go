package ratelimit

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func warmOf(rate Rate, period time.Duration, change func(*WarmUpConfig)) *WarmUp {
	c := DefaultWarmUpConfig()
	c.Rate, c.Period = rate, period
	if change != nil {
		change(&c)
	}
	return newWarmUp("test", c, true, 1)
}

func burst1(c *WarmUpConfig) { c.Burst = 1 }

// A warmOracle integrates what a WarmUp gives under steady demand in small steps: it
// gets warmer with each, and gives tokens at the rate of its heat.
type warmOracle struct {
	rate, factor float64       // in tokens a second
	period       time.Duration // to get warm
	heat, given  float64
}

func (o *warmOracle) run(d time.Duration) (given float64) {
	const step = 100 * time.Microsecond
	before := o.given
	for t := time.Duration(0); t < d; t += step {
		middle := min(1, o.heat+step.Seconds()/2/o.period.Seconds())
		o.given += step.Seconds() * o.rate / math.Sqrt(o.factor*o.factor-(o.factor*o.factor-1)*middle)
		o.heat = min(1, o.heat+step.Seconds()/o.period.Seconds())
	}
	return o.given - before
}

// demand asks for a token whenever there may be one, from one time to another, and
// returns how many it got.
func demand(u *WarmUp, from, to int64) (got int) {
	for now := from; now < to; {
		d := u.take(0, 1, now)
		if d.OK() {
			got++
		}
		now += int64(d.RetryAfter())
	}
	return got
}

func TestWarmUp_Curve(t *testing.T) {
	for _, tc := range []struct {
		rate   int64
		factor float64
		period time.Duration
	}{
		{100, 3, 10 * time.Second}, {1000, 3, 10 * time.Second}, {1000, 2, 60 * time.Second}, {10_000, 10, 5 * time.Second}, {100_000, 3, time.Second}, {3000, 1.5, time.Second},
	} {
		u := warmOf(PerSecond(tc.rate), tc.period, func(c *WarmUpConfig) { c.ColdFactor, c.Burst = tc.factor, 1 })
		o := &warmOracle{rate: float64(tc.rate), factor: tc.factor, period: tc.period}
		const parts = 20
		total := 0
		for i := range int64(parts + 5) {
			part := int64(tc.period) / parts
			got, want := demand(u, 1+i*part, 1+(i+1)*part), o.run(time.Duration(part))
			assert.InDelta(t, want, got, 0.01*want+1, "%+v: part %d", tc, i)
			if total += got; i == parts-1 {
				assert.InDelta(t, 2*tc.period.Seconds()*float64(tc.rate)/(1+tc.factor), total, 0.01*float64(total), "%+v in all", tc)
			}
		}
	}
}

// The numbers of Guava's curve: R 100, f 3, W 10 s.
func TestWarmUp_CurveInNumbers(t *testing.T) {
	u := warmOf(PerSecond(100), 10*time.Second, burst1)
	cold := u.take(0, 1, 1)
	require.True(t, cold.OK())
	demand(u, 1, 2)
	for _, point := range []struct {
		at   time.Duration
		rate float64
	}{{0, 33.3}, {2500 * time.Millisecond, 37.8}, {5 * time.Second, 44.7}, {7500 * time.Millisecond, 57.7}, {9 * time.Second, 74.5}, {10 * time.Second, 100}} {
		p := u.cur.Load()
		rate := 100 / (float64(p.fare(1+int64(point.at)).units) / float64(p.own.unit))
		assert.InDelta(t, point.rate, rate, 0.01*point.rate, "at %v", point.at)
		u.cur.Load().heat.ask(1, true, 1+int64(point.at)) // that there is still demand
		demand(u, 1+int64(point.at), 1+int64(point.at+2499*time.Millisecond))
	}
}

// At a threshold of 1 a second and a period of 1 s, sentinel-golang lets everything
// pass, and at 2 a second and 10 s nothing, for ever; more in
// https://github.com/alibaba/Sentinel/issues/2184 and
// https://github.com/alibaba/Sentinel/issues/953.
func TestWarmUp_LowThresholds(t *testing.T) {
	u := warmOf(PerSecond(2), 10*time.Second, nil)
	first, got := int64(-1), 0
	for now := int64(1); now < 60_000*ms; now += 100 * ms {
		if u.take(0, 1, now).OK() {
			got++
			if first < 0 {
				first = now
			}
		}
	}
	assert.Less(t, first, 2000*ms)
	assert.GreaterOrEqual(t, got, 90)

	u, got = warmOf(PerSecond(1), time.Second, nil), 0
	for now := int64(1); now <= 100_000*ms; now += 10 * ms {
		if u.take(0, 1, now).OK() {
			got++
		}
		assert.LessOrEqual(t, got, 1+int(now/(1000*ms)))
	}
	assert.GreaterOrEqual(t, got, 98)
}

// No warm-up makes other libraries unlimited: https://github.com/google/guava/issues/2730,
// https://github.com/google/guava/issues/6475.
func TestWarmUp_NoPeriodIsALimiter(t *testing.T) {
	for name, u := range map[string]*WarmUp{
		"no period":    warmOf(PerSecond(100), 0, burst1),
		"no factor":    warmOf(PerSecond(100), 10*time.Second, func(c *WarmUpConfig) { c.Burst, c.ColdFactor = 1, 1 }),
		"a nanosecond": warmOf(PerSecond(100), 1, burst1),
	} {
		assert.InDelta(t, 1000, demand(u, 1, 10_000*ms), 3, name)
	}
}

// What it charges more while it is cold changes nothing in what a limiter promises, and
// whoever asks at random in whatever way gets on.
func TestWarmUp_BoundAndProgress(t *testing.T) {
	walks := 150
	if testing.Short() || raceEnabled {
		walks = 30
	}
	for seed := range uint64(walks) {
		r := rand.New(rand.NewPCG(10, seed))
		rate := Rate{1 + r.Int64N(1000), []time.Duration{time.Second, time.Minute, 10 * time.Second}[r.IntN(3)]}
		factor, period := 1+9*r.Float64(), time.Duration(r.Int64N(int64(time.Minute)))
		burst := 1 + r.Int64N(20)
		u := warmOf(rate, period, func(c *WarmUpConfig) { c.ColdFactor, c.Burst = factor, burst })
		token := int64(rate.Per) / rate.Tokens
		var taken windowLedger
		began, now := int64(1), int64(1)
		for range 400 {
			if r.IntN(3) > 0 {
				now += r.Int64N(2*token + 2)
			}
			n := 1 + r.Int64N(burst)
			d := u.take(0, n, now)
			require.GreaterOrEqual(t, u.cur.Load().own.level0(now), -int64(float64(burst)*factor+1)*u.cur.Load().own.unit)
			if d.OK() {
				taken.take(n, now)
				continue
			}
			due := now + int64(d.RetryAfter())
			require.False(t, u.peek(0, n, due-1).OK())
			require.True(t, u.peek(0, n, due).OK(), "nothing else is asked of who waits as long as he was told")
			if r.IntN(2) == 0 {
				now = due
			}
		}
		for i, from := range taken.times {
			last := taken.times[len(taken.times)-1]
			for _, got := range []struct{ n, in int64 }{{int64(i + 1), from - began}, {int64(len(taken.times) - i), last - from}} {
				most := float64(burst) + float64(got.in+1)*float64(rate.Tokens)/float64(rate.Per)
				if float64(got.n) > most+1e-6 {
					require.FailNow(t, "too many", "%d tokens of %v with a burst of %d in %d ns", got.n, rate, burst, got.in)
				}
			}
		}
	}
}

func (b *bucket) level0(now int64) int64 {
	level, _ := b.level(now)
	return level
}
