package bulkhead

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newGroup(t *testing.T, limit int, opts ...Option) *Group {
	t.Helper()
	g, err := NewGroup("upstream", limit, opts...)
	require.NoError(t, err)
	return g
}

func holds(g *Group, key string) bool {
	for have := range g.All() {
		if have == key {
			return true
		}
	}
	return false
}

func TestGroup_OneBulkheadForEachKey(t *testing.T) {
	g := newGroup(t, 3)
	a := g.Get("a")
	assert.Same(t, a, g.Get("a"))
	assert.NotSame(t, a, g.Get("b"))
	assert.Equal(t, "upstream/a", a.Name())
	assert.Equal(t, "upstream", g.Name())
	assert.Equal(t, 3, a.Config().Limit)
	assert.Equal(t, 2, g.Len())
	keys := map[string]*Bulkhead{}
	for key, b := range g.All() {
		keys[key] = b
	}
	assert.Equal(t, map[string]*Bulkhead{"a": a, "b": g.Get("b")}, keys)
}

func TestGroup_TheNilGroupLetsEverythingPass(t *testing.T) {
	var g *Group
	assert.Nil(t, g.Get("a"))
	assert.NoError(t, g.Get("a").Do(t.Context(), nothing))
	assert.Zero(t, g.Len())
	assert.Empty(t, g.Name())
	assert.Zero(t, g.Config())
	assert.NoError(t, g.Update(waits()))
	assert.Error(t, g.Update(Config{}))
	b, times := g.Overflow()
	assert.Nil(t, b)
	assert.Zero(t, times)
	for range g.All() {
		t.Error("it has no members")
	}
	g.Collect(nil)
	assert.Empty(t, g.View())
}

func TestGroup_EveryComplaintAtOnce(t *testing.T) {
	_, err := NewGroup("", -1, WithMaxKeys(0), WithLimit(4), WithOverride("legacy", WithLimit(-2), WithMaxKeys(3)))
	require.Error(t, err)
	for _, complaint := range []string{
		"name is empty", "MaxKeys 0", "WithLimit is for WithOverride", `override of "legacy"`, "Limit -2",
		"WithMaxKeys and WithOverride are for NewGroup",
	} {
		assert.ErrorContains(t, err, complaint)
	}
	_, err = New("b", 1, WithMaxKeys(3))
	assert.ErrorIs(t, err, errGroupOption)
	_, err = New("b", 1, WithLimit(1))
	assert.ErrorContains(t, err, "WithLimit is for WithOverride")
}

func TestGroup_Overrides(t *testing.T) {
	g := newGroup(t, 3, WithQueue(5, time.Second),
		WithOverride("legacy", WithLimit(1)), WithOverride("legacy", WithQueue(9, time.Minute)),
		WithOverride("other", WithConfig(waits()), WithLimit(7)), WithOverride("same", WithConfig(DefaultConfig())))
	legacy := g.Config()
	legacy.Limit, legacy.MaxQueue, legacy.MaxWait = 1, 9, time.Minute
	other := waits()
	other.Limit = 7
	same := DefaultConfig()
	same.Limit = 3
	for key, want := range map[string]Config{"legacy": legacy, "other": other, "same": same, "orders": g.Config()} {
		assert.Equal(t, want, g.Get(key).Config(), key)
	}
}

func TestGroup_UpdateReachesAllAndKeepsOverrides(t *testing.T) {
	g := newGroup(t, 3, WithOverride("legacy", WithLimit(1)))
	a, legacy := g.Get("a"), g.Get("legacy")
	require.NoError(t, a.SetLimit(8))
	c := g.Config()
	c.Limit, c.MaxQueue, c.MaxWait = 5, 2, time.Second
	require.NoError(t, g.Update(c))
	late := g.Get("late")
	shared, _ := g.Overflow()
	for b, want := range map[*Bulkhead]int{a: 5, legacy: 1, late: 5, shared: 5} {
		assert.Equal(t, want, b.Config().Limit, b.Name())
		assert.Equal(t, 2, b.Config().MaxQueue, b.Name())
		assert.Equal(t, want, b.Snapshot().Limit, b.Name())
	}
	c.CoDelInterval = 0
	assert.ErrorContains(t, g.Update(c), `override of "legacy"`)
	assert.Equal(t, 5, a.Config().Limit)
}

// Concurrent updates leave every bulkhead with the same configuration: the group's.
func TestGroup_ConcurrentUpdatesAgree(t *testing.T) {
	g := newGroup(t, 1)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 50 {
				c := g.Config()
				c.Limit = 1 + i*50 + j
				assert.NoError(t, g.Update(c))
				g.Get(fmt.Sprint(i, j))
			}
		})
	}
	all.Wait()
	want := g.Config()
	for key, b := range g.All() {
		require.Equal(t, want, b.Config(), key)
	}
}

// An update of one bulkhead and one of its group at the same time leave it with the
// configuration of one of them, and the group knows whose: else it would let go of one
// that is configured by itself, and hold one for ever that is not.
func TestGroup_KnowsWhoHasConfiguredItself(t *testing.T) {
	const mine = 7
	g := newGroup(t, 3)
	a := g.Get("a")
	for i := range rounds(20_000) {
		c := g.Config()
		c.Limit = 3 + i%2
		var both sync.WaitGroup
		both.Go(func() { assert.NoError(t, g.Update(c)) })
		both.Go(func() { assert.NoError(t, a.SetLimit(mine)) })
		both.Wait()
		require.Equal(t, a.Config().Limit == mine, a.member.Own.Load(), "round %d", i)
		require.NoError(t, g.Update(c))
		require.False(t, a.member.Own.Load())
	}
}

// https://github.com/alibaba/sentinel-golang/issues/599: counters of keys are thrown
// away when too many keys come, calls under way give back to new ones, and these go
// below zero. Here a key whose place is taken is the same as long as it is taken.
func TestScenario29_AFloodOfKeysLosesNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 2, WithMaxKeys(10))
		held, err := g.Get("held").Acquire(t.Context())
		require.NoError(t, err)
		for i := range 1000 {
			b := g.Get(fmt.Sprint("key", i))
			require.NoError(t, b.Do(t.Context(), nothing))
			require.LessOrEqual(t, g.Len(), 10)
			time.Sleep(time.Second)
			require.Equal(t, 1, g.Get("held").Snapshot().InFlight)
		}
		held.Close()
		assert.Zero(t, g.Get("held").Snapshot().InFlight)
	})
}

func TestGroup_TheLongestUnusedGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 2, WithMaxKeys(4))
		for _, key := range []string{"busy", "old", "used", "own"} {
			g.Get(key)
			time.Sleep(time.Second)
		}
		p, err := g.Get("busy").Acquire(t.Context())
		require.NoError(t, err)
		require.NoError(t, g.Get("own").SetLimit(9))
		require.NoError(t, g.Get("used").Do(t.Context(), nothing))
		g.Get("new")
		assert.False(t, holds(g, "old"))
		time.Sleep(time.Second)
		g.Get("newer")
		assert.False(t, holds(g, "new") && holds(g, "used"))
		for _, key := range []string{"busy", "own", "newer"} {
			assert.True(t, holds(g, key), key)
		}
		p.Close()
	})
}

// While somebody holds a bulkhead that the group has let go, it is the key's; a
// configuration of its own brings it back.
func TestGroup_AHeldBulkheadStaysTheKeys(t *testing.T) {
	g := newGroup(t, 2, WithMaxKeys(1))
	a := g.Get("a")
	p, err := g.Get("b").Acquire(t.Context())
	require.NoError(t, err)
	require.False(t, holds(g, "a"))
	runtime.GC()
	assert.Same(t, a, g.Get("a"))
	assert.False(t, holds(g, "a"), "there is no room: b is in use")
	require.NoError(t, a.SetLimit(9))
	assert.True(t, holds(g, "a"))
	p.Close()
	runtime.KeepAlive(a)
}

// When all are in use, new keys share one bulkhead, and it is counted.
func TestGroup_Overflow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, 1, WithMaxKeys(3))
		var free []func()
		for i := range 3 {
			free = append(free, fill(t, g.Get(fmt.Sprint(i)), 1))
		}
		a, b := g.Get("a"), g.Get("b")
		assert.Same(t, a, b)
		shared, times := g.Overflow()
		assert.Same(t, a, shared)
		assert.EqualValues(t, 2, times)
		assert.Contains(t, g.View(), "_overflow")
		free[0]()
		time.Sleep(time.Second) // a full group does not look for idle ones all the time
		assert.NotSame(t, shared, g.Get("a"), "there is room again")
	})
}

func TestGroup_GetOfAKnownKeyAllocatesNothing(t *testing.T) {
	g := newGroup(t, 1)
	for i := range 100 {
		g.Get(fmt.Sprint(i))
	}
	for range 1000 { // until the map is published
		g.Get("57")
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() { g.Get("57") }))
}

func TestGroup_TheKeyIsCopied(t *testing.T) {
	g := newGroup(t, 1)
	big := strings.Repeat("x", 1<<20)
	g.Get(big[:4])
	for key := range g.All() {
		assert.Equal(t, "xxxx", key)
	}
}
