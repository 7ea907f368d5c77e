package breaker

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

func newGroup(t *testing.T, opts ...Option) *Group {
	t.Helper()
	g, err := NewGroup("upstream", opts...)
	require.NoError(t, err)
	return g
}

// held returns the breaker of key if the group has not let go of it.
func held(g *Group, key string) *Breaker {
	for have, b := range g.All() {
		if have == key {
			return b
		}
	}
	return nil
}

func failOnce(t *testing.T, b *Breaker) {
	t.Helper()
	_ = b.Do(t.Context(), func(context.Context) error { return errors.New("down") })
}

func TestGroup_OneBreakerForEachKey(t *testing.T) {
	g := newGroup(t)
	a := g.Get("a")
	assert.Same(t, a, g.Get("a"))
	assert.NotSame(t, a, g.Get("b"))
	assert.Equal(t, "upstream/a", a.Name())
	assert.Equal(t, 2, g.Len())
	keys := map[string]*Breaker{}
	for key, b := range g.All() {
		keys[key] = b
	}
	assert.Equal(t, map[string]*Breaker{"a": a, "b": g.Get("b")}, keys)
}

func TestGroup_TheNilGroupLetsEverythingPass(t *testing.T) {
	var g *Group
	assert.Nil(t, g.Get("a"))
	assert.NoError(t, g.Get("a").Do(t.Context(), func(context.Context) error { return nil }))
	assert.Zero(t, g.Len())
	assert.NoError(t, g.Update(DefaultConfig()))
	for range g.All() {
		t.Error("it has no members")
	}
}

func TestGroup_EveryComplaintAtOnce(t *testing.T) {
	_, err := NewGroup("", WithMaxKeys(0), WithErrorRatio(2), WithOverride("legacy", WithProbes(), WithMaxKeys(3)))
	require.Error(t, err)
	for _, complaint := range []string{"name is empty", "MaxKeys 0", "Ratio 2", `override of "legacy"`, "Probes has 0 stages", "WithMaxKeys and WithOverride are for NewGroup"} {
		assert.ErrorContains(t, err, complaint)
	}
	_, err = New("b", WithMaxKeys(3))
	assert.ErrorIs(t, err, errGroupOption)
}

func TestGroup_AnOverrideReplacesTheRules(t *testing.T) {
	g := newGroup(t, WithErrorRatio(0.5), WithOpenFor(time.Second),
		WithOverride("legacy", WithErrorRatio(0.9)), WithOverride("legacy", WithMinRequests(7)))
	assert.Equal(t, []Rule{{Kind: ErrorRatio, Ratio: 0.9}}, g.Get("legacy").Config().Rules)
	assert.Equal(t, 7, g.Get("legacy").Config().MinRequests)
	assert.Equal(t, time.Second, g.Get("legacy").Config().OpenFor)
	assert.Equal(t, []Rule{{Kind: ErrorRatio, Ratio: 0.5}}, g.Get("orders").Config().Rules)
}

func TestGroup_UpdateReachesAllAndKeepsOverrides(t *testing.T) {
	g := newGroup(t, WithOverride("legacy", WithMinRequests(7)))
	a, legacy := g.Get("a"), g.Get("legacy")
	c := g.Config()
	c.MinRequests, c.OpenFor = 3, time.Minute
	require.NoError(t, g.Update(c))
	late := g.Get("late")
	for b, want := range map[*Breaker]int{a: 3, legacy: 7, late: 3, g.overflow: 3} {
		assert.Equal(t, want, b.Config().MinRequests, b.Name())
		assert.Equal(t, time.Minute, b.Config().OpenFor, b.Name())
	}
	c.MinRequests = 0
	assert.ErrorContains(t, g.Update(c), "MinRequests 0")
	assert.Equal(t, 3, a.Config().MinRequests)
}

// Concurrent updates leave every breaker with the same configuration: the group's.
func TestGroup_ConcurrentUpdatesAgree(t *testing.T) {
	g := newGroup(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				c := DefaultConfig()
				c.MinRequests = 1 + i*50 + j
				assert.NoError(t, g.Update(c))
				g.Get(fmt.Sprint(i, j))
			}
		})
	}
	all.Wait()
	want := g.Config().MinRequests
	for key, b := range g.All() {
		require.Equal(t, want, b.Config().MinRequests, key)
	}
}

// Removing an idle breaker that is open lets callers through to a dependency that
// is down: https://github.com/bytedance/gopkg/pull/254. Never removing one is a
// leak: https://github.com/afex/hystrix-go/issues/95,
// https://github.com/afex/hystrix-go/pull/64.
func TestT28_AFloodOfKeysForgetsNothingThatMatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, WithMaxKeys(100), WithErrorCount(1), WithOpenFor(time.Minute), WithJitter(0), WithBackoff(1, Auto))
		failOnce(t, g.Get("down"))
		require.Equal(t, Open, g.Get("down").State())
		time.Sleep(30 * time.Second)
		goroutines := runtime.NumGoroutine()
		keys := 10_000
		if testing.Short() {
			keys = 2_000
		}
		for i := range keys {
			b := g.Get(fmt.Sprint("key", i))
			_ = b.Do(t.Context(), func(context.Context) error { return nil })
			require.LessOrEqual(t, g.Len(), 100)
			if i%10 == 0 {
				time.Sleep(time.Second) // windows empty as time goes by, now and then
			}
			if i%100 == 0 {
				_ = g.Get("down").Trip(time.Minute)
			}
			require.ErrorIs(t, g.Get("down").Peek(), ErrOpen)
		}
		assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines)
	})
}

// While somebody holds a breaker that the group has let go, it is the key's.
func TestT28_AHeldBreakerStaysTheKeysBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, WithMaxKeys(2), WithErrorCount(1))
		kept := g.Get("kept")
		for i := range 10 {
			time.Sleep(time.Minute)
			g.Get(fmt.Sprint(i))
		}
		require.Nil(t, held(g, "kept"), "let go")
		runtime.GC()
		failOnce(t, kept)
		require.Equal(t, Open, kept.State())
		runtime.GC()
		assert.Same(t, kept, g.Get("kept"))
		assert.Same(t, kept, held(g, "kept"), "open: it has something to lose")
	})
}

// A key whose breaker nobody holds is forgotten, and made anew when asked for.
func TestT28_AForgottenKeyIsMadeAnew(t *testing.T) {
	g := newGroup(t, WithMaxKeys(1))
	g.Get("first")
	g.Get("second")
	require.Eventually(t, func() bool {
		runtime.GC()
		return len(g.members.Members()) == 1
	}, 10*time.Second, time.Millisecond, "the cleanup has run")
	assert.Equal(t, Closed, g.Get("first").State())
	assert.Equal(t, 1, g.Len())
}

// The longest idle one goes first; what has something to lose does not go.
func TestT28_WhoGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, WithMaxKeys(8), WithErrorCount(1), WithErrorRatio(0.5), WithConsecutiveFailures(3), WithMinRequests(5),
			WithWindow(time.Second, 10), WithOpenFor(time.Second), WithRecovery(Step{0.5, time.Hour}), WithJitter(0))
		open, forced, inRow, recovering := g.Get("open"), g.Get("forced"), g.Get("in a row"), g.Get("recovering")
		require.NoError(t, open.Trip(time.Hour))
		require.NoError(t, forced.Force(ForcedOpen, 0))
		require.NoError(t, inRow.Update(func() Config { c := inRow.Config(); c.Rules = c.Rules[2:]; return c }()))
		failOnce(t, inRow)
		require.NoError(t, recovering.Trip(time.Second))
		time.Sleep(time.Second)
		require.NoError(t, recovering.Do(t.Context(), func(context.Context) error { return nil }))
		busy := g.Get("busy")
		old, young := g.Get("old"), g.Get("young")
		_ = old.Do(t.Context(), func(context.Context) error { return nil })
		time.Sleep(time.Minute)
		_ = young.Do(t.Context(), func(context.Context) error { return nil })
		time.Sleep(time.Minute)
		_ = busy.Do(t.Context(), func(context.Context) error { return nil })
		g.Get("eighth")
		for _, key := range []string{"new 1", "new 2"} {
			g.Get(key)
		}
		held := map[string]bool{}
		for key := range g.All() {
			held[key] = true
		}
		assert.False(t, held["old"])
		assert.False(t, held["young"])
		for _, key := range []string{"open", "forced", "in a row", "recovering", "busy", "eighth", "new 1", "new 2"} {
			assert.True(t, held[key], key)
		}
	})
}

// When none can go, new keys share one breaker, and it is counted.
// Hosts and pods that are no more leave open breakers behind. When they had taken all the
// room, each new one would have shared the overflow breaker for as long as the process
// lives.
func TestGroup_TheDeadAreLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, WithMaxKeys(3), WithConsecutiveFailures(1), WithOpenFor(time.Minute), WithJitter(0))
		for _, key := range []string{"pod-1", "pod-2", "pod-3"} {
			failOnce(t, g.Get(key))
		}
		g.Get("pod-3").Force(ForcedOpen, 0)
		time.Sleep(time.Hour + time.Minute)
		shared, _ := g.Overflow()
		assert.Same(t, shared, g.Get("pod-4"), "an hour after their open periods is not over")
		failOnce(t, g.Get("pod-2")) // its probe: somebody asks for it, and opens it again
		time.Sleep(time.Second)
		assert.NotSame(t, shared, g.Get("pod-4"))
		assert.Nil(t, held(g, "pod-1"))
		assert.NotNil(t, held(g, "pod-2"))
		assert.NotNil(t, held(g, "pod-3"), "an override is kept")
		assert.Same(t, shared, func() *Breaker { failOnce(t, g.Get("pod-4")); return g.Get("pod-5") }())
	})
}

func TestGroup_Overflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, WithMaxKeys(3), WithErrorCount(1), WithOpenFor(time.Minute))
		for i := range 3 {
			failOnce(t, g.Get(fmt.Sprint(i)))
		}
		a, b := g.Get("a"), g.Get("b")
		assert.Same(t, a, b)
		shared, times := g.Overflow()
		assert.Same(t, a, shared)
		assert.EqualValues(t, 2, times)
		assert.Contains(t, g.View(), "_overflow")
		g.Get("0").Reset()
		time.Sleep(time.Second) // a full group does not look for idle ones all the time
		assert.NotSame(t, shared, g.Get("a"), "there is room again")
	})
}

func TestGroup_GetOfAKnownKeyAllocatesNothing(t *testing.T) {
	g := newGroup(t)
	for i := range 100 {
		g.Get(fmt.Sprint(i))
		g.Get(fmt.Sprint(i))
	}
	for range 1000 { // until the map is published
		g.Get("57")
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { g.Get("57") }))
}

func TestGroup_TheKeyIsCopied(t *testing.T) {
	g := newGroup(t)
	big := strings.Repeat("x", 1<<20)
	g.Get(big[:4])
	for key := range g.All() {
		assert.Equal(t, "xxxx", key)
	}
}

func TestGroup_ManyGoroutinesAgreeOnEveryKey(t *testing.T) {
	g := newGroup(t, WithMaxKeys(64))
	var mu sync.Mutex
	seen := map[string]*Breaker{}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 64 {
				key := fmt.Sprint(i)
				b := g.Get(key)
				_ = b.Do(context.Background(), func(context.Context) error { return nil })
				mu.Lock()
				if seen[key] == nil {
					seen[key] = b
				}
				assert.Same(t, seen[key], b)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	assert.Equal(t, 64, g.Len())
}

func TestGroup_Collect(t *testing.T) {
	g := newGroup(t, WithErrorCount(1))
	failOnce(t, g.Get("a"))
	_ = g.Get("a").Do(t.Context(), func(context.Context) error { return nil })
	var set metrics.Set
	require.NoError(t, set.Add("upstream", g))
	got := map[string]float64{}
	set.Collect(func(s metrics.Sample) bool {
		require.NoError(t, s.Desc.Validate())
		got[s.Desc.Name+strings.Join(append([]string{""}, s.Labels...), " ")] = s.Value
		return true
	})
	for sample, want := range map[string]float64{
		"calls upstream/a failure": 1, "calls upstream/a success": 0, "rejected upstream/a breaker open": 1,
		"breaker_state upstream/a open": 1, "breaker_state upstream/a closed": 0, "breaker_transitions upstream/a open": 1,
		"group_keys upstream": 1, "group_overflows upstream": 0,
	} {
		value, ok := got[sample]
		assert.True(t, ok, sample)
		assert.InDelta(t, want, value, 0, sample)
	}
	n := 0
	g.Collect(func(metrics.Sample) bool { n++; return n < 3 })
	assert.Equal(t, 3, n, "it stops when told to")
}

func TestLocalBudget_NotPositive(t *testing.T) {
	_, err := NewLocalBudget(0)
	assert.ErrorContains(t, err, "LocalBudget of 0 is not positive")
}

func TestLocalBudget_Steps(t *testing.T) {
	l := sluice.Must(NewLocalBudget(2))
	take := func(now int64, want bool) uint64 {
		fence, ok := l.take(now, "r", 10)
		assert.Equal(t, want, ok)
		return fence
	}
	a, b := take(0, true), take(1, true)
	take(2, false)
	l.Settle("r", a, sluice.Success)
	c := take(3, true)
	l.Settle("r", a, sluice.Success) // an old fence changes nothing
	take(4, false)
	l.Settle("r", b, sluice.Failure) // keeps its place until its lease is over
	take(10, false)
	l.Settle("r", c, sluice.Ignored)
	take(10, true)
	take(11, true)
	for i := range 1000 {
		_, ok := l.take(int64(1000+20*i), fmt.Sprint(i), 10)
		assert.True(t, ok)
	}
	assert.Less(t, len(l.leases), 40, "resources without a lease are forgotten")
}
