package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newGroup(t *testing.T, w *wire, th Threshold, opts ...SharedOption) *SharedGroup {
	t.Helper()
	g, err := NewSharedGroup("users", w, th, opts...)
	require.NoError(t, err)
	return g
}

func TestSharedGroup_SaysAllThatIsWrong(t *testing.T) {
	_, err := NewSharedGroup("users", newWire(t), Global(PerSecond(1)), WithSharedMaxKeys(0),
		WithSharedOverride("vip", WithBurst(0), WithSharedMaxKeys(1)),
		WithSharedOverride("bot", WithOnMode(func(ModeEvent) {})))
	assert.EqualError(t, err, `ratelimit: MaxKeys 0 is not positive
ratelimit: override of "vip": ratelimit: WithSharedMaxKeys and WithSharedOverride are for NewSharedGroup
ratelimit: Burst 0 is less than 1, and not Auto
ratelimit: override of "bot": ratelimit: guards, listeners, loggers and totals are the group's`)
}

// Keys have buckets of their own, over all nodes, and one node is counted for all.
func TestSharedGroup_KeysAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		var groups []*SharedGroup
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range 3 {
			g := newGroup(t, w, Global(PerHour(10)), WithSharedOverride("vip", WithSharedThreshold(Global(PerHour(100)))))
			groups = append(groups, g)
			running.Go(func() { _ = g.Run(ctx) })
		}
		time.Sleep(8 * time.Second)
		for key, want := range map[string]int{"ann": 10, "bob": 10, "": 10, "vip": 100, "users": 10} {
			admitted := 0
			for i := range 300 {
				if groups[i%3].Get(key).Allow() {
					admitted++
				}
			}
			assert.InDelta(t, want, admitted, 3, key)
		}
		for _, g := range groups {
			snap := g.Snapshot()
			assert.Equal(t, 5, snap.Keys)
			assert.Equal(t, 5, g.Len())
			assert.Equal(t, int64(3), snap.Node.Nodes)
			assert.True(t, snap.Node.Running)
			assert.Equal(t, "users", snap.Name)
			assert.EqualError(t, g.Get("ann").Run(ctx), `ratelimit: "users" is of a group: call the group's Run`)
			assert.Equal(t, "ann", g.Get("ann").Snapshot().Key)
			assert.Same(t, g.Get("ann"), g.Get("ann"))
		}
		cancel()
		running.Wait()
		held := int64(0)
		for _, g := range groups {
			for _, s := range g.All() {
				held += s.Snapshot().Held
			}
		}
		assert.Zero(t, held)
	})
}

// A flood of keys costs bounded memory, and makes nobody forget who is over his limit.
func TestSharedGroup_AFloodOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		g := newGroup(t, w, Global(PerHour(10)), WithSharedMaxKeys(100))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = g.Run(ctx) })
		bad := g.Get("bad")
		for bad.Allow() {
		}
		shared, _ := g.Overflow()
		together := 0
		for i := range 5_000 {
			if s := g.Get(fmt.Sprint(i)); s.Allow() && s == shared {
				together++
			}
			require.LessOrEqual(t, g.Len(), 100)
		}
		_, times := g.Overflow()
		assert.Positive(t, times)
		for shared.Allow() { // how often there was no room depends on how soon Run lets go
			together++
		}
		assert.Equal(t, 10, together, "all new keys share one limit when there is no room")
		assert.Same(t, bad, g.Get("bad"))
		assert.False(t, bad.Allow())
		time.Sleep(2 * time.Hour)
		for i := range 50 {
			assert.True(t, g.Get(fmt.Sprint("late", i)).Allow(), "when it has passed, there is room again")
		}
		assert.LessOrEqual(t, g.Len(), 100)
		cancel()
		running.Wait()
	})
}

func TestSharedGroup_Update(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, newWire(t), Global(PerHour(10)), WithSharedOverride("vip", WithBurst(70)))
		ann, vip := g.Get("ann"), g.Get("vip")
		own := ann.Config()
		own.Burst = 5
		require.NoError(t, ann.Update(own))
		assert.Equal(t, int64(5), ann.Config().burst())
		c := g.Config()
		c.Threshold = Global(PerHour(30))
		require.NoError(t, g.Update(c))
		assert.Equal(t, c, g.Config())
		assert.Equal(t, c, ann.Config())
		assert.Equal(t, int64(70), vip.Config().burst())
		assert.Equal(t, PerHour(30), vip.Config().Threshold.Rate)
		assert.Equal(t, int64(30), g.Get("new").Snapshot().Burst)
		c.Nodes = 0
		assert.Error(t, g.Update(c))
		assert.Equal(t, int64(1), g.Config().Nodes)
	})
}

// When the store fails, it fails for all keys at once, and is found once.
func TestSharedGroup_OneModeForAllKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t)
		g := newGroup(t, w, Global(PerHour(100)), WithNodes(10))
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = g.Run(ctx) })
		time.Sleep(8 * time.Second)
		w.down.Store(true)
		for i := range 5 {
			g.Get(fmt.Sprint(i)).Allow()
		}
		assert.Equal(t, ModeFallback, g.Snapshot().Node.Mode)
		before := w.takes.Load()
		for i := range 50 {
			assert.True(t, g.Get(fmt.Sprint(i)).Allow())
		}
		assert.Equal(t, before, w.takes.Load())
		w.down.Store(false)
		time.Sleep(3 * time.Second)
		assert.Equal(t, ModeShared, g.Snapshot().Node.Mode)
		assert.Equal(t, int64(55), w.debited.Load(), "what was given out is told for every key")
		cancel()
		running.Wait()
	})
}

func TestSharedGroup_NilAndOverflowLetPass(t *testing.T) {
	var g *SharedGroup
	assert.True(t, g.Get("any").Allow())
	assert.Equal(t, "", g.Name())
	assert.Zero(t, g.Len())
	s, times := g.Overflow()
	assert.Nil(t, s)
	assert.Zero(t, times)
	for range g.All() {
		t.Fatal("there is none")
	}
	assert.Equal(t, SharedConfig{}, g.Config())
	assert.Error(t, g.Update(SharedConfig{}))
	assert.Equal(t, SharedGroupSnapshot{}, g.Snapshot())
}
