package adaptive

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Experiments compare the default with the other rules, and with the one that many
// services have at home: three times the mean of the calls that were answered. The
// bands are what the package promises; each run is the same to the call. What they tell
// by Attr, and their comments, become docs/experiments.md (see examples/experiments).

// naive is that one: blind to the calls that it has cut off.
type naive struct {
	took []time.Duration
	next int
}

func (e *naive) Observe(s Sample) {
	switch {
	case s.End != Finished:
	case len(e.took) < 100:
		e.took = append(e.took, s.Took)
	default:
		e.took[e.next%100] = s.Took
		e.next++
	}
}

func (e *naive) Estimate(_ int64, b Bounds) Estimate {
	if len(e.took) == 0 {
		return Estimate{Limit: b.Max}
	}
	var sum time.Duration
	for _, d := range e.took {
		sum += d
	}
	return Estimate{Limit: 3 * sum / time.Duration(len(e.took))}
}

var (
	ours       = WithTargetFalseTimeouts(0.001)
	aSecond    = WithRule(Fixed(time.Second))
	threeMeans = WithRule(MeanMultiple(3))
	twiceP99   = WithRule(Quantile(0.99, 2))
	likeTCP    = WithRule(RFC6298())
	blind      = WithEstimator(func() Estimator { return new(naive) })
)

// A band is what a share of calls lies in, in percent.
type band struct{ least, most float64 }

func (b band) check(t *testing.T, share float64, what string, args ...any) {
	t.Helper()
	percent := 100 * share
	assert.Truef(t, b.least <= percent && percent <= b.most, "%s: %.3f %% is not in [%v, %v]", fmt.Sprintf(what, args...), percent, b.least, b.most)
}

// percent is a share as tables show it.
func percent(share float64) string {
	switch p := 100 * share; {
	case p == 0:
		return "0"
	case p < 0.005:
		return "<0.01"
	case p < 0.995:
		return fmt.Sprintf("%.2f", p)
	case p < 9.95:
		return fmt.Sprintf("%.1f", p)
	default:
		return fmt.Sprintf("%.0f", p)
	}
}

// row tells a row of an experiment's table.
func row(t *testing.T, cells ...string) {
	t.Helper()
	t.Attr("row", strings.Join(cells, " | "))
}

// long is how long an experiment goes on that only needs many calls.
func long() time.Duration {
	if brief() {
		return 3 * time.Minute
	}
	return 10 * time.Minute
}

// E1: while nothing changes, hardly a call is cut off that would have been answered,
// whatever the distribution. The figures are the percentage of calls that were. Three
// means is a limit of three times the mean that allows for the calls it has cut off, and
// blind one that does not; a second is a fixed limit; like TCP is RFC 6298.
func TestE1_Stationary(t *testing.T) {
	latencies := []struct {
		name string
		l    latency
	}{
		{"lognormal 0.5", lognormal(20*ms, 0.5)},
		{"lognormal 1", lognormal(20*ms, 1)},
		{"lognormal 1.5", lognormal(20*ms, 1.5)},
		{"Pareto 2", pareto(10*ms, 2)},
		{"cache misses", mixed(lognormal(2*ms, 0.3), 0.1, lognormal(150*ms, 0.3))},
		{"slow mode", mixed(lognormal(5*ms, 0.3), 0.005, lognormal(800*ms, 0.1))},
	}
	columns := "rule"
	for _, l := range latencies {
		columns += " | " + l.name
	}
	t.Attr("columns", columns)
	for _, c := range []struct {
		name  string
		rule  TimeoutOption
		bands [6]band
	}{
		{"ours", ours, [6]band{{0, 0.1}, {0, 0.1}, {0, 0.1}, {0, 0.1}, {0, 0.1}, {0, 0.1}}},
		{"ours, compact", WithCompact(), [6]band{{0, 0.1}, {0, 0.1}, {0, 0.1}, {0, 0.1}, {0, 0.1}, {0, 0.1}}},
		{"a second", aSecond, [6]band{{0, 0}, {0, 0.02}, {0.35, 0.6}, {0, 0.1}, {0, 0}, {0, 0.1}}},
		{"three means", threeMeans, [6]band{{0.5, 1}, {5.5, 7.5}, {10, 13}, {2.5, 4}, {9, 11}, {0.4, 0.6}}},
		{"twice p99", twiceP99, [6]band{{0, 0.05}, {0.05, 0.2}, {0.2, 0.4}, {0.1, 0.3}, {0, 0.01}, {0.3, 0.6}}},
		{"like TCP", likeTCP, [6]band{{3, 5}, {8, 11}, {13, 17}, {9, 13}, {9, 11}, {0.9, 1.4}}},
		{"blind", blind, [6]band{{0.6, 1}, {11, 14}, {29, 33}, {3, 100}, {9, 11}, {0.4, 0.6}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cells := []string{c.name}
			for i, l := range latencies {
				client := newClient(t, 1, l.l, c.rule)
				all := client.phase(0, long())
				client.load(100)
				client.world.run(long())
				c.bands[i].check(t, all.falseTimeouts(), "%s", l.name)
				cells = append(cells, percent(all.falseTimeouts()))
			}
			row(t, cells...)
		})
	}
}

// E2: when the dependency becomes 15 or 100 times slower from one moment to the next,
// the limit finds out in seconds. The blind one never does. The figures are the
// percentage of calls that are cut off and would have been answered, after the step.
func TestE2_Step(t *testing.T) {
	const at = 2 * time.Minute
	type bands [4]band // in 0–2, 2–5, 5–10 and 10–60 s
	t.Attr("columns", "rule | ×15, 0–2 s | 2–5 s | 5–10 s | 10–60 s | ×100, 0–2 s | 2–5 s | 5–10 s | 10–60 s")
	for _, c := range []struct {
		name      string
		rule      TimeoutOption
		x15, x100 bands
	}{
		{"ours", ours, bands{{0, 50}, {0, 2}, {0, 2}, {0, 0.2}}, bands{{0, 100}, {0, 50}, {0, 2}, {0, 0.1}}},
		{"ours, compact", WithCompact(), bands{{0, 50}, {0, 2}, {0, 2}, {0, 0.2}}, bands{{0, 100}, {0, 50}, {0, 2}, {0, 0.1}}},
		{"a second", aSecond, bands{{0, 3}, {0, 3}, {0, 3}, {0, 3}}, bands{{80, 100}, {80, 100}, {80, 100}, {80, 100}}},
		{"three means", threeMeans, bands{{30, 60}, {0, 5}, {0, 5}, {0, 5}}, bands{{60, 100}, {0, 20}, {0, 5}, {0, 5}}},
		{"twice p99", twiceP99, bands{{30, 60}, {0, 5}, {0, 2}, {0, 0.2}}, bands{{80, 100}, {20, 70}, {0, 10}, {0, 0.2}}},
		{"like TCP", likeTCP, bands{{50, 90}, {2, 20}, {1, 10}, {1, 10}}, bands{{80, 100}, {20, 80}, {5, 30}, {0.5, 5}}},
		{"blind", blind, bands{{95, 100}, {95, 100}, {95, 100}, {95, 100}}, bands{{90, 100}, {90, 100}, {90, 100}, {90, 100}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cells := []string{c.name}
			for _, step := range []struct {
				times time.Duration
				bands bands
			}{{15, c.x15}, {100, c.x100}} {
				client := newClient(t, 1, then(lognormal(20*ms, 0.5), at, lognormal(step.times*20*ms, 0.5)), c.rule)
				var phases []*phase
				for _, p := range [][2]time.Duration{{0, 2}, {2, 5}, {5, 10}, {10, 60}} {
					phases = append(phases, client.phase(at+p[0]*time.Second, at+p[1]*time.Second))
				}
				client.load(100)
				client.world.run(at + 60*time.Second)
				for i, p := range phases {
					step.bands[i].check(t, p.falseTimeouts(), "×%d, %v to %v", step.times, p.from-at, p.to-at)
					cells = append(cells, percent(p.falseTimeouts()))
				}
			}
			row(t, cells...)
		})
	}
}

// E3: while everything hangs, calls wait for at most OutageCap times the limit of
// before, and seconds after it is over the limit is what it was. A rule that cannot tell
// an outage from slow calls makes its callers wait for seconds, each.
func TestE3_Hang(t *testing.T) {
	const from, to = 2 * time.Minute, 150 * time.Second
	t.Attr("columns", "rule | limit before | mean wait in the hang | limit at its end | limit 10 s later")
	for _, c := range []struct {
		name        string
		rule        TimeoutOption
		least, most time.Duration // of the mean wait
	}{
		{"ours", ours, 400 * ms, 800 * ms},
		{"ours, compact", WithCompact(), 400 * ms, 800 * ms},
		{"a second", aSecond, time.Second, time.Second},
		{"three means", threeMeans, 4 * time.Second, 5 * time.Second},
		{"twice p99", twiceP99, 4 * time.Second, 5 * time.Second},
		{"like TCP", likeTCP, 4 * time.Second, 5 * time.Second},
		{"blind", blind, 0, 100 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := newClient(t, 1, hangs(lognormal(20*ms, 0.5), from, to), c.rule)
			hang := client.phase(from, to)
			client.load(100)
			client.world.run(from)
			before := client.timeout.Value()
			client.world.run(to - time.Second)
			within := client.timeout.Value()
			client.world.run(to + 10*time.Second)
			after := client.timeout.Value()
			assert.Equal(t, hang.calls, hang.cut, "nothing is answered")
			assert.GreaterOrEqual(t, hang.meanWait(), c.least)
			assert.LessOrEqual(t, hang.meanWait(), c.most)
			row(t, c.name, before.Round(ms).String(), hang.meanWait().Round(ms).String(), within.Round(ms).String(), after.Round(ms).String())
			if c.name == "ours" || c.name == "ours, compact" {
				assert.LessOrEqual(t, within, scaled(before, 4*1.1), "the last resolved limit is a little more than that of before")
				assert.LessOrEqual(t, after, scaled(before, 1.2))
				assert.GreaterOrEqual(t, after, scaled(before, 1/1.2))
			}
		})
	}
}

// E4: one call in two seconds is enough for a limit that hardly ever cuts off what would
// have been answered.
func TestE4_LowTraffic(t *testing.T) {
	hours := 40 * time.Hour
	if brief() {
		hours /= 8
	}
	client := newClient(t, 1, lognormal(20*ms, 1), ours)
	all := client.phase(0, hours)
	client.load(0.5)
	client.world.run(hours)
	band{0, 0.1}.check(t, all.falseTimeouts(), "at one call in two seconds")
	t.Attr("columns", "rule | calls | cut off falsely, %")
	row(t, "ours", fmt.Sprint(all.calls), percent(all.falseTimeouts()))
}

// E4: nor does it in the first half minute, when it knows little (ten starts in all).
func TestE4_ColdStart(t *testing.T) {
	var calls, falsely int
	for seed := range uint64(10) {
		client := newClient(t, seed, lognormal(20*ms, 1), ours)
		first := client.phase(0, 30*time.Second)
		client.load(100)
		client.world.run(35 * time.Second)
		calls, falsely = calls+first.calls, falsely+first.falsely
	}
	band{0, 0.2}.check(t, float64(falsely)/float64(calls), "of the first 30 s")
	t.Attr("columns", "rule | calls | cut off falsely, %")
	row(t, "ours", fmt.Sprint(calls), percent(float64(falsely)/float64(calls)))
}

// E4: while calls become 35 times slower in the course of three minutes, the limit is
// always ahead of them.
func TestE4_Ramp(t *testing.T) {
	calm := lognormal(20*ms, 0.5)
	client := newClient(t, 1, func(since time.Duration, r *rand.Rand) time.Duration {
		climbed := min(1, max(0, (since-time.Minute).Seconds()/180))
		return scaled(calm(since, r), 1+34*climbed)
	}, ours)
	ramp := client.phase(time.Minute, 4*time.Minute)
	client.load(100)
	client.world.run(4 * time.Minute)
	band{0, 0.3}.check(t, ramp.falseTimeouts(), "while calls become 35 times slower in 3 min")
	t.Attr("columns", "rule | calls | cut off falsely, %")
	row(t, "ours", fmt.Sprint(ramp.calls), percent(ramp.falseTimeouts()))
}

// meanLimit is the limit as of each second of the third and fourth minute, on average.
func meanLimit(c *client) time.Duration {
	c.load(100)
	var sum time.Duration
	for s := range 120 {
		c.world.run(time.Duration(120+s) * time.Second)
		sum += c.timeout.Value()
	}
	return sum / 120
}

// E4: callers who leave early, and calls that fail at once, say nothing about how long an
// answer takes: the limit stays what it is, but for a tenth at most.
func TestE4_DeadlinesAndFailuresOfOthers(t *testing.T) {
	limit := func(change func(*client)) time.Duration {
		client := newClient(t, 1, lognormal(20*ms, 0.5), ours)
		change(client)
		return meanLimit(client)
	}
	alone := limit(func(*client) {})
	t.Attr("columns", "what happens | mean limit")
	row(t, "nothing", alone.Round(ms).String())
	for _, c := range []struct {
		name   string
		change func(*client)
	}{
		{"every second caller has a deadline of 50 ms", func(c *client) {
			c.deadline = func() time.Duration { return time.Duration(c.world.rand.IntN(2)) * 50 * ms }
		}},
		{"a fifth fails at once", func(c *client) {
			c.fails = func() bool { return c.world.rand.IntN(5) == 0 }
		}},
	} {
		got := limit(c.change)
		assert.InEpsilonf(t, float64(alone), float64(got), 0.1, "%s: %v and not %v", c.name, got, alone)
		row(t, c.name, got.Round(ms).String())
	}
}

// E14: this process is paused for 300 ms, and a deadline that passes meanwhile is
// noticed before the answer that was there all the time. Where that happens every five
// seconds it becomes part of how long calls take, and is allowed for. Where it happens
// every minute it is too rare for that; there the stretch of the limit covers it.
func TestE14_LocalStalls(t *testing.T) {
	seeds := 3
	if brief() {
		seeds = 1
	}
	spurious := func(every, long time.Duration, rule TimeoutOption, stretch bool) (sum int) {
		for seed := range uint64(seeds) {
			client := newClient(t, seed, lognormal(20*ms, 0.5), rule)
			client.wakes = func(at int64) int64 {
				if in := (at - t0) % int64(every); at-t0 >= int64(every) && in < int64(300*ms) {
					return at - in + int64(300*ms)
				}
				return at
			}
			all := client.phase(0, long)
			client.load(100)
			for client.world.since() < long {
				client.world.run(client.world.since() + time.Second)
				if !stretch {
					client.timeout.plan.Load().est.(*kaplanMeier).stall.late.Store(0)
				}
			}
			sum += all.spurious
		}
		return sum
	}
	t.Attr("columns", "stalls | rule | answers that were there and were cut off")
	t.Run("rare", func(t *testing.T) {
		with, without := spurious(time.Minute, 20*time.Minute, ours, true), spurious(time.Minute, 20*time.Minute, ours, false)
		assert.Greater(t, without, 30*seeds, "there is something to be covered")
		assert.GreaterOrEqual(t, without, 10*with)
		row(t, "each minute", "ours", fmt.Sprint(with/seeds))
		row(t, "each minute", "ours, without the stretch", fmt.Sprint(without/seeds))
	})
	t.Run("frequent", func(t *testing.T) {
		with := spurious(5*time.Second, 5*time.Minute, ours, true)
		row(t, "each five seconds", "ours", fmt.Sprint(with/seeds))
		for _, rival := range []struct {
			name string
			rule TimeoutOption
		}{
			{"as long, and fixed", WithRule(Fixed(125 * ms))}, {"three means", threeMeans}, {"twice p99", twiceP99}, {"like TCP", likeTCP},
		} {
			got := spurious(5*time.Second, 5*time.Minute, rival.rule, true)
			assert.GreaterOrEqual(t, got, 30*with, rival.name)
			row(t, "each five seconds", rival.name, fmt.Sprint(got/seeds))
		}
	})
}
