package ratelimit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// left is how many tokens the store has for the limiter.
func (f *fleet) left() int64 {
	f.t.Helper()
	g, err := f.wire.Store.Take(f.t.Context(), StoreKey{"api", ""}, f.nodes[0].current().quota, Ask{})
	require.NoError(f.t, err)
	return g.Remaining
}

func TestNewShared_SaysAllThatIsWrong(t *testing.T) {
	_, err := NewShared("", nil, Threshold{}, nil, WithOnMode(nil), WithSharedMaxKeys(5), WithNodes(0))
	assert.EqualError(t, err, `ratelimit: option 0 is nil
ratelimit: WithOnMode(nil): a listener is wanted
ratelimit: WithSharedMaxKeys and WithSharedOverride are for NewSharedGroup
ratelimit: the name is empty
ratelimit: the store is nil
ratelimit: Threshold "ThresholdKind(0) 0/0s" is not one of Global, ClusterAverage, PerNode
ratelimit: Nodes 0 is not in [1, 10000]`)
}

func TestNewShared_DoesNotMindADeadStore(t *testing.T) {
	w := newWire(t)
	w.down.Store(true)
	s, err := NewShared("api", w, Global(PerSecond(10)))
	require.NoError(t, err)
	assert.True(t, s.Allow())
}

func TestShared_NilLetsEverythingPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *Shared
		assert.True(t, s.Allow())
		assert.True(t, s.AllowN(1<<60))
		assert.True(t, s.Take(-1).OK())
		assert.True(t, s.Peek(5).OK())
		assert.True(t, s.Debit(5).OK())
		s.Refund(s.Take(1))
		assert.NoError(t, s.Wait(t.Context()))
		assert.NoError(t, s.Do(t.Context(), nothing))
		assert.Equal(t, "", s.Name())
		assert.Equal(t, SharedConfig{}, s.Config())
		assert.NoError(t, s.Update(sharedConfigOf(Global(PerSecond(1)))))
		assert.Equal(t, SharedSnapshot{}, s.Snapshot())
		assert.True(t, TakeAll(1, s.Layer()).OK())
		for range s.Collect {
			t.Fatal("a nil limiter has no figures")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, s.Run(ctx), context.DeadlineExceeded)
		var g *SharedGroup
		assert.Nil(t, g.Get("key"))
	})
}

// Without Run every call that finds no lease asks the store, and buys one for those
// after it; the limit holds all the same.
func TestShared_WithoutRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 3, Global(PerSecond(1000)), WithNodes(3))
		f.wire.delay.Store(int64(time.Millisecond))
		f.flood(f.nodes, 1, 2*time.Millisecond, 5*time.Second)
		f.bounds(PerSecond(1000), 1000, 3*f.nodes[0].current().most)
		assert.GreaterOrEqual(t, len(f.admitted), 1000+5*1000*95/100)
		assert.Less(t, f.wire.takes.Load(), int64(f.asked/5), "a lease serves several calls")
		assert.Zero(t, f.wire.beats.Load())
		for _, s := range f.nodes {
			snap := s.Snapshot()
			assert.False(t, snap.Node.Running)
			assert.Equal(t, int64(3), snap.Node.Nodes)
			assert.Positive(t, snap.Node.Store.Waited)
		}
	})
}

// Without Run, a call in a while finds out for all whether the store answers again.
func TestShared_WithoutRunOneCallTriesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerSecond(100)), WithNodes(2))
		f.fail()
		s := f.nodes[0]
		time.Sleep(time.Second - time.Millisecond)
		calls := s.Snapshot().Node.Store.Failures
		f.flood(f.nodes, 1, time.Millisecond, time.Second)
		assert.Equal(t, calls+1, s.Snapshot().Node.Store.Failures)
		f.wire.down.Store(false)
		f.flood(f.nodes, 1, time.Millisecond, time.Second+200*time.Millisecond)
		assert.Equal(t, ModeShared, s.Snapshot().Node.Mode)
		assert.Zero(t, s.Snapshot().Owed, "and what was given out meanwhile is told first")
		assert.Positive(t, f.wire.debited.Load())
	})
}

// A caller who goes away while he tries the store for all says nothing about it, and
// does not keep others from trying.
func TestShared_WithoutRunACallerWhoTriesAndGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerSecond(100)), WithNodes(2))
		f.fail()
		f.wire.down.Store(false)
		f.wire.mute.Store(true)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, f.nodes[0].WaitN(ctx, 100), context.DeadlineExceeded)
		f.wire.mute.Store(false)
		assert.True(t, f.nodes[0].Allow())
		assert.Equal(t, ModeShared, f.nodes[0].Snapshot().Node.Mode)
	})
}

// go-zero's nodes took their own clocks for the store's: two of them, a second apart,
// let 1000 of 1000 calls pass at once, at 100 a second. No node here sends a time.
func TestScenario15_NoNodesClockPlaysAPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 2, Global(PerSecond(100)), WithStrict())
		for i := range 1000 {
			f.ask(f.nodes[i%2], 1)
		}
		assert.Equal(t, 100, f.take())
	})
}

// throttled forgot a key after whole seconds: at 1 token in 1.9 s, 9 passed in 10 s.
func TestScenario13_AnExpiryIsRoundedUp(t *testing.T) {
	for _, opts := range [][]SharedOption{nil, {WithStrict()}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 1, Global(Every(1900*time.Millisecond)), opts...)
			f.flood(f.nodes, 1, 100*time.Millisecond, 10*time.Second)
			assert.LessOrEqual(t, len(f.admitted), 6)
			assert.GreaterOrEqual(t, len(f.admitted), 5)
		})
	}
}

// What a Decision says of a shared limit.
func TestShared_Decision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerMinute(10)))
		s := f.nodes[0]
		d := s.Take(4)
		assert.True(t, d.OK())
		assert.Equal(t, int64(6), d.Remaining())
		assert.Equal(t, 24*time.Second, d.ResetAfter())
		assert.Equal(t, "api", d.Resource())
		assert.Equal(t, "shared", d.Policy())
		assert.Equal(t, PerMinute(10), d.Limit())
		assert.Equal(t, int64(10), d.Capacity())
		assert.Zero(t, d.RetryAfter())

		d = s.Take(9)
		assert.False(t, d.OK())
		assert.Equal(t, int64(6), d.Remaining())
		assert.GreaterOrEqual(t, d.RetryAfter(), 18*time.Second)
		assert.LessOrEqual(t, d.RetryAfter(), 18*time.Second*11/10)
		assert.ErrorIs(t, d.Err(), ErrLimited)
		assert.False(t, s.Peek(9).OK())
		assert.True(t, s.Peek(6).OK(), "fewer are there")
		assert.True(t, s.AllowN(6))

		assert.True(t, s.Take(11).Never())
		assert.ErrorIs(t, s.Take(11).Err(), ErrExceedsCapacity)
		assert.True(t, s.Take(-1).Never())
		assert.True(t, s.Take(0).OK())
		assert.Zero(t, s.Take(0).Remaining())
		assert.Equal(t, "api", s.Name())
	})
}

// Who comes again after RetryAfter gets his tokens; who comes sooner is not asked for.
func TestShared_RetryAfterHolds(t *testing.T) {
	for _, opts := range [][]SharedOption{nil, {WithStrict()}} {
		for _, run := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				f := newStill(t, 1, Global(PerMinute(10)), opts...)
				if run {
					f = newFleet(t, 1, Global(PerMinute(10)), opts...)
				}
				s := f.nodes[0]
				require.True(t, s.AllowN(10))
				for n := int64(1); n <= 10; n++ {
					d := s.Take(n)
					require.False(t, d.OK())
					most := time.Duration(n) * 6 * time.Second // less by a fraction of a token
					require.Greater(t, d.RetryAfter(), most-6*time.Second)
					require.LessOrEqual(t, d.RetryAfter(), most*11/10+10*time.Millisecond)
					before := f.wire.takes.Load()
					again := s.Take(n)
					require.Equal(t, d.RetryAfter(), again.RetryAfter())
					require.Equal(t, before, f.wire.takes.Load())
					time.Sleep(d.RetryAfter())
					require.True(t, s.Take(n).OK(), "%d after %v", n, d.RetryAfter())
					if left := s.Peek(0).Remaining(); left > 0 {
						require.True(t, s.AllowN(left))
					}
				}
			})
		}
	}
}

// A refusal of many does not stand in the way of few.
func TestShared_ADenialIsOfSoManyTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerHour(10)), WithStrict())
		s := f.nodes[0]
		require.True(t, s.AllowN(5))
		assert.False(t, s.AllowN(8))
		assert.False(t, s.AllowN(7))
		assert.False(t, s.AllowN(6))
		assert.True(t, s.AllowN(5))
		assert.Equal(t, int64(5), f.wire.takes.Load())
		longer := s.Take(4).RetryAfter()
		shorter := s.Take(1).RetryAfter()
		assert.GreaterOrEqual(t, longer, 4*6*time.Minute)
		assert.Less(t, shorter, 4*6*time.Minute)
	})
}

func TestShared_UsesWhatIsAtHandForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerHour(100)), WithMaxLease(10))
		s := f.nodes[0]
		for i := 0; i < 20 || s.Snapshot().Held == 0; i++ {
			require.True(t, s.Allow())
		}
		held := s.Snapshot().Held
		before := f.left()
		d := s.Take(held + 5)
		assert.True(t, d.OK())
		assert.LessOrEqual(t, before-f.left(), int64(5+10))
		require.True(t, s.AllowN(f.left()+s.Snapshot().Held), "all there is can be had at once")
		assert.Zero(t, f.left())
	})
}

// What is at hand stays there when the store has not the rest.
func TestShared_KeepsWhatIsAtHandWhenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerHour(100)), WithMaxLease(10))
		s := f.nodes[0]
		for i := 0; i < 20 || s.Snapshot().Held == 0; i++ {
			require.True(t, s.Allow())
		}
		held, left := s.Snapshot().Held, f.left()
		assert.False(t, s.AllowN(held+left+1))
		assert.Equal(t, held, s.Snapshot().Held)
		assert.Equal(t, left, f.left())
		f.wire.down.Store(true)
		s.denied.Store(nil)
		s.AllowN(held + left)
		assert.Equal(t, held, s.Snapshot().Held)
	})
}

// Who tells Run of something while it is busy with the same key is not forgotten.
func TestShared_WhatComesDuringAVisitIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, Global(PerHour(100)), WithStrict())
		f.wire.delay.Store(int64(10 * time.Millisecond))
		s := f.nodes[0]
		s.Debit(1)
		time.Sleep(5 * time.Millisecond)
		s.Debit(2)
		time.Sleep(100 * time.Millisecond)
		assert.Zero(t, s.Snapshot().Owed)
		s.Debit(3)
		time.Sleep(100 * time.Millisecond)
		assert.Zero(t, s.Snapshot().Owed)
		assert.Equal(t, int64(94), f.left())
	})
}

func TestShared_Refund(t *testing.T) {
	for _, run := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newStill(t, 1, Global(PerHour(100)), WithStrict())
			if run {
				f = newFleet(t, 1, Global(PerHour(100)), WithStrict())
			}
			s := f.nodes[0]
			d := s.Take(60)
			s.Refund(d)
			synctest.Wait()
			assert.Equal(t, int64(100), f.left())
			s.Refund(s.Take(101))
			s.Refund(s.Take(0))
			synctest.Wait()
			assert.Equal(t, int64(1), s.Snapshot().Node.Totals.Refunded)
			assert.Equal(t, int64(1), f.wire.refunds.Load())
		})
	}
}

// Tokens of a lease go back into it, and those that it has no room for to the store.
func TestShared_RefundOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, Global(PerHour(1000)), WithMaxLease(20))
		s := f.nodes[0]
		for range 100 {
			require.True(t, s.Allow())
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		var taken []Decision
		for s.Snapshot().Held > 0 {
			taken = append(taken, s.Take(1))
		}
		synctest.Wait() // Run has filled the lease again
		require.Positive(t, s.Snapshot().Held)
		for _, d := range taken {
			s.Refund(d)
			assert.LessOrEqual(t, s.Snapshot().Held, int64(20))
		}
		time.Sleep(time.Second)
		assert.Zero(t, s.Snapshot().Held, "an unused lease goes back")
		assert.Equal(t, int64(1000-100), f.left())
		assert.Zero(t, s.Snapshot().Node.Store.Lost)
	})
}

func TestShared_Debit(t *testing.T) {
	for _, run := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newStill(t, 1, Global(PerSecond(10)))
			if run {
				f = newFleet(t, 1, Global(PerSecond(10)))
			}
			s := f.nodes[0]
			s.Debit(15)
			synctest.Wait()
			d := s.Take(1)
			assert.False(t, d.OK())
			assert.GreaterOrEqual(t, d.RetryAfter(), 600*time.Millisecond)
			time.Sleep(d.RetryAfter())
			assert.True(t, s.Allow())
			s.Debit(1 << 60)
			synctest.Wait()
			assert.InDelta(t, 1.1*float64(time.Second), s.Take(1).RetryAfter(), float64(150*time.Millisecond), "at most a burst of debt")
			assert.True(t, s.Debit(-1).Never())
			assert.Equal(t, int64(1)<<60+15, s.Snapshot().Node.Totals.Tokens-s.Snapshot().Node.Totals.Admitted)
		})
	}
}

func TestShared_InATakeAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerHour(3)), WithStrict())
		s := f.nodes[0]
		local, err := New("local", PerHour(2))
		require.NoError(t, err)
		other, err := New("other", PerHour(100))
		require.NoError(t, err)
		for range 2 {
			assert.True(t, TakeAll(1, local.Layer(), s.Layer()).OK())
		}
		d := TakeAll(1, local.Layer(), s.Layer())
		assert.Equal(t, "local", d.Resource())
		assert.Equal(t, int64(1), f.left(), "who is over his own limit uses up nothing of the others'")
		assert.Equal(t, "local", TakeAll(1, s.Layer(), local.Layer()).Resource())
		assert.Equal(t, int64(1), f.left(), "and what was taken has come back")
		assert.True(t, TakeAll(1, other.Layer(), s.Layer()).OK())
		d = TakeAll(1, other.Layer(), s.Layer())
		assert.Equal(t, "api", d.Resource())
		assert.Equal(t, int64(99), other.Peek(0).Remaining())

		var taken [2]Decision
		s.node.store.(*wire).Store = newMemoryStore(t, 16)
		time.Sleep(2 * time.Hour)
		layers := []Layer{other.Layer(), s.Layer()}
		require.True(t, TakeEach(taken[:], 1, layers...).OK())
		for i, l := range layers {
			l.Refund(taken[i])
		}
		assert.Equal(t, int64(3), f.left())
	})
}

func TestShared_DoAndChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerHour(2)))
		s := f.nodes[0]
		ctx := t.Context()
		assert.NoError(t, s.Do(ctx, nothing))
		refused := func(context.Context) error { return sluice.ErrRejected }
		assert.ErrorIs(t, s.Do(ctx, refused), sluice.ErrRejected)
		assert.Equal(t, int64(1), f.left()+s.Snapshot().Held, "what a guard further in refused was given back")
		assert.ErrorIs(t, sluice.Chain(s).Do(ctx, refused), sluice.ErrRejected)
		assert.NoError(t, sluice.Chain(s).Do(ctx, nothing))
		err := s.Do(ctx, nothing)
		assert.ErrorIs(t, err, ErrLimited)
		assert.Same(t, err, s.Do(ctx, nothing), "built once for each denial")
		ended, end := context.WithCancel(ctx)
		end()
		assert.ErrorIs(t, s.Do(ended, nothing), context.Canceled)
		assert.ErrorIs(t, s.Wait(ended), context.Canceled)
		snap := s.Snapshot().Node
		assert.Equal(t, int64(4), snap.Totals.Admitted)
		assert.Equal(t, int64(2), snap.Totals.Refunded)
		assert.Equal(t, int64(2), snap.Refused.Limited)
		assert.Zero(t, snap.Store.Denials, "the last token's grant has said that there is no other")
	})
}

func TestShared_UpdateKeepsTheLevel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Global(PerHour(100)), WithStrict())
		s := f.nodes[0]
		require.True(t, s.AllowN(100))
		require.False(t, s.Allow())
		c := s.Config()
		require.NoError(t, s.Update(c))
		c.Threshold = Global(PerSecond(10))
		for _, s := range f.nodes {
			require.NoError(t, s.Update(c))
			assert.Equal(t, c, s.Config())
		}
		assert.False(t, s.Allow(), "the bucket is as empty as it was")
		time.Sleep(time.Second)
		f.flood(f.nodes, 1, 10*time.Millisecond, 5*time.Second)
		assert.InDelta(t, 10+50, f.take(), 3)

		c.Threshold = PerNode(PerSecond(5))
		require.NoError(t, s.Update(c))
		f.flood(f.nodes[:1], 1, 10*time.Millisecond, 5*time.Second)
		assert.InDelta(t, 5+25, f.take(), 6)
		c.Threshold.Rate = Rate{}
		before := s.Config()
		assert.Error(t, s.Update(c))
		assert.Equal(t, before, s.Config())
	})
}

// Everything at the same time, while time stands still, so that every token can be
// accounted for: given out and kept, held, or in the store.
func TestShared_ConservesTokens(t *testing.T) {
	for _, opts := range [][]SharedOption{{WithMaxLease(20)}, {WithStrict()}} {
		synctest.Test(t, func(t *testing.T) {
			const all = 4000
			f := newFleet(t, 4, Global(PerHour(1)), append(opts, WithBurst(all))...)
			require.True(t, f.nodes[0].AllowN(1000)) // the receipts of a bucket that is nearly full are worth less
			var wg sync.WaitGroup
			var mu sync.Mutex
			kept := int64(1000)
			for g := range 8 {
				wg.Go(func() {
					s := f.nodes[g%4]
					for i := range 300 {
						n := int64(1 + i%3)
						d := s.Take(n)
						if d.OK() && i%5 == 0 {
							s.Refund(d)
						} else if d.OK() {
							mu.Lock()
							kept += n
							mu.Unlock()
						}
						if i%50 == 0 {
							time.Sleep(time.Microsecond)
						}
					}
				})
			}
			wg.Wait()
			time.Sleep(time.Second)
			var held, lost int64
			for _, s := range f.nodes {
				snap := s.Snapshot()
				held += snap.Held
				lost += snap.Node.Store.Lost
				assert.Zero(t, snap.Owed)
			}
			assert.Zero(t, held)
			assert.Zero(t, lost)
			left := f.left()
			assert.LessOrEqual(t, kept+left, int64(all), "nothing is minted")
			assert.InDelta(t, all, kept+left, all/50, "and little is lost")
			assert.Less(t, clock.Now(), int64(time.Minute))
		})
	}
}
