package adaptive

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everyRule is each of the package's rules that learns.
var everyRule = map[string]TimeoutOption{"ours": ours, "ours, compact": WithCompact(), "three means": threeMeans, "twice p99": twiceP99, "like TCP": likeTCP}

// The ways in which time limits that learn have failed elsewhere; each must end in
// finite time, whatever the rule.
func TestEveryRule_Recovers(t *testing.T) {
	for name, rule := range everyRule {
		for mode, c := range map[string]struct {
			l    latency
			rate float64
			from time.Duration // when it must be well again
			most float64       // share of calls that are not answered from then on
		}{
			"sees only what it lets through":        {then(lognormal(20*ms, 0.3), time.Minute, lognormal(400*ms, 0.3)), 100, 75 * time.Second, 0.1},
			"has nothing left to learn from":        {then(lognormal(20*ms, 0.3), time.Minute, lognormal(2*time.Second, 0.2)), 100, 90 * time.Second, 0.1},
			"a call in five seconds":                {then(lognormal(20*ms, 0.3), 10*time.Minute, lognormal(400*ms, 0.3)), 0.2, 20 * time.Minute, 0.15},
			"a call in a minute":                    {then(lognormal(20*ms, 0.3), 50*time.Minute, lognormal(400*ms, 0.3)), 1.0 / 60, 2 * time.Hour, 0.15},
			"an outage poisons what comes after it": {hangs(lognormal(20*ms, 0.3), time.Minute, 3*time.Minute), 100, 200 * time.Second, 0.1},
		} {
			client := newClient(t, 1, c.l, rule)
			well := client.phase(c.from, 10*c.from)
			client.load(c.rate)
			client.world.run(c.from + max(time.Minute, time.Duration(100/c.rate)*time.Second))
			require.Greater(t, well.calls, 50)
			assert.LessOrEqualf(t, well.share(well.cut), c.most, "%s: %s", name, mode)
			if mode == "an outage poisons what comes after it" {
				assert.Lessf(t, client.timeout.Value(), 300*ms, "%s: waits too long after it", name)
			}
		}
	}
}

// Failures that come at once, callers who leave, and losers of a race that are
// cancelled do not make the limit shorter.
func TestEveryRule_IsNotDraggedDown(t *testing.T) {
	for name, rule := range everyRule {
		alone := newClient(t, 1, lognormal(20*ms, 0.3), rule)
		limit := meanLimit(alone)
		crowd := newClient(t, 1, lognormal(20*ms, 0.3), rule)
		crowd.fails = func() bool { return crowd.world.rand.IntN(3) == 0 }
		crowd.deadline = func() time.Duration { return time.Duration(crowd.world.rand.IntN(2)) * 15 * ms }
		assert.GreaterOrEqualf(t, float64(meanLimit(crowd)), 0.8*float64(limit), name) // a bucket of the compact one is a quarter
	}
}

// mean is the obvious MeanMultiple: of the last calls, all their time by how many
// were answered.
func mean(samples []Sample, k float64, n int) time.Duration {
	samples = samples[max(0, len(samples)-n):]
	var sum time.Duration
	finished := 0
	for _, s := range samples {
		switch s.End {
		case Finished:
			finished++
			sum += s.Took
		case TimedOut:
			sum += s.Limit
		default:
			sum += s.Took
		}
	}
	return time.Duration(k * float64(sum) / float64(max(1, finished)))
}

func TestMeanMultiple_IsTheMeanOfTheLastCalls(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, n := range []int{1, 7, 100} {
		rule := Rule{Kind: KindMeanMultiple, Multiple: 3, Calls: n}
		m := newMeanMultiple(rule)
		var all []Sample
		for i := range 1000 {
			s := Sample{Took: 1 + time.Duration(r.Int64N(int64(time.Second))), Limit: time.Second, End: End(1 + r.IntN(3))}
			all = append(all, s)
			m.Observe(s)
			e := m.Estimate(0, Bounds{})
			if i+1 < min(n, minCalls) {
				require.Equal(t, Cold, e.State)
				continue
			}
			require.InEpsilon(t, float64(mean(all, 3, n)), float64(e.Limit), 1e-9, "%d calls of %d", i+1, n)
		}
	}
}

func TestMeanMultiple_AddsUpAfterManyGoroutines(t *testing.T) {
	m := newMeanMultiple(MeanMultiple(3))
	var all sync.WaitGroup
	for g := range uint64(8) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(g, 1))
			for range 5000 {
				m.Observe(Sample{Took: time.Duration(r.Int64N(1000)), Limit: 1000, End: End(1 + r.IntN(3))})
			}
		})
	}
	all.Wait()
	var sum, cut int64
	for i := range m.slots {
		v := m.slots[i].Load()
		if sum += max(v, -v); v < 0 {
			cut++
		}
	}
	assert.Equal(t, sum, m.sum.Load())
	assert.Equal(t, cut, m.cut.Load())
}

// The numbers of RFC 6298, section 2, for a first call of 100 ms and a second of
// 200 ms, and its section 5.5 for what times out.
func TestRFC6298_Steps(t *testing.T) {
	b := Bounds{ms, 10 * time.Second}
	r := &rfc6298{initial: 3 * time.Second}
	limit := func() time.Duration { return r.Estimate(0, b).Limit.Round(10 * time.Microsecond) }
	cut := func(limit time.Duration) { r.Observe(Sample{Took: limit, Limit: limit, End: TimedOut}) }
	answer := func(took time.Duration) { r.Observe(Sample{Took: took, Limit: time.Hour, End: Finished}) }
	assert.Equal(t, 3*time.Second, limit())
	cut(3 * time.Second)
	assert.Equal(t, 6*time.Second, limit())
	answer(100 * ms)
	assert.Equal(t, 300*ms, limit()) // 100 + 4·50
	answer(200 * ms)
	assert.Equal(t, 362500*time.Microsecond, limit()) // 112.5 + 4·62.5
	r.Observe(Sample{Took: 5, Limit: time.Second, End: CutShort})
	assert.Equal(t, 362500*time.Microsecond, limit(), "Karn: not measured")
	cut(limit())
	assert.Equal(t, 725*ms, limit())
	cut(362 * ms)
	assert.Equal(t, 725*ms, limit(), "it began before the limit was doubled")
	for range 50 {
		cut(limit())
	}
	assert.Equal(t, 10*time.Second, limit())
	answer(200 * ms)
	assert.Less(t, limit(), time.Second)
}

func TestRFC6298_CountsWhatManyGoroutinesSay(t *testing.T) {
	r := new(rfc6298)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 5000 {
				r.Observe(Sample{Took: 20 * ms, Limit: time.Second, End: Finished})
			}
		})
	}
	all.Wait()
	assert.InEpsilon(t, float64(20*ms), r.limit(0), 0.01, "no deviation is left")
	assert.EqualValues(t, 40_000, r.finished())
}

// A fixed limit does not move.
func TestFixed(t *testing.T) {
	to := build(t, WithRule(Fixed(time.Second)))
	cuts(t, to, at(0), 100)
	calls(t, to, at(time.Minute), 100, ms)
	assert.Equal(t, time.Second, to.Value())
	assert.Equal(t, Resolved, to.snapshot(at(time.Minute)).State)
	assert.EqualValues(t, 100, to.snapshot(at(time.Minute)).Totals.Finished)
}

func TestRule_AsText(t *testing.T) {
	for _, r := range []Rule{FalseTimeouts(0.001), MeanMultiple(3), Quantile(0.99, 2), RFC6298(), Fixed(time.Second)} {
		var v complaints
		r.validate(&v, Bounds{ms, time.Minute})
		assert.Empty(t, v, r)
	}
	assert.Equal(t, "FalseTimeouts(0.001) MeanMultiple(3) of 100 calls Quantile(0.99, 2) RFC6298() Fixed(1s) RuleKind(9)",
		fmt.Sprint(FalseTimeouts(0.001), " ", MeanMultiple(3), " ", Quantile(0.99, 2), " ", RFC6298(), " ", Fixed(time.Second), " ", Rule{Kind: 9}))
	assert.Equal(t, "finished timed_out cut_short End(4) cold outage TimeoutState(7)",
		fmt.Sprint(Finished, " ", TimedOut, " ", CutShort, " ", End(4), " ", Cold, " ", Outage, " ", TimeoutState(7)))
}
