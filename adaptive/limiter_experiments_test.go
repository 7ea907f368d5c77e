package adaptive

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// What 16 workers can do whose calls take 10 ms.
const capacity = 1600.0

// own is a rule of a user's.
func own[A any, P interface {
	*A
	LimitAlgorithm
}]() LimiterOption {
	return WithLimitAlgorithm(func() LimitAlgorithm { return P(new(A)) })
}

// minutes is how long an experiment goes on that shows a drift.
func minutes(n int) time.Duration {
	if brief() {
		return 90 * time.Second
	}
	return time.Duration(n) * time.Minute
}

// E7: a quarter of an hour at 150 % of what the server can do, which is 1600 calls a
// second (some rules show what they do in less). The default holds the limit, and with it
// the time that calls take; a baseline that is learnt under load grows with the queue, and
// the queue with it.
//
// The story of https://github.com/Netflix/concurrency-limits/issues/165.
func TestE7_OverloadThatGoesOn(t *testing.T) {
	t.Attr("columns", "rule | minutes | limit in the 2nd | in the last | p99 in the 2nd | in the last | served a second")
	for _, c := range []struct {
		name    string
		rule    LimiterOption
		minutes int
		// of the limit in the last half minute, by that in the second
		drift [2]float64
		// of the last half minute
		least, most time.Duration // p99
	}{
		{"ours", WithLimitRule(Vegas()), 15, [2]float64{0.9, 1.1}, 25 * ms, 35 * ms},
		{"AIMD", WithLimitRule(AIMD(50 * ms)), 6, [2]float64{0.9, 1.1}, 60 * ms, 72 * ms},
		{"Gradient2", WithLimitRule(Gradient2()), 6, [2]float64{1.1, 2}, 40 * ms, 70 * ms},
		{"Gradient2, classic", own[classicGradient2](), 10, [2]float64{1.1, 5}, 60 * ms, 100 * ms},
		{"Vegas, classic", own[classicVegas](), 6, [2]float64{1.3, 4}, 50 * ms, 100 * ms},
		{"average baseline", own[averageBaseline](), 6, [2]float64{2, 8}, 150 * ms, 300 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			long := minutes(c.minutes)
			g := newGuarded(t, 1, 16, mean10, c.rule)
			first, last := g.phase(30*time.Second, time.Minute), g.phase(long-30*time.Second, long)
			g.arriveAt(step(1.5*capacity, 0, 1.5*capacity, time.Hour, 0))
			g.run(long)
			row(t, c.name, fmt.Sprint(c.minutes), fmt.Sprintf("%.1f", first.limit()), fmt.Sprintf("%.1f", last.limit()), p99(first), p99(last), fmt.Sprintf("%.0f", last.rate()))
			assert.GreaterOrEqual(t, last.rate(), 0.97*capacity)
			if brief() && c.name != "ours" && c.name != "AIMD" {
				return // the others take time to drift
			}
			drift := last.limit() / first.limit()
			assert.GreaterOrEqual(t, drift, c.drift[0])
			assert.LessOrEqual(t, drift, c.drift[1])
			assert.GreaterOrEqual(t, last.quantile(0.99), c.least)
			assert.LessOrEqual(t, last.quantile(0.99), c.most)
		})
	}
}

func p99(p *guardedPhase) string { return p.quantile(0.99).Round(ms).String() }

// E8: at 60 % nobody is refused. A product of rate and time, which is a good bound while
// there is a reason to shed, is none for a limit that always holds.
func TestE8_NobodyIsRefusedWithoutNeed(t *testing.T) {
	t.Attr("columns", "rule | minutes | calls | refused, % | mean limit")
	for _, c := range []struct {
		name        string
		opts        []LimiterOption
		minutes     int
		least, most float64 // of the refused share
	}{
		{"ours", nil, 15, 0, 0},
		{"AIMD", []LimiterOption{WithLimitRule(AIMD(50 * ms))}, 3, 0, 0.0001},
		{"Gradient2", []LimiterOption{WithLimitRule(Gradient2())}, 3, 0, 0.0001},
		{"product", []LimiterOption{own[bbrProduct](), WithLimitWindow(100 * ms)}, 3, 0.02, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t, 1, 16, mean10, c.opts...)
			long := minutes(c.minutes)
			all := g.phase(0, long)
			g.arriveAt(step(0.6*capacity, 0, 0.6*capacity, time.Hour, 0))
			g.run(long)
			row(t, c.name, fmt.Sprint(c.minutes), fmt.Sprint(all.all(all.asked)), percent(all.refusedShare()), fmt.Sprintf("%.1f", all.limit()))
			assert.GreaterOrEqual(t, all.refusedShare(), c.least)
			assert.LessOrEqual(t, all.refusedShare(), c.most)
		})
	}
}

// E9: what the server can do doubles, or halves, after a minute in which it had 150 % to
// do, and the calls that come stay as many. The default finds the new capacity within ten
// seconds, and keeps the queue short at half of it.
func TestE9_CapacityChanges(t *testing.T) {
	at, more := time.Minute, time.Minute
	if brief() {
		at, more = 20*time.Second, 20*time.Second
	}
	t.Attr("columns", "what happens | refused, % | p99 10–60 s after it | 60–120 s | served a second")
	tell := func(t *testing.T, name string, soon, later *guardedPhase) {
		row(t, name, percent(later.refusedShare()), p99(soon), p99(later), fmt.Sprintf("%.0f", later.rate()))
	}
	slower := lognormal(scaled(10*ms, 2*0.8825), 0.5) // a mean of 20 ms
	run := func(t *testing.T, service latency, workers int, opts ...LimiterOption) (soon, later *guardedPhase) {
		g := newGuarded(t, 1, 16, service, opts...)
		g.at(t0+int64(at), func() { g.workers = workers })
		soon, later = g.phase(at+10*time.Second, at+more), g.phase(at+more, at+2*more)
		g.arriveAt(step(1.5*capacity, 0, 1.5*capacity, time.Hour, 0))
		g.run(at + 2*more)
		return soon, later
	}
	t.Run("doubles", func(t *testing.T) {
		t.Parallel()
		soon, later := run(t, mean10, 32)
		tell(t, "twice the workers", soon, later)
		for _, p := range []*guardedPhase{soon, later} {
			assert.Zero(t, p.all(p.refused))
			assert.InDelta(t, 2400, p.rate(), 50)
		}
	})
	t.Run("halves, for calls take twice as long", func(t *testing.T) {
		t.Parallel()
		soon, later := run(t, then(mean10, at, slower), 16)
		tell(t, "calls take twice as long", soon, later)
		for _, p := range []*guardedPhase{soon, later} {
			assert.InDelta(t, 64*ms, p.quantile(0.99), float64(4*ms), "the calls alone have 57 ms")
			assert.GreaterOrEqual(t, p.rate(), 0.93*800)
		}
	})
	t.Run("halves, for half the workers are left", func(t *testing.T) {
		t.Parallel()
		least := 0.97
		if brief() {
			least = 0.93 // a drain of two seconds weighs more in a short time
		}
		soon, later := run(t, mean10, 8)
		tell(t, "half the workers", soon, later)
		for _, p := range []*guardedPhase{soon, later} {
			assert.LessOrEqual(t, p.quantile(0.99), 40*ms)
			assert.GreaterOrEqual(t, p.rate(), least*800)
		}
	})
	t.Run("halves, average baseline", func(t *testing.T) {
		t.Parallel()
		soon, later := run(t, then(mean10, at, slower), 16, own[averageBaseline]())
		tell(t, "calls take twice as long, average baseline", soon, later)
		assert.Greater(t, later.quantile(0.99), 120*ms)
	})
}

// mixture makes g's calls 30 % P0, 50 % P1 and 20 % P2.
func mixture(g *guarded) {
	g.ctx = func() context.Context {
		p := sluice.P1
		switch u := g.rand.Float64(); {
		case u < 0.3:
			p = sluice.P0
		case u < 0.5:
			p = sluice.P2
		}
		return sluice.WithPriority(context.Background(), p)
	}
}

// E11: at 150 % with a queue, calls of P0 get through, P2 goes first and then P1; and what
// is guaranteed to P2, it gets.
func TestE11_Priorities(t *testing.T) {
	t.Attr("columns", "queue | P0 served, % | P1 | P2 | p99 | served a second")
	run := func(t *testing.T, name string, opts ...LimiterOption) (served [classes]float64, p *guardedPhase) {
		g := newGuarded(t, 1, 16, mean10, append([]LimiterOption{WithQueue(100, 20*ms)}, opts...)...)
		mixture(g)
		long := 2 * time.Minute
		if brief() {
			long = 40 * time.Second
		}
		p = g.phase(10*time.Second, long)
		g.arriveAt(step(1.5*capacity, 0, 1.5*capacity, time.Hour, 0))
		g.run(long)
		for class := range served {
			served[class] = 1 - float64(p.refused[class])/float64(p.asked[class])
		}
		row(t, name, percent(served[0]), percent(served[1]), percent(served[2]), p99(p), fmt.Sprintf("%.0f", p.rate()))
		require.GreaterOrEqual(t, p.rate(), 0.97*capacity)
		return served, p
	}
	t.Run("by importance", func(t *testing.T) {
		t.Parallel()
		served, p := run(t, "by importance")
		assert.GreaterOrEqual(t, served[0], 0.999)
		assert.InDelta(t, 0.73, served[1], 0.02, "what P0 leaves")
		assert.LessOrEqual(t, served[2], 0.01)
		assert.LessOrEqual(t, p.quantile(0.99), 55*ms)
	})
	t.Run("newest first", func(t *testing.T) {
		t.Parallel()
		served, p := run(t, "newest first", WithNewestFirst(true))
		assert.GreaterOrEqual(t, served[0], 0.999)
		assert.Greater(t, served[1], 4*served[2])
		assert.LessOrEqual(t, p.quantile(0.99), 45*ms, "those that are served have not waited for long")
	})
	t.Run("with a share for P2", func(t *testing.T) {
		t.Parallel()
		served, p := run(t, "a tenth for P2", WithShares(0, 0, 0.1))
		assert.GreaterOrEqual(t, served[0], 0.999)
		assert.InDelta(t, 0.6, served[1], 0.03)
		assert.InDelta(t, 0.1, served[2]*float64(p.asked[2])/float64(p.done), 0.015, "of those that were served")
	})
	t.Run("all the same", func(t *testing.T) {
		t.Parallel()
		served, _ := run(t, "all the same", WithAging(0))
		for class := range served {
			assert.InDelta(t, 0.667, served[class], 0.02)
		}
	})
}

// E15: the load goes from 60 to 140 % from one moment to the next, and the default settles
// within a second. Settled is when the median call no longer takes twice what it takes
// alone.
func TestE15_Spike(t *testing.T) {
	const at = time.Minute
	t.Attr("columns", "rule | settled after")
	run := func(t *testing.T, name string, d *dagor, opts ...LimiterOption) time.Duration {
		g := newGuarded(t, 1, 16, mean10, opts...)
		if d != nil {
			g.admit = func() bool { return g.rand.Float64() < d.share }
			g.settled = func(queued time.Duration) { d.settled(g.since(), queued) }
		}
		const slices = 200 // of a tenth of a second
		var after []*guardedPhase
		for i := range time.Duration(slices) {
			after = append(after, g.phase(at+i*100*ms, at+(i+1)*100*ms))
		}
		g.arriveAt(step(0.6*capacity, at, 1.4*capacity, time.Hour, 0))
		g.run(at + slices*100*ms + time.Second)
		var settled time.Duration
		for _, p := range after {
			if p.quantile(0.5) > 20*ms {
				settled = p.to - at
			}
		}
		if settled == slices*100*ms {
			row(t, name, "never in 20 s")
		} else {
			row(t, name, settled.String())
		}
		return settled
	}
	t.Run("ours", func(t *testing.T) {
		t.Parallel()
		assert.LessOrEqual(t, run(t, "ours", nil), time.Second)
	})
	t.Run("Gradient2", func(t *testing.T) {
		t.Parallel()
		assert.Greater(t, run(t, "Gradient2", nil, WithLimitRule(Gradient2())), 2*time.Second)
	})
	t.Run("AIMD", func(t *testing.T) {
		t.Parallel()
		assert.Greater(t, run(t, "AIMD", nil, WithLimitRule(AIMD(50*ms))), 10*time.Second, "it settles at 50 ms")
	})
	t.Run("DAGOR", func(t *testing.T) {
		t.Parallel()
		assert.Greater(t, run(t, "DAGOR", &dagor{share: 1}), 2*time.Second)
	})
}
