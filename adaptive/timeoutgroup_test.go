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

func newGroup(t *testing.T, opts ...TimeoutOption) *TimeoutGroup {
	t.Helper()
	g, err := NewTimeoutGroup("upstream", 10*ms, 5*time.Second, opts...)
	require.NoError(t, err)
	return g
}

func holds(g *TimeoutGroup, key string) bool {
	for have := range g.All() {
		if have == key {
			return true
		}
	}
	return false
}

func TestTimeoutGroup_OneTimeoutForEachKey(t *testing.T) {
	g := newGroup(t)
	a := g.Get("a")
	assert.Same(t, a, g.Get("a"))
	assert.NotSame(t, a, g.Get("b"))
	assert.Equal(t, "upstream/a", a.Name())
	assert.Equal(t, "upstream", g.Name())
	assert.Equal(t, 2, g.Len())
	keys := map[string]*Timeout{}
	for key, to := range g.All() {
		keys[key] = to
	}
	assert.Equal(t, map[string]*Timeout{"a": a, "b": g.Get("b")}, keys)
}

func TestTimeoutGroup_TheNilGroupLetsEverythingPass(t *testing.T) {
	var g *TimeoutGroup
	assert.Nil(t, g.Get("a"))
	assert.NoError(t, g.Get("a").Do(t.Context(), nothingToDo))
	assert.Zero(t, g.Len())
	assert.Empty(t, g.Name())
	assert.Zero(t, g.Config())
	assert.NoError(t, g.Update(DefaultTimeoutConfig(ms, time.Second)))
	assert.Error(t, g.Update(TimeoutConfig{}))
	to, times := g.Overflow()
	assert.Nil(t, to)
	assert.Zero(t, times)
	for range g.All() {
		t.Error("it has no members")
	}
	g.Collect(nil)
	assert.Empty(t, g.View())
}

func TestTimeoutGroup_EveryComplaintAtOnce(t *testing.T) {
	_, err := NewTimeoutGroup("", time.Second, ms, WithMaxKeys(0), WithOverride("legacy", WithBounds(ms, 0), WithMaxKeys(3), nil))
	require.Error(t, err)
	for _, complaint := range []string{
		"name is empty", "MaxKeys 0", "Max 1ms is less than Base 1s", `override of "legacy"`, "Max 0s is not in (0, 24h0m0s]", "option 2 is nil",
		"WithMaxKeys and WithOverride are for NewTimeoutGroup",
	} {
		assert.ErrorContains(t, err, complaint)
	}
	_, err = NewTimeout("x", ms, time.Second, WithOverride("legacy"))
	assert.ErrorIs(t, err, errGroupOption)
}

// The bounds are the group's, and for some keys others.
func TestTimeoutGroup_Overrides(t *testing.T) {
	g := newGroup(t, WithMargin(2),
		WithOverride("reports", WithBounds(time.Second, time.Minute)), WithOverride("reports", WithRule(MeanMultiple(3))),
		WithOverride("own", WithEstimator(func() Estimator { return always{Estimate{Limit: 7 * time.Second}} })))
	reports := g.Config()
	reports.Base, reports.Max, reports.Rule = time.Second, time.Minute, MeanMultiple(3)
	assert.Equal(t, reports, g.Get("reports").Config())
	assert.Equal(t, time.Minute, g.Get("reports").Value())
	assert.Equal(t, g.Config(), g.Get("orders").Config())
	assert.Equal(t, "own", g.Get("own").Snapshot().Rule)
	require.NoError(t, g.Get("own").Do(t.Context(), nothingToDo))
	assert.Equal(t, 5*time.Second, g.Get("own").Value(), "within the group's bounds")
}

func TestTimeoutGroup_UpdateReachesAllAndKeepsOverrides(t *testing.T) {
	g := newGroup(t, WithOverride("reports", WithBounds(time.Second, time.Minute)))
	a, reports := g.Get("a"), g.Get("reports")
	require.NoError(t, a.Update(DefaultTimeoutConfig(ms, time.Hour)))
	c := g.Config()
	c.Max, c.Margin = 2*time.Second, 3
	require.NoError(t, g.Update(c))
	late := g.Get("late")
	shared, _ := g.Overflow()
	for to, want := range map[*Timeout]time.Duration{a: 2 * time.Second, reports: time.Minute, late: 2 * time.Second, shared: 2 * time.Second} {
		assert.Equal(t, want, to.Config().Max, to.Name())
		assert.InDelta(t, 3, to.Config().Margin, 0, to.Name())
		assert.Equal(t, want, to.plan.Load().longest.limit, to.Name())
	}
	c.Margin = 0
	assert.ErrorContains(t, g.Update(c), `override of "reports"`)
	assert.InDelta(t, 3, a.Config().Margin, 0)
}

// Concurrent updates leave every Timeout with the same configuration: the group's.
func TestTimeoutGroup_ConcurrentUpdatesAgree(t *testing.T) {
	g := newGroup(t, WithOverride("0 0", WithMargin(2)))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				c := g.Config()
				c.Max = time.Second + time.Duration(i*50+j)*ms
				assert.NoError(t, g.Update(c))
				g.Get(fmt.Sprint(i, j))
			}
		})
	}
	all.Wait()
	want := g.Config()
	for key, to := range g.All() {
		require.Equal(t, want.Max, to.Config().Max, key)
	}
}

// One bad host made the percentile of all so long that nobody was hedged any more:
// https://issues.apache.org/jira/browse/CASSANDRA-14293. Here each host has its own.
func TestTimeoutGroup_OneBadHostMakesNoOtherWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t)
		for range 300 {
			for host, took := range map[string]time.Duration{"good": 5 * ms, "fair": 40 * ms, "bad": 900 * ms} {
				go func() { _ = g.Get(host).Do(t.Context(), service(func() time.Duration { return took })) }()
			}
			time.Sleep(20 * ms)
		}
		time.Sleep(5 * time.Second)
		assert.Equal(t, 10*ms, g.Get("good").Value())
		assert.InEpsilon(t, float64(50*ms), float64(g.Get("fair").Value()), 0.15)
		assert.InEpsilon(t, float64(1125*ms), float64(g.Get("bad").Value()), 0.15)
	})
}

// A flood of keys costs bounded memory; those in use keep what they have learnt.
func TestTimeoutGroup_AFloodOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, WithMaxKeys(10))
		busy := service(func() time.Duration { return 20 * ms })
		for i := range 500 {
			require.NoError(t, g.Get("busy").Do(t.Context(), busy))
			require.NoError(t, g.Get(fmt.Sprint("key", i)).Do(t.Context(), nothingToDo))
			require.LessOrEqual(t, g.Len(), 10)
			time.Sleep(time.Second)
		}
		assert.InEpsilon(t, float64(25*ms), float64(g.Get("busy").Value()), 0.15)
		assert.EqualValues(t, 500, g.Get("busy").Snapshot().Totals.Finished)
	})
}

// The longest unused one goes first; one that is used, or looks for its limit, or has a
// configuration of its own, stays.
func TestTimeoutGroup_WhoGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, WithMaxKeys(5))
		for _, key := range []string{"lost", "own", "old", "young"} {
			require.NoError(t, g.Get(key).Do(t.Context(), nothingToDo))
			time.Sleep(time.Second)
		}
		c := g.Config()
		c.Margin = 2
		require.NoError(t, g.Get("own").Update(c))
		lost := g.Get("lost")
		for range 100 {
			require.NoError(t, lost.Do(t.Context(), nothingToDo))
		}
		time.Sleep(tickEvery)
		for range 100 {
			a, err := lost.Begin(t.Context())
			require.NoError(t, err)
			time.Sleep(lost.Value())
			a.Done(context.DeadlineExceeded)
		}
		require.Equal(t, Outage, lost.Snapshot().State)
		time.Sleep(time.Minute)
		require.NoError(t, g.Get("busy").Do(t.Context(), nothingToDo))
		come := func(key, goes string) {
			g.Get(key)
			assert.True(t, holds(g, key))
			assert.False(t, holds(g, goes), "%s goes for %s", goes, key)
			time.Sleep(time.Second)
		}
		come("new 1", "old")
		come("new 2", "young")
		come("new 3", "new 1")
		for _, key := range []string{"lost", "own", "busy"} {
			assert.True(t, holds(g, key), key)
		}
		require.NoError(t, g.Update(c)) // now it is like the others
		come("new 4", "new 2")          // as seen when it was not
		come("new 5", "own")
		assert.True(t, holds(g, "lost"))
	})
}

// While somebody holds a Timeout that the group has let go, it is the key's, and a call
// that ends brings it back.
func TestTimeoutGroup_AHeldTimeoutStaysTheKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time goes by, so "b" is in use throughout
		g := newGroup(t, WithMaxKeys(1))
		a, err := g.Get("a").Begin(t.Context())
		require.NoError(t, err)
		require.NoError(t, g.Get("b").Do(t.Context(), nothingToDo))
		require.False(t, holds(g, "a"))
		runtime.GC()
		assert.Same(t, a.term.t, g.Get("a"), "its attempt holds it")
		assert.False(t, holds(g, "a"), "there is no room")
		a.Done(nil)
		assert.True(t, holds(g, "a"))
		assert.Equal(t, 2, g.Len(), "until another one can go")
		runtime.KeepAlive(&a)
	})
}

// When all are in use, new keys share one Timeout, and it is counted.
func TestTimeoutGroup_Overflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, WithMaxKeys(3))
		for i := range 3 {
			require.NoError(t, g.Get(fmt.Sprint(i)).Do(t.Context(), nothingToDo))
		}
		a, b := g.Get("a"), g.Get("b")
		assert.Same(t, a, b)
		shared, times := g.Overflow()
		assert.Same(t, a, shared)
		assert.Equal(t, "upstream/_overflow", shared.Name())
		assert.EqualValues(t, 2, times)
		assert.Contains(t, g.View(), "_overflow")
		time.Sleep(10 * time.Second)
		assert.NotSame(t, shared, g.Get("a"), "there is room again")
	})
}

func TestTimeoutGroup_GetOfAKnownKeyAllocatesNothing(t *testing.T) {
	g := newGroup(t)
	for i := range 100 {
		g.Get(fmt.Sprint(i))
	}
	for range 1000 { // until the map is published
		g.Get("57")
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { g.Get("57") }))
}

// A compact key takes at most 5 KiB also with all that belongs to a group.
func TestTimeoutGroup_MemoryOfAKey(t *testing.T) {
	g := newGroup(t, WithCompact(), WithMaxKeys(1000))
	i := 0
	assert.LessOrEqual(t, sizeOf(t, 500, func() *Timeout { i++; return g.Get(fmt.Sprint(i)) }), 2<<10, "idle")
	runtime.KeepAlive(g)
}

// Foreign code is not called while the group's lock is held (law 8).
func TestTimeoutGroup_EstimatorsMayUseTheGroup(t *testing.T) {
	var g *TimeoutGroup
	made := 0
	g = newGroup(t, WithEstimator(func() Estimator {
		made++
		if g != nil {
			_ = g.Len()
			_ = g.Get("other")
		}
		return always{}
	}))
	require.NoError(t, g.Get("a").Do(t.Context(), nothingToDo))
	require.NoError(t, g.Get("b").Do(t.Context(), nothingToDo))
	assert.Equal(t, 2, made)
	g = newGroup(t, WithEstimator(func() Estimator { return nil }))
	assert.PanicsWithError(t, errNoEstimator.Error(), func() { _ = g.Get("a").Do(t.Context(), nothingToDo) })
}

func TestTimeoutGroup_Collect(t *testing.T) {
	g := newGroup(t)
	require.NoError(t, g.Get("a").Do(t.Context(), nothingToDo))
	var set metrics.Set
	require.NoError(t, set.Add("upstream", g))
	got := map[string]float64{}
	set.Collect(func(s metrics.Sample) bool {
		require.NoError(t, s.Desc.Validate())
		got[s.Desc.Name+strings.Join(append([]string{""}, s.Labels...), " ")] = s.Value
		return true
	})
	for sample, want := range map[string]float64{
		"timeout_calls upstream/a finished": 1, "timeout_limit_seconds upstream/a": 5, "timeout_state upstream/a cold": 1,
		"group_keys upstream": 1, "group_overflows upstream": 0,
	} {
		value, ok := got[sample]
		assert.True(t, ok, sample)
		assert.InDelta(t, want, value, 0, sample)
	}
	for most := range len(got) - 1 { // one is the set's
		n := 0
		g.Collect(func(metrics.Sample) bool { n++; return n <= most })
		assert.Equal(t, most+1, n, "it stops when told to")
	}
	assert.Contains(t, g.View(), "a")
}
