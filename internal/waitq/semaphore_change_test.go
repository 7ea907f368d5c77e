package waitq

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSemaphore_UpdateLetsIn(t *testing.T) {
	inHall(t, 1, patient, func(h *hall) {
		require.True(t, h.TryAcquire(1))
		for _, who := range []string{"a", "b", "c"} {
			h.comes(h.t.Context(), who, 1, 1)
		}
		h.Update(3, patient)
		h.expect(end{"a", Admitted, 0}, end{"b", Admitted, 0})
		h.frees(3)
		h.expect(end{"c", Admitted, 0})
		h.frees(1)
	})
}

// https://github.com/marusama/semaphore/issues/3, and the bulkhead of resilience4j
// whose change of configuration hangs until calls have finished: shrinking returns
// at once, and holds from then on.
func TestCase29_ShrinkingDoesNotBlock(t *testing.T) {
	inHall(t, 10, patient, func(h *hall) {
		require.True(t, h.TryAcquire(10))
		h.Update(2, patient)
		assert.Equal(t, 10, h.InUse())
		h.comes(h.t.Context(), "a", 1, 1)
		h.frees(8)
		h.expect()
		h.frees(1)
		h.expect(end{"a", Admitted, 0})
		h.frees(2)
	})
}

func TestSemaphore_ClosingSendsEverybodyHome(t *testing.T) {
	inHall(t, 2, patient, func(h *hall) {
		require.True(t, h.TryAcquire(2))
		h.comes(h.t.Context(), "a", 1, 1)
		h.comes(h.t.Context(), "b", 2, 1)
		h.Update(1, patient)
		h.expect()
		h.frees(1)
		h.expect()
		h.frees(1)
		h.expect(end{"a", Admitted, 0}, end{"b", TooLarge, 0})
		h.comes(h.t.Context(), "c", 1, 1)
		h.Update(0, patient)
		h.comes(h.t.Context(), "d", 1, 1)
		h.expect(end{"c", Closed, 0}, end{"d", Closed, 0})
		assert.Equal(t, Closed, h.Refuses(1))
		h.frees(1)
		h.Update(1, patient)
		h.comes(h.t.Context(), "e", 2, 1)
		h.comes(h.t.Context(), "f", 1, 1)
		h.expect(end{"e", TooLarge, 0}, end{"f", Admitted, 0})
		h.frees(1)
	})
}

func TestSemaphore_AFullQueueRefuses(t *testing.T) {
	p := patient
	p.MaxQueue, p.Aging = 2, time.Second
	inHall(t, 1, p, func(h *hall) {
		require.True(t, h.TryAcquire(1))
		assert.EqualValues(t, 0b111, h.Open())
		h.comes(h.t.Context(), "a", 1, 1)
		h.comes(h.t.Context(), "b", 1, 1)
		assert.EqualValues(t, 0b001, h.Open())
		h.comes(h.t.Context(), "c", 1, 1)
		h.expect(end{"c", Full, 0})
		h.comes(h.t.Context(), "d", 1, 0)
		h.expect(end{"b", Full, 0})
		h.frees(1)
		assert.EqualValues(t, 0b111, h.Open())
		h.frees(1)
		h.expect(end{"d", Admitted, 0}, end{"a", Admitted, 0})
		h.frees(1)
	})
}

// Under a load that it cannot serve, a FIFO queue makes everybody late. In overload
// they may wait only shortly, and the newest are served at once.
func TestSemaphore_Overload(t *testing.T) {
	overloaded := func(p Policy) (served int, median time.Duration) {
		p.MaxQueue, p.MaxWait, p.Interval = 1000, time.Second, 100*time.Millisecond
		inHall(t, 1, p, func(h *hall) {
			require.True(t, h.TryAcquire(1))
			for i := range 1000 { // one a millisecond; one in two can be served
				h.comes(h.t.Context(), "a", 1, 1)
				time.Sleep(time.Millisecond)
				if i%2 == 0 {
					h.frees(1)
				}
			}
			slices.Sort(h.waits)
			served, median = len(h.waits), h.waits[len(h.waits)/2]
			for h.InUse() > 0 {
				h.frees(1)
				time.Sleep(2 * time.Millisecond)
			}
		})
		return served, median
	}
	for _, c := range []struct {
		name     string
		policy   Policy
		from, to time.Duration
	}{
		{"FIFO", Policy{}, 240 * time.Millisecond, 260 * time.Millisecond},
		{"the newest first", Policy{Newest: true}, 0, 2 * time.Millisecond},
		{"a short wait", Policy{Target: 5 * time.Millisecond}, 0, 6 * time.Millisecond},
		{"both", Policy{Target: 5 * time.Millisecond, Newest: true}, 0, 2 * time.Millisecond},
	} {
		served, median := overloaded(c.policy)
		assert.Equal(t, 500, served, "%s: as many as there were places for", c.name)
		assert.GreaterOrEqual(t, median, c.from, c.name)
		assert.LessOrEqual(t, median, c.to, c.name)
	}
}

// A copied permit that is settled again takes no place that nobody had.
func TestSemaphore_AStrayReleaseChangesNothing(t *testing.T) {
	inHall(t, 2, patient, func(h *hall) {
		h.Release(1)
		require.True(t, h.TryAcquire(2))
		require.False(t, h.TryAcquire(1))
		assert.EqualValues(t, 1, h.Totals().Admitted)
		h.frees(2)
	})
}

// Nor does one of several places, when fewer are taken and somebody waits: what it
// borrows then is the mark of those that wait.
func TestSemaphore_AStrayReleaseLeavesThoseThatWait(t *testing.T) {
	inHall(t, 5, patient, func(h *hall) {
		require.True(t, h.TryAcquire(1))
		h.comes(h.t.Context(), "a", 5, 1)
		h.Release(2)
		assert.Equal(t, 1, h.InUse())
		assert.True(t, h.Wanted())
		h.frees(1)
		h.expect(end{"a", Admitted, 0})
		h.frees(5)
	})
}

// Who lets others in may have read the time before they came.
func TestSemaphore_NobodyIsAdmittedBeforeHeCame(t *testing.T) {
	s := NewSemaphore(1, patient, func() int64 { return 1 })
	require.True(t, s.TryAcquire(1))
	w, _ := s.enter(1, 1, 200)
	s.word.Add(^uint64(0)) // a place is released, by somebody who has yet to pass it on
	late, _ := s.enter(1, 1, 100)
	at, v := s.await(t.Context(), w)
	assert.Equal(t, Admitted, v)
	assert.EqualValues(t, 200, at)
	assert.Equal(t, Left, s.leave(late, Left).is)
	assert.Zero(t, s.Totals().WaitNanos)
}

// While others wait, waiting allocates nothing; when nobody does, nothing is kept.
func TestSemaphore_WaitersAreUsedAgain(t *testing.T) {
	inHall(t, 1, patient, func(h *hall) {
		require.True(t, h.TryAcquire(1))
		h.comes(h.t.Context(), "a", 1, 1)
		ctx, cancel := context.WithCancel(h.t.Context())
		cancel()
		assert.Zero(t, testing.AllocsPerRun(100, func() { h.Wait(ctx, 1, 1, h.now()) }))
		for range maxSpares + 9 {
			h.comes(h.t.Context(), "b", 1, 1)
		}
		for range maxSpares + 9 {
			h.frees(1)
		}
		assert.Equal(t, maxSpares, h.spares)
		h.frees(1)
		assert.Zero(t, h.spares)
		assert.Nil(t, h.spare)
		h.Update(1, Policy{})
		h.comes(h.t.Context(), "c", 1, 1)
		assert.Nil(t, h.spare, "nor of one that may not even wait")
		h.frees(1)
	})
}

// A channel or timer that was made in a bubble and is used outside ends the process.
func TestSemaphore_WorksInOneBubbleAfterAnother(t *testing.T) {
	s := NewSemaphore(1, Policy{MaxQueue: 9, MaxWait: time.Hour}, func() int64 { return 1 })
	require.True(t, s.TryAcquire(1))
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			go func() {
				_, v := s.Wait(t.Context(), 1, 1, 1)
				assert.Equal(t, Admitted, v)
			}()
			synctest.Wait()
			s.Release(1)
			synctest.Wait()
			_, v := s.Wait(t.Context(), 1, 1, 1)
			assert.Equal(t, Expired, v)
		})
		_, v := s.Wait(canceled(t), 1, 1, 1)
		assert.Equal(t, Left, v)
	}
}
