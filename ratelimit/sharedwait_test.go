package ratelimit

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/internal/clock"
)

// Those who wait go in the order in which they came, at whichever node, whatever
// their n, and at the rate.
func TestSharedWait_InOrderOverAllNodes(t *testing.T) {
	for _, run := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			f := newStill(t, 3, Global(PerSecond(10)), WithStrict())
			if run {
				f = newFleet(t, 3, Global(PerSecond(10)), WithStrict())
			}
			require.True(t, f.nodes[0].AllowN(10))
			began := clock.Now()
			var mu sync.Mutex
			var order []int
			var at []time.Duration
			var all sync.WaitGroup
			for i, n := range []int64{1, 5, 1, 1, 2} {
				all.Go(func() {
					if err := f.nodes[i%3].WaitN(t.Context(), n); err != nil {
						panic(err)
					}
					mu.Lock()
					defer mu.Unlock()
					order, at = append(order, i), append(at, time.Duration(clock.Now()-began).Round(time.Millisecond))
				})
				time.Sleep(time.Microsecond)
				synctest.Wait()
			}
			all.Wait()
			assert.Equal(t, []int{0, 1, 2, 3, 4}, order)
			const ms = time.Millisecond
			assert.Equal(t, []time.Duration{100 * ms, 600 * ms, 700 * ms, 800 * ms, 1000 * ms}, at)
		})
	}
}

func TestSharedWait_FailsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerSecond(1)), WithMaxWait(5*time.Second), WithMaxWaiters(2))
		s := f.nodes[0]
		require.True(t, s.Allow())
		began := clock.Now()

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := s.Wait(ctx)
		assert.ErrorIs(t, err, context.DeadlineExceeded, "a token at the deadline is of no use")
		assert.ErrorIs(t, err, ErrLimited)
		var refused *LimitError
		require.ErrorAs(t, err, &refused)
		assert.Equal(t, ReasonDeadline, refused.Reason())
		assert.InDelta(t, time.Second, refused.RetryAfter(), float64(110*time.Millisecond))

		var all sync.WaitGroup
		for range 2 {
			all.Go(func() { assert.NoError(t, s.Wait(t.Context())) })
		}
		synctest.Wait()
		require.ErrorAs(t, s.Wait(t.Context()), &refused)
		assert.Equal(t, ReasonMaxWaiters, refused.Reason())
		assert.NotErrorIs(t, refused, context.DeadlineExceeded)
		assert.Equal(t, int64(2), s.Snapshot().Waiting)
		assert.Equal(t, began, clock.Now(), "none of them waited")
		all.Wait()
		assert.Equal(t, 2*time.Second, time.Duration(clock.Now()-began))

		assert.NoError(t, s.Do(t.Context(), nothing), "Do waits, too, if MaxWait says so")
		assert.Equal(t, 3*time.Second, time.Duration(clock.Now()-began))
		s.Debit(1)
		s.Debit(1)
		require.ErrorAs(t, s.WaitN(t.Context(), 2), &refused)
		assert.Equal(t, ReasonExceedsCapacity, refused.Reason())
		snap := s.Snapshot().Node
		assert.Equal(t, int64(1), snap.Refused.Deadline)
		assert.Equal(t, int64(1), snap.Refused.MaxWaiters)
		assert.Equal(t, int64(4), snap.Totals.Admitted)
	})
}

func TestSharedWait_MaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerSecond(1)), WithBurst(10), WithMaxWait(5*time.Second))
		s := f.nodes[0]
		require.True(t, s.AllowN(10))
		var refused *LimitError
		require.ErrorAs(t, s.WaitN(t.Context(), 6), &refused)
		assert.Equal(t, ReasonMaxWait, refused.Reason())
		assert.NoError(t, s.WaitN(t.Context(), 5))
	})
}

// Who goes away gives his tokens back, and those are used who come after him.
func TestSharedWait_GoingAwayGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerHour(10)))
		s := f.nodes[0]
		require.True(t, s.AllowN(10))
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			assert.ErrorIs(t, s.WaitN(ctx, 5), context.Canceled)
		}
		began := clock.Now()
		assert.NoError(t, s.Wait(t.Context()))
		assert.InDelta(t, 6*time.Minute, clock.Now()-began, float64(10*time.Second))
		assert.Equal(t, int64(5), s.Snapshot().Node.Totals.Gone)
		assert.Equal(t, int64(2), s.Snapshot().Node.Totals.Admitted)
	})
}

// While the store does not answer, callers wait for the node's own limiter.
func TestSharedWait_Fallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 2, Global(PerSecond(10)), WithNodes(2))
		f.fail()
		s := f.nodes[0]
		for s.Allow() {
		}
		began := clock.Now()
		for range 5 {
			assert.NoError(t, s.Wait(t.Context()))
		}
		assert.InDelta(t, time.Second, clock.Now()-began, float64(10*time.Millisecond))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, s.Wait(ctx), context.DeadlineExceeded)
		var refused *LimitError
		require.ErrorAs(t, s.WaitN(t.Context(), 6), &refused)
		assert.Equal(t, ReasonStore, refused.Reason(), "more than its share")
		assert.ErrorIs(t, refused, errStoreDown)
		assert.Equal(t, int64(1), s.Snapshot().Node.Refused.Deadline)
		assert.Positive(t, s.Snapshot().Owed)
	})
}

// A caller who is one too many to wait does not keep others from trying the store.
func TestSharedWait_OneTooManyKeepsNobodyFromTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerSecond(10)), WithMaxWaiters(0), WithFailure(FailClosed))
		f.fail()
		f.wire.down.Store(false)
		time.Sleep(2 * time.Second)
		var refused *LimitError
		require.ErrorAs(t, f.nodes[0].waitAsOneTooMany(t.Context()), &refused)
		assert.Equal(t, ReasonMaxWaiters, refused.Reason())
		assert.True(t, f.nodes[0].Allow())
		assert.Equal(t, ModeShared, f.nodes[0].Snapshot().Node.Mode)
	})
}

// waitAsOneTooMany waits without having asked first.
func (s *Shared) waitAsOneTooMany(ctx context.Context) error {
	_, err := s.wait(ctx, 1, clock.Now())
	return err
}
