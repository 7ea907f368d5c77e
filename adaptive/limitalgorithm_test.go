package adaptive

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// busyWindow is one in which all of the limit was used.
func busyWindow(limit float64, took time.Duration) LimitWindow {
	return LimitWindow{Limit: limit, Min: 1, Max: 1000, InFlight: int(limit), Calls: 1000, Took: took}
}

// drawn is what chance says in tests that need none.
func drawn() uint32 { return 0 }

func TestVegas_Steps(t *testing.T) {
	r := Vegas()
	for name, c := range map[string]struct {
		w    LimitWindow
		want float64
	}{
		// log10 is 1.3 for a limit of 20: α is 3.9, β 7.8.
		"none waits":           {busyWindow(20, 10*ms), 20 + 7.806},
		"two wait":             {busyWindow(20, 11111*time.Microsecond), 20 + 1.301},
		"five wait":            {busyWindow(20, 13334*time.Microsecond), 20},
		"eight wait":           {busyWindow(20, 16700*time.Microsecond), 20 - 2.06},
		"fifteen wait":         {busyWindow(20, 40*ms), 20 - (15-3.903)/2},
		"not needed":           {LimitWindow{Limit: 20, InFlight: 9, Calls: 100, Took: 10 * ms}, 20},
		"half is needed":       {LimitWindow{Limit: 20, InFlight: 10, Calls: 100, Took: 10 * ms}, 20 + 7.806},
		"slow, but not needed": {LimitWindow{Limit: 500, InFlight: 10, Calls: 100, Took: 40 * ms}, 500},
		"slow, but not full":   {LimitWindow{Limit: 100, InFlight: 60, Calls: 100, Took: 40 * ms}, 100 - (45-6)/2.0},
		"nothing but drops":    {LimitWindow{Limit: 20, InFlight: 20, Drops: 10}, 10},
		"one in ten dropped":   {LimitWindow{Limit: 20, InFlight: 20, Calls: 90, Took: 10 * ms, Drops: 10}, 18},
		"half dropped":         {LimitWindow{Limit: 20, InFlight: 20, Calls: 50, Took: 10 * ms, Drops: 50}, 15},
		"few drops are borne":  {LimitWindow{Limit: 20, InFlight: 20, Calls: 95, Took: 10 * ms, Drops: 5}, 20 + 7.806},
		"nothing":              {LimitWindow{Limit: 20, InFlight: 20}, 20},
		"small":                {busyWindow(1, 10*ms), 1 + 6},
	} {
		v := &vegas{draw: drawn, baseline: 10 * ms, until: 50}
		assert.InDelta(t, c.want, v.next(&c.w, &r), 0.01, name)
	}
}

// Under load the baseline is read in a drain of two windows; where calls are few it is
// read as they are.
func TestVegas_Drain(t *testing.T) {
	r := Vegas()
	v := &vegas{draw: drawn}
	limit := 20.0
	window := func(took time.Duration) {
		w := busyWindow(limit, took)
		limit = v.next(&w, &r)
	}
	window(20 * ms) // under load from the first moment on
	assert.Equal(t, 20*ms, v.baseline)
	window(20 * ms)
	before := limit
	window(20 * ms)
	assert.True(t, v.finding().draining, "soon after the first one")
	assert.InDelta(t, before*0.8, limit, 0.01)
	window(18 * ms) // some of these began before
	assert.InDelta(t, before*0.8, limit, 0.01)
	window(10 * ms)
	assert.False(t, v.finding().draining)
	assert.InDelta(t, before, limit, 0.01)
	assert.Equal(t, 10*ms, v.baseline)
	assert.Equal(t, 60, v.until)

	for range 59 {
		window(12500 * time.Microsecond)
		require.False(t, v.finding().draining)
	}
	held := limit
	window(12500 * time.Microsecond)
	require.True(t, v.finding().draining)
	assert.InDelta(t, held*0.8*10/12.5, limit, 0.01)
	w := busyWindow(limit, 10*ms)
	w.Drops = 1000
	limit = v.next(&w, &r)
	assert.InDelta(t, held*0.75, limit, 0.01, "drops end a drain")
	assert.False(t, v.finding().draining)

	v.until = 1
	few := LimitWindow{Limit: 100, InFlight: 10, Calls: 100, Took: 30 * ms}
	assert.InDelta(t, 100, v.next(&few, &r), 0)
	assert.Equal(t, 30*ms, v.baseline, "the dependency has become slower, and nothing was refused")
	assert.Equal(t, 60, v.until)
}

// The drains of many processes do not come at the same time.
func TestVegas_DrainsAreSpread(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	seen := map[int]bool{}
	for range 1000 {
		v := vegas{draw: r.Uint32}
		seen[v.pause()] = true
	}
	for n := range seen {
		assert.True(t, n >= 60 && n <= 90)
	}
	assert.Len(t, seen, 31)
}

func TestVegas_MaxHealthy(t *testing.T) {
	r := Vegas()
	r.MaxHealthy = 15 * ms
	v := &vegas{draw: drawn}
	w := busyWindow(20, 100*ms)
	v.next(&w, &r)
	assert.Equal(t, 15*ms, v.baseline)
	v.learn(time.Second, &r)
	assert.Equal(t, 15*ms, v.baseline)
}

func TestVegas_Urgent(t *testing.T) {
	r := Vegas()
	v := &vegas{draw: drawn}
	w := busyWindow(20, 10*ms)
	assert.True(t, v.urgent(&w, &r), "the first one")
	v.next(&w, &r)
	assert.False(t, v.urgent(&w, &r))
	w.Took = 21 * ms
	assert.True(t, v.urgent(&w, &r))
	w.InFlight = 9
	assert.False(t, v.urgent(&w, &r), "not needed")
	w.Drops = 100
	assert.True(t, v.urgent(&w, &r))
}

func TestAIMD_Steps(t *testing.T) {
	r := AIMD(50 * ms)
	a := new(aimd)
	step := func(w LimitWindow, want float64) {
		t.Helper()
		assert.InDelta(t, want, a.next(&w, &r), 0.001)
	}
	step(busyWindow(20, 10*ms), 31) // until the first decrease
	step(busyWindow(31, 10*ms), 47.5)
	slow := busyWindow(47, 51*ms)
	assert.True(t, a.urgent(&slow, &r))
	step(slow, 42.3)
	step(busyWindow(42, 50*ms), 43)
	step(LimitWindow{Limit: 42, InFlight: 20, Calls: 10, Took: 10 * ms}, 42)
	step(LimitWindow{Limit: 42, InFlight: 42, Calls: 99, Took: 10 * ms, Drops: 1}, 43)
	dropped := LimitWindow{Limit: 42, InFlight: 42, Calls: 98, Took: 10 * ms, Drops: 2}
	assert.True(t, a.urgent(&dropped, &r))
	step(dropped, 37.8)
	step(LimitWindow{Limit: 42, InFlight: 42, Drops: 2}, 21)
	r = AIMD(0)
	step(busyWindow(42, time.Hour), 43)
}

func TestGradient2_Steps(t *testing.T) {
	r := Gradient2()
	g := new(gradient2)
	for range 20 {
		w := busyWindow(20, 10*ms)
		assert.InDelta(t, 20.8, g.next(&w, &r), 0.001, "room for four more, a fifth of it")
	}
	assert.InDelta(t, float64(10*ms), float64(g.finding().baseline), float64(ms/100))
	w := busyWindow(20, 20*ms)
	assert.InDelta(t, 20-20*0.25*0.2, g.next(&w, &r), 0.02)
	w = busyWindow(20, 100*ms)
	assert.InDelta(t, 18, g.next(&w, &r), 0.001, "not less than half, a fifth of it")
	w = LimitWindow{Limit: 20, InFlight: 9, Calls: 10, Took: 10 * ms}
	assert.InDelta(t, 20, g.next(&w, &r), 0.001)
	w = LimitWindow{Limit: 20, InFlight: 20, Drops: 10}
	assert.InDelta(t, 10, g.next(&w, &r), 0.001)
	for range 60 {
		w = busyWindow(20, ms)
		g.next(&w, &r)
	}
	assert.Less(t, g.finding().baseline, 2100*time.Microsecond, "faster calls are learnt sooner")
	r.MaxHealthy = ms
	g.next(&w, &r)
	assert.Equal(t, ms, g.finding().baseline)
}

// No rule grows where less than half of the limit is used, and each goes down when calls
// are dropped, whatever else there is to see.
func FuzzLimitRules_NeverGrowUnneededAndDropsDecrease(f *testing.F) {
	f.Add([]byte{1, 20, 200, 3, 90, 5, 0, 255})
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, r := range []LimitRule{Vegas(), AIMD(50 * ms), Gradient2()} {
			tracker := newLimitTracker(&r, &noLimiterHooks, drawn)
			limit := 100.0
			for ; len(data) >= 4; data = data[4:] {
				w := LimitWindow{
					Limit: limit, Min: 1, Max: 1000, InFlight: int(data[0]), Calls: int(data[1]),
					Took: time.Duration(data[2]) * ms, Drops: int(data[3]) / 4,
				}
				if w.Calls == 0 {
					w.Took = 0
				} else if w.Took == 0 {
					w.Took = ms
				}
				v, isVegas := tracker.(*vegas)
				restores := isVegas && v.drain != 0
				next := tracker.next(&w, &r)
				if w.needless() && !restores && next > limit {
					t.Fatalf("%v: %+v: %v grows to %v", r, w, limit, next)
				}
				if _, dropped := w.dropped(r.Tolerance); dropped && !restores && next >= limit {
					t.Fatalf("%v: %+v: %v does not go down, but to %v", r, w, limit, next)
				}
				if !(next >= 0) {
					t.Fatalf("%v: %+v: %v", r, w, next)
				}
				limit = min(max(next, 1), 1000)
			}
		}
	})
}

// The mean of the middle is that of an obvious program, to a thousandth.
func FuzzLimitWindow_Middle(f *testing.F) {
	f.Add(uint64(1), uint16(100), uint8(20))
	f.Add(uint64(7), uint16(1), uint8(0))
	f.Add(uint64(165), uint16(15), uint8('O'))
	f.Fuzz(func(t *testing.T, seed uint64, n uint16, spread uint8) {
		n = n%5000 + 1
		r := rand.New(rand.NewPCG(seed, 3))
		w := newLimitWindow(1, time.Second)
		draw := lognormal(10*ms, float64(spread%40)/10)
		var all []float64
		for range n {
			took := min(max(draw(0, r), 1024), longestTook)
			all = append(all, float64(took))
			w.answered(int64(took))
		}
		slices.Sort(all)
		sum := 0.0
		for i, took := range all {
			in := min(float64(i+1), 0.9*float64(n)) - max(float64(i), 0.1*float64(n))
			sum += max(in, 0) * took
		}
		seen := w.see(1)
		if seen.Calls != int(n) {
			t.Fatalf("%d calls, not %d", seen.Calls, n)
		}
		want := sum / (0.8 * float64(n))
		// Only the two buckets at the edges are not exact, by an eighth of them at most. Few
		// calls of very different length may have all their time in one of them.
		if got := float64(seen.Took); got < want*0.875 || got > want*1.125 {
			t.Fatalf("%v, not %v", seen.Took, time.Duration(want))
		}
		q := all[int(math.Ceil(0.9*float64(n)))-1]
		if got := float64(seen.Quantile(0.9)); got < q || got > q*1.13 {
			t.Fatalf("90%% within %v, not %v", seen.Quantile(0.9), time.Duration(q))
		}
	})
}

func TestLimitWindow_Extremes(t *testing.T) {
	w := newLimitWindow(1, time.Second)
	for _, took := range []time.Duration{-time.Hour, 0, 1, 24 * time.Hour} {
		w.answered(int64(took))
	}
	seen := w.see(1)
	assert.Equal(t, 4, seen.Calls)
	assert.Equal(t, 2, int(seen.counts[0])+int(seen.counts[1])-1)
	assert.GreaterOrEqual(t, seen.Quantile(1), longestTook)
	assert.Zero(t, LimitWindow{}.Quantile(0.5))
	assert.Equal(t, ms, LimitWindow{Took: ms}.Quantile(0.5))
	w.crowd(5)
	w.crowd(3)
	assert.Equal(t, 5, w.see(1).InFlight)
}
