package bulkhead

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Waiting costs the call nothing but the wait, and ends in whatever comes first.
func TestBulkhead_Waits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(3, 50*time.Millisecond))
		free := fill(t, b, 1)
		var wg sync.WaitGroup
		start := time.Now()
		wait := func(ctx context.Context, after time.Duration, check func(error)) {
			wg.Go(func() {
				err := b.Do(ctx, func(context.Context) error { return nil })
				assert.Equal(t, after, time.Since(start))
				check(err)
			})
			synctest.Wait()
		}
		short, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, errDown)
		defer cancel()
		gone, leave := context.WithCancel(t.Context())

		wait(t.Context(), 40*time.Millisecond, func(err error) { assert.NoError(t, err) })
		wait(short, 20*time.Millisecond, func(err error) { assert.Equal(t, context.DeadlineExceeded, err, "its own error") })
		wait(gone, 10*time.Millisecond, func(err error) { assert.Equal(t, context.Canceled, err, "its own error") })
		wait(t.Context(), 0, func(err error) { assert.Equal(t, ReasonQueueFull, reasonFor(t, err)) })
		assert.Equal(t, 3, b.Snapshot().Waiting)

		time.Sleep(10 * time.Millisecond)
		leave()
		synctest.Wait()
		wait(t.Context(), 40*time.Millisecond, func(err error) { assert.NoError(t, err) })
		wait(t.Context(), 10*time.Millisecond, func(err error) { assert.Equal(t, ReasonQueueFull, reasonFor(t, err)) })
		_, err := b.TryAcquire(t.Context())
		assert.Equal(t, ReasonFull, reasonFor(t, err))

		time.Sleep(30 * time.Millisecond)
		free()
		wg.Wait()
		assert.Equal(t, TotalsSnapshot{Admitted: 3, Waited: 2, WaitTime: 70 * time.Millisecond, GaveUp: 2}, b.Snapshot().Totals)
		assert.Equal(t, RefusedSnapshot{Full: 1, QueueFull: 2}, b.Snapshot().Refused)
		assert.Zero(t, b.Snapshot().InFlight)
	})
}

func TestBulkhead_MaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(3, 50*time.Millisecond))
		free := fill(t, b, 1)
		start := time.Now()
		_, err := b.Acquire(t.Context())
		assert.Equal(t, ReasonMaxWait, reasonFor(t, err))
		assert.Equal(t, 50*time.Millisecond, time.Since(start))
		free()
		assert.NoError(t, b.Do(t.Context(), func(context.Context) error { return nil }))
		assert.Equal(t, RefusedSnapshot{MaxWait: 1}, b.Snapshot().Refused)
	})
}

// https://github.com/resilience4j/resilience4j/issues/1283 and its like: a call that
// cannot succeed waits all the same. What is known to be in vain is refused at once.
func TestScenario26_NobodyWaitsInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(1, time.Hour))
		free := fill(t, b, 1)
		go func() { _ = b.Do(t.Context(), func(context.Context) error { return nil }) }()
		synctest.Wait()
		start := time.Now()
		past, cancel := context.WithDeadline(t.Context(), start.Add(-time.Second))
		defer cancel()
		for want, ask := range map[string]func() (Permit, error){
			ReasonQueueFull:       func() (Permit, error) { return b.Acquire(t.Context()) },
			ReasonFull:            func() (Permit, error) { return b.TryAcquire(t.Context()) },
			ReasonExceedsCapacity: func() (Permit, error) { return b.AcquireN(t.Context(), 2) },
		} {
			_, err := ask()
			assert.Equal(t, want, reasonFor(t, err))
		}
		_, err := b.Acquire(past)
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Zero(t, time.Since(start))
		free()
	})
}

func TestBulkhead_Priorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(3, time.Hour), WithAging(time.Second))
		free := fill(t, b, 1)
		var order journal[sluice.Priority]
		ask := func(p sluice.Priority) {
			go func() {
				switch err := b.Do(sluice.WithPriority(t.Context(), p), func(context.Context) error { return nil }); {
				case err == nil:
					order.add(p)
				default:
					order.add(100 + p)
					assert.Equal(t, ReasonQueueFull, reasonFor(t, err))
				}
			}()
			synctest.Wait()
		}
		ask(sluice.P2)
		ask(7) // no less important than that
		ask(sluice.P1)
		ask(sluice.P2) // full, and nobody is less important
		ask(sluice.P0) // takes the room of the second
		ask(-9)        // as P0, takes the room of the first
		free()
		synctest.Wait()
		assert.Equal(t, []sluice.Priority{100 + sluice.P2, 107, 100 + sluice.P2, sluice.P0, -9, sluice.P1}, order.read())
	})
}

// The priority lies in the ctx, where a look costs more than a place does.
func TestLaw12_NoPriorityIsReadUnlessTheCallWaits(t *testing.T) {
	ctx := &watched{Context: t.Context()}
	b := build(t, 1, WithQueue(1, time.Hour), WithAging(time.Second))
	p, err := b.Acquire(ctx)
	require.NoError(t, err)
	_, err = b.TryAcquire(ctx)
	require.Error(t, err)
	assert.Zero(t, ctx.values)
	p.Close()
}

// watched counts how often a value was asked for.
type watched struct {
	context.Context
	values int
}

func (w *watched) Value(key any) any { w.values++; return w.Context.Value(key) }

func TestBulkhead_AdaptiveLIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(3, time.Hour), WithOrder(AdaptiveLIFO), WithCoDel(0, 100*time.Millisecond))
		free := fill(t, b, 1)
		var order journal[int]
		for i := 1; i <= 5; i++ {
			go func() {
				err := b.Do(t.Context(), func(context.Context) error { order.add(i); return nil })
				if err != nil {
					order.add(-i)
				}
			}()
			time.Sleep(40 * time.Millisecond)
		}
		assert.True(t, b.Snapshot().Overload)
		free()
		synctest.Wait()
		assert.Equal(t, []int{-1, -2, 5, 4, 3}, order.read(), "the oldest make room, the newest go first")
		assert.False(t, b.Snapshot().Overload)
	})
}

func TestBulkhead_CoDel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(100, time.Second), WithCoDel(5*time.Millisecond, 100*time.Millisecond))
		free := fill(t, b, 1)
		go func() { _ = b.Do(t.Context(), func(context.Context) error { return nil }) }()
		time.Sleep(100 * time.Millisecond)
		start := time.Now()
		_, err := b.Acquire(t.Context())
		assert.Equal(t, ReasonMaxWait, reasonFor(t, err))
		assert.Equal(t, 5*time.Millisecond, time.Since(start), "the first is still waiting: overload")
		free()
		synctest.Wait()
		free = fill(t, b, 1)
		start = time.Now()
		_, err = b.Acquire(t.Context())
		assert.Equal(t, ReasonMaxWait, reasonFor(t, err))
		assert.Equal(t, time.Second, time.Since(start), "the queue had been empty")
		free()
	})
}

// Made on one side of a bubble, a bulkhead works on the other.
func TestLaw1_ABulkheadMadeOutsideABubbleWorksInIt(t *testing.T) {
	b := build(t, 1, WithQueue(1, time.Minute))
	synctest.Test(t, func(t *testing.T) {
		free := fill(t, b, 1)
		start := time.Now()
		_, err := b.Acquire(t.Context())
		assert.Equal(t, ReasonMaxWait, reasonFor(t, err))
		assert.Equal(t, time.Minute, time.Since(start))
		free()
	})
	assert.Zero(t, b.Snapshot().InFlight)
}

// https://github.com/golang/go/issues/56910: small calls that are let pass a large one
// can keep it waiting for ever. Here it waits for its turn, and no longer.
func TestScenario29_ALargeCallIsNotPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 4, WithQueue(100, time.Hour))
		free := fill(t, b, 4)
		start := time.Now()
		large := make(chan time.Duration, 1)
		go func() {
			p, err := b.AcquireN(t.Context(), 4)
			assert.NoError(t, err)
			large <- time.Since(start)
			p.Close()
		}()
		synctest.Wait()
		for range 20 {
			go func() {
				_ = b.Do(t.Context(), func(context.Context) error { time.Sleep(time.Second); return nil })
			}()
			time.Sleep(250 * time.Millisecond)
			if time.Since(start) <= time.Second {
				free()
			}
		}
		assert.Equal(t, time.Second, <-large, "when the four that were there before it had gone")
		time.Sleep(time.Minute)
	})
}
