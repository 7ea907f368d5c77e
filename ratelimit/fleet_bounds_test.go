package ratelimit

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Limiters that count locally and tell the store afterwards let 180 pass of 60 in a
// minute, with three nodes (Kong/kong#6723), or counted twice (Kong/kong#11859), or
// let non-owners pass for ever (mailgun/gubernator#208). With leases that are paid for
// first, it is a lease for each node at most.
func TestScenario20_LeasesAdmitAtMostOneLeaseANodeMore(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []SharedOption
		more int64
	}{
		{"leases of 5", []SharedOption{WithMaxLease(5)}, 15},
		{"strict", []SharedOption{WithStrict()}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 3, Global(PerMinute(60)), c.opts...)
				f.flood(f.nodes, 1, 50*time.Millisecond, 3*time.Minute)
				f.bounds(PerMinute(60), 60, c.more)
				assert.GreaterOrEqual(t, len(f.admitted), 60+3*60-4, "and nothing is held back")
			})
		})
	}
}

// Ten nodes, whatever the rate, the burst, the way to the store, and who gets how much
// of the traffic: never more than the limit and a lease each, and never much less than
// the rate when it is asked for.
func TestFleet_KeepsItsBounds(t *testing.T) {
	for _, c := range []struct {
		rate  Rate
		burst int64
		delay time.Duration
		every time.Duration
		busy  int // nodes that have the traffic
		opts  []SharedOption
	}{
		{PerSecond(1000), 1000, time.Millisecond, 3 * time.Millisecond, 10, nil},
		{PerSecond(1000), 1000, time.Millisecond, 500 * time.Microsecond, 1, nil},
		{PerSecond(1000), 100, time.Millisecond, 3 * time.Millisecond, 10, nil},
		{PerSecond(1000), 10, 0, 3 * time.Millisecond, 10, nil},
		{PerSecond(100), 100, 5 * time.Millisecond, 7 * time.Millisecond, 10, nil},
		{PerSecond(100), 3, 0, 9 * time.Millisecond, 3, nil},
		{PerSecond(7), 7, time.Millisecond, 11 * time.Millisecond, 10, nil},
		{PerSecond(1000), 1000, time.Millisecond, 3 * time.Millisecond, 10, []SharedOption{WithStrict()}},
		{PerSecond(500), 200, time.Millisecond, 3 * time.Millisecond, 10, []SharedOption{WithMaxLease(20)}},
	} {
		name := fmt.Sprintf("%v burst %d delay %v, %d busy, %d options", c.rate, c.burst, c.delay, c.busy, len(c.opts))
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 10, Global(c.rate), append(c.opts, WithBurst(c.burst))...)
				f.wire.delay.Store(int64(c.delay))
				length := 10 * time.Second
				if testing.Short() {
					length = 3 * time.Second
				}
				f.flood(f.nodes[:c.busy], 1, c.every, length)
				f.bounds(c.rate, c.burst, 10*f.nodes[0].current().most)
				most := f.nodes[0].current().most
				assert.GreaterOrEqual(t, int64(len(f.admitted)), c.burst+c.rate.within(length)*95/100-10*most-1)
				for _, s := range f.nodes {
					assert.LessOrEqual(t, s.Snapshot().Held, most)
				}
			})
		})
	}
}

// What calls wait for in a steady state is nothing: below the limit, at it and far
// above it, with a burst that leaves room for leases and with one that does not. Far
// above it, with leases of a token or two, some find that Run is not back yet: how many
// depends on which goroutine goes first at one instant. It is less than one in fifty.
func TestFleet_DoesNoIOOnTheWayOfACall(t *testing.T) {
	for _, c := range []struct {
		burst int64
		every time.Duration // at each of ten nodes; 10 ms is the limit
		calls int64         // of the store by a node in a second, at most
	}{
		{1000, 20 * time.Millisecond, 30},
		{1000, 9 * time.Millisecond, 45},
		{1000, 3333 * time.Microsecond, 45},
		{1000, 500 * time.Microsecond, 45},
		{100, 9 * time.Millisecond, 120},
		{100, 500 * time.Microsecond, 180},
		{40, 20 * time.Millisecond, 60},
		{40, 9 * time.Millisecond, 140},
		{40, 3333 * time.Microsecond, 180},
		{40, 500 * time.Microsecond, 220},
	} {
		t.Run(fmt.Sprintf("burst %d, every %v", c.burst, c.every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, 10, Global(PerSecond(1000)), WithBurst(c.burst))
				f.wire.delay.Store(int64(time.Millisecond))
				f.flood(f.nodes, 1, c.every, 2*time.Second) // until it is steady
				f.take()
				before := f.wire.takes.Load()
				f.flood(f.nodes, 1, c.every, time.Second)
				most := f.asked / 500
				if c.burst <= 100 && c.every < 3*time.Millisecond {
					most = f.asked / 50
				}
				assert.LessOrEqual(t, f.waited, most, "of %d calls, those that waited", f.asked)
				assert.LessOrEqual(t, f.wire.takes.Load()-before, c.calls*10, "calls of the store")
				assert.GreaterOrEqual(t, len(f.admitted), min(f.asked, 1000)*90/100)
				for _, s := range f.nodes {
					assert.Zero(t, s.Snapshot().Node.Store.Lost)
				}
			})
		})
	}
}

// A key that is refused is asked for once until it may be there again, however many
// want it, and however long the store takes.
func TestFleet_AsksNoMoreForWhatWasRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		fleet func(*testing.T, int, Threshold, ...SharedOption) *fleet
		opts  []SharedOption
	}{
		{"strict", newFleet, []SharedOption{WithStrict()}},
		{"leases", newFleet, nil},
		{"strict without Run", newStill, []SharedOption{WithStrict()}},
		{"leases without Run", newStill, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := c.fleet(t, 1, Global(Every(5*time.Second)), c.opts...)
				f.wire.delay.Store(int64(5 * time.Millisecond))
				require.True(t, f.nodes[0].Allow())
				before := f.wire.takes.Load()
				s := f.nodes[0]
				f.flood([]*Shared{s, s, s, s}, 1, 2*time.Millisecond, 25*time.Second)
				assert.LessOrEqual(t, f.wire.takes.Load()-before, int64(2*5+2), "a grant in 5 s, and hardly a refusal")
				assert.InDelta(t, 5, len(f.admitted), 1)
			})
		})
	}
}

// Of those who find no lease at the same time, one buys it for all.
func TestFleet_BuysOneLeaseAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerHour(10_000)), WithMaxLease(100))
		f.wire.delay.Store(int64(time.Millisecond))
		s := f.nodes[0]
		for f.left() > 5_000 {
			f.flood(f.nodes, 10, time.Millisecond, 10*time.Millisecond)
		}
		s.withdraw(1 << 40)
		before := f.left()
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { s.Allow() })
		}
		all.Wait()
		assert.LessOrEqual(t, before-f.left(), int64(50+100))
		assert.Zero(t, s.Snapshot().Node.Store.Lost)
	})
}

// However many take and give back at the same time, a node holds a lease at most.
func TestFleet_HoldsALeaseAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, Global(PerSecond(100_000)), WithMaxLease(50))
		f.wire.delay.Store(int64(100 * time.Microsecond))
		s := f.nodes[0]
		var all sync.WaitGroup
		for g := range 8 {
			all.Go(func() {
				for i := range 500 {
					d := s.Take(int64(1 + (g+i)%7))
					if held := s.Snapshot().Held; held > 50 {
						panic(held)
					}
					if d.OK() && i%2 == 0 {
						time.Sleep(time.Microsecond)
						s.Refund(d)
					}
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		assert.Zero(t, s.Snapshot().Held)
	})
}

// A node that has nothing to do holds nothing back from the others.
func TestFleet_ReturnsUnusedLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, Global(PerHour(3600)), WithBurst(1000), WithMaxLease(50))
		f.flood(f.nodes, 1, 5*time.Millisecond, 500*time.Millisecond)
		used := int64(f.take())
		held := int64(0)
		for _, s := range f.nodes {
			held += s.Snapshot().Held
		}
		assert.Positive(t, held)
		time.Sleep(time.Second)
		for _, s := range f.nodes {
			assert.Zero(t, s.Snapshot().Held)
			assert.Zero(t, s.Snapshot().Node.Store.Lost)
		}
		g, err := f.wire.Store.Take(t.Context(), StoreKey{"api", ""}, f.nodes[0].current().quota, Ask{})
		require.NoError(t, err)
		assert.InDelta(t, 1000-used+2, g.Remaining, 2)
	})
}

// So does one that leaves.
func TestFleet_ALeavingNodeReturnsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Global(PerHour(3600)), WithBurst(1000), WithMaxLease(50))
		f.flood(f.nodes, 1, 5*time.Millisecond, 500*time.Millisecond)
		used := int64(f.take())
		f.stop()
		for _, s := range f.nodes {
			assert.Zero(t, s.Snapshot().Held)
			assert.False(t, s.Snapshot().Node.Running)
		}
		g, err := f.wire.Store.Take(t.Context(), StoreKey{"api", ""}, f.nodes[0].current().quota, Ask{})
		require.NoError(t, err)
		assert.InDelta(t, 1000-used+1, g.Remaining, 1)
		nodes, err := f.wire.Store.Beat(t.Context(), "api", "observer", time.Second)
		require.NoError(t, err)
		assert.Equal(t, int64(1), nodes, "and is not counted any more")
	})
}
