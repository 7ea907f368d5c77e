package adaptive

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/metrics"
)

func newLimiters(t *testing.T, opts ...LimiterOption) *LimiterGroup {
	t.Helper()
	g, err := NewLimiterGroup("upstream", opts...)
	require.NoError(t, err)
	return g
}

func has(g *LimiterGroup, key string) bool {
	for have := range g.All() {
		if have == key {
			return true
		}
	}
	return false
}

func TestLimiterGroup_OneLimiterForEachKey(t *testing.T) {
	g := newLimiters(t)
	a := g.Get("a")
	assert.Same(t, a, g.Get("a"))
	assert.NotSame(t, a, g.Get("b"))
	assert.Equal(t, "upstream/a", a.Name())
	assert.Equal(t, "upstream", g.Name())
	assert.Equal(t, 2, g.Len())
	keys := map[string]*Limiter{}
	for key, l := range g.All() {
		keys[key] = l
	}
	assert.Equal(t, map[string]*Limiter{"a": a, "b": g.Get("b")}, keys)
}

func TestLimiterGroup_TheNilGroupLetsEverythingPass(t *testing.T) {
	var g *LimiterGroup
	assert.Nil(t, g.Get("a"))
	assert.NoError(t, g.Get("a").Do(t.Context(), nothingToDo))
	assert.Zero(t, g.Len())
	assert.Empty(t, g.Name())
	assert.Zero(t, g.Config())
	assert.NoError(t, g.Update(DefaultLimiterConfig()))
	assert.Error(t, g.Update(LimiterConfig{}))
	l, times := g.Overflow()
	assert.Nil(t, l)
	assert.Zero(t, times)
	for range g.All() {
		t.Error("it has no members")
	}
	g.Collect(nil)
	assert.Empty(t, g.View())
}

func TestLimiterGroup_EveryComplaintAtOnce(t *testing.T) {
	_, err := NewLimiterGroup("", WithLimitWindow(0), WithMaxLimiters(0), WithLimiterOverride("legacy", WithInitialLimit(0), WithMaxLimiters(3), nil))
	require.Error(t, err)
	for _, complaint := range []string{
		"name is empty", "MaxLimiters 0", "Window 0s", `override of "legacy"`, "Initial 0 is not in", "option 2 is nil",
		"WithMaxLimiters and WithLimiterOverride are for NewLimiterGroup",
	} {
		assert.ErrorContains(t, err, complaint)
	}
}

func TestLimiterGroup_Overrides(t *testing.T) {
	s := &script{says: func(LimitWindow) float64 { return 3 }}
	g := newLimiters(t, WithInitialLimit(10),
		WithLimiterOverride("reports", WithLimits(1, 30)), WithLimiterOverride("reports", WithLimitRule(AIMD(time.Second))),
		WithLimiterOverride("own", s.option()))
	reports := g.Config()
	reports.Min, reports.Max, reports.Rule = 1, 30, AIMD(time.Second)
	assert.Equal(t, reports, g.Get("reports").Config())
	assert.Equal(t, g.Config(), g.Get("orders").Config())
	own := g.Get("own")
	assert.Equal(t, "own", own.Snapshot().Rule)
	passes(t, own, own.window.Load().began, 101, 10*ms, nil)
	assert.Equal(t, 3, own.Limit())

	none := newLimiters(t, WithLimitAlgorithm(func() LimitAlgorithm { return nil })).Get("a")
	assert.PanicsWithError(t, errNoAlgorithm.Error(), func() { passes(t, none, none.window.Load().began, 101, 10*ms, nil) })
	assert.Zero(t, none.InFlight())
}

func TestLimiterGroup_UpdateReachesAllAndKeepsOverrides(t *testing.T) {
	g := newLimiters(t, WithLimiterOverride("reports", WithLimits(2, 2000)))
	a, reports := g.Get("a"), g.Get("reports")
	own := a.Config()
	own.Max = 77
	require.NoError(t, a.Update(own))
	c := g.Config()
	c.Max, c.Window = 500, 2*time.Second
	require.NoError(t, g.Update(c))
	late := g.Get("late")
	shared, _ := g.Overflow()
	for l, want := range map[*Limiter]int{a: 500, reports: 2000, late: 500, shared: 500} {
		assert.Equal(t, want, l.Config().Max, l.Name())
		assert.Equal(t, 2*time.Second, l.Config().Window, l.Name())
	}
	c.Window = 0
	assert.ErrorContains(t, g.Update(c), `override of "reports"`)
	assert.Equal(t, 2*time.Second, a.Config().Window)
}

// Concurrent updates leave every Limiter with the same configuration: the group's.
func TestLimiterGroup_ConcurrentUpdatesAgree(t *testing.T) {
	g := newLimiters(t, WithLimiterOverride("0 0", WithAging(0)))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				c := g.Config()
				c.Max = 1000 + i*50 + j
				assert.NoError(t, g.Update(c))
				g.Get(fmt.Sprint(i, j))
			}
		})
	}
	all.Wait()
	want := g.Config()
	for key, l := range g.All() {
		require.Equal(t, want.Max, l.Config().Max, key)
	}
}

// A host that is slow fills its own places.
func TestLimiterGroup_OneSlowHostMakesNoOtherWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiters(t, WithInitialLimit(3), WithLimits(3, 3))
		var all sync.WaitGroup
		nap := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error { time.Sleep(d); return nil }
		}
		for range 3 {
			all.Go(func() { assert.NoError(t, g.Get("slow").Do(t.Context(), nap(time.Hour))) })
		}
		synctest.Wait()
		assert.ErrorIs(t, g.Get("slow").Do(t.Context(), nothingToDo), ErrLimited)
		assert.NoError(t, g.Get("quick").Do(t.Context(), nap(ms)))
		all.Wait()
	})
}

// A flood of keys costs bounded memory; one that is in use keeps what it has learnt.
func TestLimiterGroup_AFloodOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiters(t, WithMaxLimiters(10))
		for i := range 500 {
			require.NoError(t, g.Get("busy").Do(t.Context(), func(context.Context) error { time.Sleep(20 * ms); return nil }))
			require.NoError(t, g.Get(fmt.Sprint("key", i)).Do(t.Context(), nothingToDo))
			require.LessOrEqual(t, g.Len(), 10)
			time.Sleep(200 * ms)
		}
		busy := g.Get("busy").Snapshot()
		assert.EqualValues(t, 500, busy.Totals.Answered)
		assert.Equal(t, 20*ms, busy.Baseline.Round(ms))
	})
}

// While somebody holds a Limiter that the group has let go, it is the key's.
func TestLimiterGroup_AHeldLimiterStaysTheKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiters(t, WithMaxLimiters(1))
		a := g.Get("a")
		p, err := g.Get("b").Acquire(t.Context())
		require.NoError(t, err)
		require.False(t, has(g, "a"))
		runtime.GC()
		assert.Same(t, a, g.Get("a"), "it is held")
		c := g.Get("c")
		shared, times := g.Overflow()
		assert.Same(t, shared, c, "b is in use")
		assert.Equal(t, "upstream/_overflow", shared.Name())
		assert.EqualValues(t, 1, times)
		assert.Contains(t, g.View(), "_overflow")
		p.Done(nil)
		time.Sleep(time.Second)
		assert.NotSame(t, shared, g.Get("c"), "there is room again")
		runtime.KeepAlive(a)
	})
}

// One with a configuration of its own is not let go.
func TestLimiterGroup_OwnConfigurationStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newLimiters(t, WithMaxLimiters(2))
		c := g.Config()
		c.Max = 77
		require.NoError(t, g.Get("own").Update(c))
		for i := range 20 {
			g.Get(fmt.Sprint(i))
			time.Sleep(time.Second)
		}
		assert.True(t, has(g, "own"))
		require.NoError(t, g.Update(g.Config()))
		for i := range 20 {
			g.Get(fmt.Sprint("more", i))
			time.Sleep(time.Second)
		}
		assert.False(t, has(g, "own"), "now it is like the others")
	})
}

func TestLimiterGroup_GetOfAKnownKeyAllocatesNothing(t *testing.T) {
	g := newLimiters(t)
	for i := range 100 {
		g.Get(fmt.Sprint(i))
	}
	for range 1000 { // until the map is published
		g.Get("57")
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { g.Get("57") }))
}

func TestLimiterGroup_MemoryOfAKey(t *testing.T) {
	if raceDetector {
		t.Skip("needs a build without -race, which takes memory of its own")
	}
	g := newLimiters(t, WithMaxLimiters(1000))
	keep := make([]*Limiter, 500)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range keep {
		keep[i] = g.Get(fmt.Sprint(i))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(keep)
	assert.LessOrEqual(t, int(after.HeapAlloc-before.HeapAlloc)/len(keep), 5<<10)
}

func TestLimiterGroup_Collect(t *testing.T) {
	g := newLimiters(t)
	require.NoError(t, g.Get("a").Do(t.Context(), nothingToDo))
	got := figures(t, g)
	assert.InDelta(t, 1, got["limiter_calls upstream/a answered"], 0)
	assert.InDelta(t, 20, got["limiter_limit upstream/_overflow"], 0)
	assert.InDelta(t, 1, got["group_keys upstream"], 0)
	assert.Contains(t, got, "group_overflows upstream")
	assert.Equal(t, map[string]LimiterSnapshot{"a": g.Get("a").Snapshot()}, g.View())
	for most := range len(got) {
		n := 0
		g.Collect(func(metrics.Sample) bool { n++; return n < most })
		assert.Equal(t, max(most, 1), n, "it stops when told")
	}
}

// figures is what a source yields, by name and labels.
func figures(t *testing.T, source metrics.Source) map[string]float64 {
	t.Helper()
	var set metrics.Set
	require.NoError(t, set.Add("it", source))
	got := map[string]float64{}
	set.Collect(func(s metrics.Sample) bool {
		require.NoError(t, s.Desc.Validate())
		got[s.Desc.Name+strings.Join(append([]string{""}, s.Labels...), " ")] = s.Value
		return true
	})
	return got
}

// An update of one Limiter and one of its group at the same time leave it with the
// configuration of one of them, and the group knows whose.
func TestLimiterGroup_KnowsWhoHasConfiguredItself(t *testing.T) {
	g := newLimiters(t)
	a := g.Get("a")
	mine := g.Config()
	mine.Max = 7777
	rounds := 10_000
	if brief() {
		rounds = 1000
	}
	for i := range rounds {
		c := g.Config()
		c.Max = 2000 + i%2
		var both sync.WaitGroup
		both.Go(func() { assert.NoError(t, g.Update(c)) })
		both.Go(func() { assert.NoError(t, a.Update(mine)) })
		both.Wait()
		require.Equal(t, a.Config() == mine, a.member.Own.Load(), "round %d", i)
		require.NoError(t, g.Update(c))
		require.False(t, a.member.Own.Load())
	}
}
