package waitq

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patient lets many wait for as long as they like.
var patient = Policy{MaxQueue: 100, MaxWait: math.MaxInt64, Interval: 100 * time.Millisecond}

// A hall is a Semaphore in a bubble, and what became of those who came.
type hall struct {
	*Semaphore
	t     *testing.T
	now   func() int64
	mu    sync.Mutex
	ended []end
	waits []time.Duration // of those that were admitted
}

type end struct {
	who string
	Verdict
	at time.Duration
}

// inHall runs f in a bubble, and finds every place free afterwards.
func inHall(t *testing.T, limit int, p Policy, f func(h *hall)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		now := func() int64 { return int64(time.Since(start)) + 1 }
		h := &hall{Semaphore: NewSemaphore(limit, p, now), t: t, now: now}
		f(h)
		synctest.Wait()
		assert.Zero(t, h.InUse())
		n, _ := h.Queue(h.now())
		assert.Zero(t, n)
		assert.Zero(t, h.word.Load()&waiting, "nobody waits, and the mark says so")
	})
}

// comes lets somebody wait for n places, as one of class, and returns when it waits
// or is decided.
func (h *hall) comes(ctx context.Context, who string, n, class int) {
	go func() {
		came := h.now()
		at, v := h.Wait(ctx, n, class, came)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended = append(h.ended, end{who, v, time.Duration(at - 1)})
		if v == Admitted {
			h.waits = append(h.waits, time.Duration(at-came))
		}
	}()
	synctest.Wait()
}

// frees gives n places back, and waits until those who get them know.
func (h *hall) frees(n int) {
	h.Release(n)
	synctest.Wait()
}

// expect checks what has been decided since the last time, in any order.
func (h *hall) expect(want ...end) {
	h.t.Helper()
	synctest.Wait()
	assert.ElementsMatch(h.t, want, h.ended)
	h.ended = nil
}

func TestSemaphore_TryAcquire(t *testing.T) {
	s := NewSemaphore(5, Policy{}, nil)
	require.True(t, s.TryAcquire(3))
	require.False(t, s.TryAcquire(3))
	require.True(t, s.TryAcquire(2))
	require.False(t, s.TryAcquire(1))
	assert.Equal(t, Full, s.Refuses(1))
	assert.Equal(t, TooLarge, s.Refuses(6))
	s.Release(2)
	require.True(t, s.TryAcquire(1))
	assert.Equal(t, 4, s.InUse())
	assert.EqualValues(t, 3, s.Totals().Admitted)
	assert.Zero(t, s.Open(), "nobody may wait")
}

func TestSemaphore_TheLargestNumbers(t *testing.T) {
	s := NewSemaphore(MaxLimit, Policy{}, nil)
	require.True(t, s.TryAcquire(MaxLimit))
	require.False(t, s.TryAcquire(MaxLimit))
	require.False(t, s.TryAcquire(1))
	s.Release(MaxLimit)
	assert.Zero(t, s.InUse())
}

// No number is so large that, added to the places that are taken, it looks small.
func TestCase29_HugeWishesDoNotWrapAround(t *testing.T) {
	s := NewSemaphore(10, Policy{MaxQueue: 1, MaxWait: time.Hour}, func() int64 { return 1 })
	require.True(t, s.TryAcquire(9))
	for _, n := range []int{math.MaxInt, math.MaxInt - 8, math.MaxInt32, MaxLimit + 1, MaxLimit, 2} {
		assert.False(t, s.TryAcquire(n), n)
		if n > 10 {
			_, v := s.Wait(t.Context(), n, 1, 1)
			assert.Equal(t, TooLarge, v, n)
		}
	}
	assert.Equal(t, 9, s.InUse())
	assert.True(t, s.TryAcquire(1))
}

// The count of admissions goes on where its part of the word ends, both ways in.
func TestSemaphore_AdmissionsOverflow(t *testing.T) {
	inHall(t, 1, patient, func(h *hall) {
		h.word.Store(1<<64 - one)
		assert.Equal(t, uint64(math.MaxUint32), h.Totals().Admitted)
		require.True(t, h.TryAcquire(1))
		assert.Equal(t, Totals{Admitted: 1 << 32}, h.Totals())
		assert.Equal(t, 1, h.InUse())

		h.word.Store(1<<64 - one + 1)
		h.comes(h.t.Context(), "a", 1, 1)
		h.frees(1)
		assert.Equal(t, Totals{Admitted: 2 << 32, Waited: 1}, h.Totals())
		h.frees(1)
	})
}

func TestSemaphore_FirstComeFirstServed(t *testing.T) {
	inHall(t, 1, patient, func(h *hall) {
		require.True(t, h.TryAcquire(1))
		for _, who := range []string{"a", "b", "c"} {
			h.comes(h.t.Context(), who, 1, 1)
			time.Sleep(time.Second)
		}
		require.Empty(t, h.ended)
		require.False(t, h.TryAcquire(1))
		h.frees(1)
		require.False(t, h.TryAcquire(1), "it was handed on")
		h.frees(1)
		time.Sleep(time.Second)
		h.frees(1)
		h.expect(end{"a", Admitted, 3 * time.Second}, end{"b", Admitted, 3 * time.Second}, end{"c", Admitted, 4 * time.Second})
		h.frees(1)
		assert.Equal(t, Totals{Admitted: 4, Waited: 3, WaitNanos: int64(7 * time.Second)}, h.Totals())
		require.True(t, h.TryAcquire(1))
		h.frees(1)
	})
}

// Nobody passes those that wait, even if there would be a place for it.
func TestSemaphore_NobodyPassesTheQueue(t *testing.T) {
	inHall(t, 3, patient, func(h *hall) {
		require.True(t, h.TryAcquire(2))
		h.comes(h.t.Context(), "large", 2, 1)
		assert.False(t, h.TryAcquire(1), "one place is free, and wanted")
		h.comes(h.t.Context(), "small", 1, 1)
		h.expect()
		h.frees(1)
		h.expect(end{"large", Admitted, 0})
		h.frees(1)
		h.expect(end{"small", Admitted, 0})
		h.frees(3)
	})
}

// When the one that others waited behind goes away, what is free goes to them:
// https://github.com/golang/go/issues/29721 and its like stand on this.
func TestSemaphore_LeavingLetsTheNextIn(t *testing.T) {
	inHall(t, 3, patient, func(h *hall) {
		require.True(t, h.TryAcquire(2))
		ctx, cancel := context.WithCancel(h.t.Context())
		h.comes(ctx, "large", 3, 1)
		h.comes(h.t.Context(), "small", 1, 1)
		h.expect()
		cancel()
		synctest.Wait()
		h.expect(end{"large", Left, 0}, end{"small", Admitted, 0})
		h.frees(3)
	})
}

func TestSemaphore_Expires(t *testing.T) {
	p := patient
	p.MaxWait = 50 * time.Millisecond
	inHall(t, 1, p, func(h *hall) {
		require.True(t, h.TryAcquire(1))
		h.comes(h.t.Context(), "a", 1, 1)
		time.Sleep(30 * time.Millisecond)
		h.comes(h.t.Context(), "b", 1, 1)
		time.Sleep(30 * time.Millisecond)
		h.expect(end{"a", Expired, 50 * time.Millisecond})
		h.frees(1)
		h.expect(end{"b", Admitted, 60 * time.Millisecond})
		h.frees(1)
		assert.EqualValues(t, 1, h.Totals().Waited)
	})
}

// Whichever limit comes first ends the wait, and only the caller's own is its own.
func TestSemaphore_TheCallersDeadline(t *testing.T) {
	p := patient
	p.MaxWait = 50 * time.Millisecond
	inHall(t, 1, p, func(h *hall) {
		require.True(t, h.TryAcquire(1))
		for who, limit := range map[string]time.Duration{"sooner": 20, "later": 80} {
			ctx, cancel := context.WithTimeout(h.t.Context(), limit*time.Millisecond)
			defer cancel()
			h.comes(ctx, who, 1, 1)
		}
		time.Sleep(time.Second)
		h.expect(end{"sooner", Left, 20 * time.Millisecond}, end{"later", Expired, 50 * time.Millisecond})
		h.frees(1)
	})
}

// One whose time is over gets no place, also if its own timer is late: a place is
// worth more to the next.
func TestSemaphore_AFreePlaceIsNotGivenToOneWhoseTimeIsOver(t *testing.T) {
	now := int64(1)
	s := NewSemaphore(1, Policy{MaxQueue: 3, MaxWait: 50}, func() int64 { return now })
	require.True(t, s.TryAcquire(1))
	expired, _ := s.enter(1, 1, 1)
	next, _ := s.enter(1, 1, 2)
	now = 51
	s.Release(1)
	assert.Equal(t, verdict{Expired, 51}, <-expired.told)
	assert.Equal(t, verdict{Admitted, 51}, <-next.told)
	assert.Equal(t, 1, s.InUse())
}

// The story of https://github.com/failsafe-lib/failsafe/issues/393: whoever timed
// out while waiting was given a permit all the same, later, and kept it.
func TestCase29_WhoHasGoneKeepsNoPlace(t *testing.T) {
	p := patient
	p.MaxWait = 100 * time.Millisecond
	inHall(t, 8, p, func(h *hall) {
		require.True(t, h.TryAcquire(8))
		for range 8 {
			h.comes(h.t.Context(), "waits", 1, 1)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, h.ended, 8)
		for range 8 {
			h.frees(1)
		}
		for range 8 {
			assert.True(t, h.TryAcquire(1))
		}
		h.frees(8)
	})
}

// A place that comes together with the end of the ctx is passed on, whichever of
// the two the waiter sees first.
func TestSemaphore_APlaceThatComesTooLateIsPassedOn(t *testing.T) {
	ctx := canceled(t)
	for range 100 {
		s := NewSemaphore(1, patient, func() int64 { return 7 })
		require.True(t, s.TryAcquire(1))
		late, _ := s.enter(1, 1, 1)
		next, _ := s.enter(1, 1, 2)
		s.Release(1)
		_, v := s.await(ctx, late)
		require.Equal(t, Left, v)
		require.Equal(t, verdict{Admitted, 7}, <-next.told)
		s.Release(1)
		require.Zero(t, s.InUse())
	}
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
