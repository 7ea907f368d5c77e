package ratelimit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCensus_WantsTwoBeatsInARow(t *testing.T) {
	for _, c := range []struct {
		name        string
		heard, want []int64
	}{
		{"the first counts if it says more", []int64{7, 7}, []int64{7, 7}},
		{"one late beat changes nothing", []int64{10, 9, 10, 9, 10, 11, 10}, []int64{10, 10, 10, 10, 10, 10, 10}},
		{"two do", []int64{10, 9, 9, 9}, []int64{10, 10, 9, 9}},
		{"more, too", []int64{3, 4, 4, 3, 4}, []int64{3, 3, 4, 4, 4}},
		{"of two, the closer", []int64{10, 5, 8, 8}, []int64{10, 10, 8, 8}},
		{"and then the other, if it stays", []int64{10, 8, 5, 5, 5}, []int64{10, 10, 8, 5, 5}},
		{"once more and once less is neither", []int64{10, 11, 9, 11, 9}, []int64{10, 10, 10, 10, 10}},
		{"a store that has lost its nodes", []int64{10, 1, 10, 10}, []int64{10, 10, 10, 10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var x census
			n, got := int64(1), []int64(nil)
			for _, heard := range c.heard {
				n = x.count(n, heard)
				got = append(got, n)
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// Who was told of more nodes than he hears of first waits for another beat.
func TestCensus_TheFirstBeat(t *testing.T) {
	var x census
	assert.Equal(t, int64(5), x.count(5, 2))
	assert.Equal(t, int64(3), x.count(5, 3))
	x = census{}
	assert.Equal(t, int64(6), x.count(5, 6))
}

func counts(f *fleet) (all []int64) {
	for _, s := range f.nodes {
		all = append(all, s.Snapshot().Node.Nodes)
	}
	return all
}

func TestRun_CountsTheNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 3, Global(PerSecond(300)), WithNodes(5))
		assert.Equal(t, []int64{3, 3, 3}, counts(f))
		assert.Equal(t, PerSecond(100), perSecond(f.nodes[0].Snapshot().LocalRate))

		// A fourth, for a while.
		ctx, cancel := context.WithCancel(t.Context())
		s, err := NewShared("api", f.wire, Global(PerSecond(300)), WithNodes(5))
		require.NoError(t, err)
		assert.Equal(t, int64(5), s.Snapshot().Node.Nodes, "as long as Run has not counted them")
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(8 * time.Second)
		assert.Equal(t, []int64{4, 4, 4}, counts(f))
		cancel()
		assert.ErrorIs(t, <-done, context.Canceled)
		assert.Equal(t, int64(4), s.Snapshot().Node.Nodes, "the last that it knew")
		time.Sleep(8 * time.Second)
		assert.Equal(t, []int64{3, 3, 3}, counts(f), "it has said goodbye")

		f.wire.down.Store(true)
		time.Sleep(time.Minute)
		assert.Equal(t, []int64{3, 3, 3}, counts(f), "while the store does not answer, the last number counts")
	})
}

// perSecond is a rate in tokens a second, if it comes out even.
func perSecond(r Rate) Rate { return PerSecond(r.Tokens * int64(time.Second) / int64(r.Per)) }

// A node that has died is missed after NodeTTL, and two beats.
func TestRun_MissesADeadNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Global(PerSecond(300)))
		_, err := f.wire.Beat(t.Context(), "api", "the dead one", 10*time.Second)
		require.NoError(t, err)
		time.Sleep(8 * time.Second)
		assert.Equal(t, []int64{3, 3}, counts(f))
		time.Sleep(9 * time.Second)
		assert.Equal(t, []int64{2, 2}, counts(f))
	})
}

func TestRun_OnlyOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, Global(PerSecond(300)))
		s := f.nodes[0]
		assert.EqualError(t, s.Run(t.Context()), `ratelimit: "api" runs already`)
		f.flood(f.nodes, 1, time.Millisecond, time.Second)
		f.stop()
		f.flood(f.nodes, 1, 10*time.Millisecond, time.Second)
		for i := 0; s.Snapshot().Held == 0; i++ {
			require.Less(t, i, 100, "without Run it buys leases, too")
			s.Allow()
			time.Sleep(10 * time.Millisecond)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(time.Second)
		assert.Zero(t, s.Snapshot().Held, "another one finds what is there")
		f.flood(f.nodes, 1, 10*time.Millisecond, time.Second)
		assert.Positive(t, s.Snapshot().Lease)
		assert.ErrorIs(t, <-done, context.DeadlineExceeded)
		assert.Zero(t, s.Snapshot().Held)
	})
}

// With a store that hangs, Run ends within a second all the same.
func TestRun_EndsSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, Global(PerSecond(300)), WithStoreTimeout(time.Minute))
		f.flood(f.nodes, 1, time.Millisecond, time.Second)
		f.wire.mute.Store(true)
		time.Sleep(5 * time.Second)
		began := time.Now()
		f.stop()
		assert.LessOrEqual(t, time.Since(began), time.Second)
	})
}

// ClusterAverage is so much for each live node, together: an idle node's part goes to
// the others, and a new node brings its own.
func TestClusterAverage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, ClusterAverage(PerSecond(50)))
		snap := f.nodes[0].Snapshot()
		assert.Equal(t, PerSecond(200), snap.Rate)
		assert.Equal(t, int64(200), snap.Burst)
		assert.Equal(t, PerSecond(50), perSecond(snap.LocalRate))
		assert.Equal(t, int64(50), snap.LocalBurst)
		f.flood(f.nodes[:1], 1, 2*time.Millisecond, 10*time.Second)
		assert.InDelta(t, 200+200*10, f.take(), 60)
		f.flood(f.nodes, 1, 2*time.Millisecond, 10*time.Second)
		assert.InDelta(t, 200*10, f.take(), 60)
	})
}

// PerNode is a limit that nobody shares, and no store is asked.
func TestPerNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, PerNode(PerSecond(50)))
		f.wire.down.Store(true)
		f.flood(f.nodes, 1, 2*time.Millisecond, 10*time.Second)
		assert.InDelta(t, 4*(50+50*10), f.take(), 8)
		assert.Zero(t, f.wire.takes.Load()+f.wire.beats.Load()+f.wire.debits.Load())
		s := f.nodes[0]
		assert.Equal(t, ModeShared, s.Snapshot().Node.Mode)
		assert.Equal(t, PerSecond(50), s.Snapshot().Rate)
		assert.Equal(t, int64(50), s.Snapshot().Burst)

		time.Sleep(time.Second)
		d := s.Take(10)
		assert.Equal(t, int64(40), d.Remaining())
		s.Refund(d)
		assert.Equal(t, int64(50), s.Peek(0).Remaining())
		assert.Equal(t, int64(0), s.Debit(60).Remaining())
		assert.Equal(t, 220*time.Millisecond, s.Take(1).RetryAfter())
		assert.NoError(t, s.Wait(t.Context()))
		assert.ErrorIs(t, s.Do(t.Context(), nothing), ErrLimited)
		assert.Zero(t, s.Snapshot().Owed)
		assert.Zero(t, f.wire.takes.Load()+f.wire.beats.Load()+f.wire.debits.Load())
	})
}

func TestShared_UnlimitedAndBlocked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := newFleet(t, 1, Global(Unlimited())).nodes[0]
		assert.True(t, open.AllowN(1<<40))
		assert.Equal(t, int64(1<<63-1), open.Take(1).Remaining())
		shut := newFleet(t, 1, Global(Blocked())).nodes[0]
		d := shut.Take(1)
		assert.True(t, d.Never())
		assert.Equal(t, "ratelimit \"api\": blocked: 1 of blocked, 0 left", d.Err().Error())
		for _, s := range []*Shared{open, shut} {
			assert.Zero(t, s.Snapshot().Node.Store.Takes)
			s.Debit(5)
			s.Refund(s.Take(1))
			assert.Zero(t, s.Snapshot().Node.Store.Debits)
		}
	})
}
