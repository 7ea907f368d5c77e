package bulkhead

import (
	"context"
	"io"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

func buildPool(t *testing.T, workers int, opts ...PoolOption) *Pool {
	t.Helper()
	p, err := NewPool("mail", workers, opts...)
	require.NoError(t, err)
	// In a bubble, because time stops there when the test has ended.
	t.Cleanup(func() { assert.NoError(t, p.Close(context.Background())) })
	return p
}

// sleeps is a task that takes so long.
func sleeps(d time.Duration) func(context.Context) (time.Duration, error) {
	return func(context.Context) (time.Duration, error) {
		time.Sleep(d)
		return d, nil
	}
}

// submit submits a task that takes so long, and must not be refused.
func submit(t *testing.T, p *Pool, d time.Duration) *Future[time.Duration] {
	t.Helper()
	f, err := Submit(t.Context(), p, sleeps(d))
	require.NoError(t, err)
	return f
}

func isDone[T any](f *Future[T]) bool {
	select {
	case <-f.Done():
		return true
	default:
		return false
	}
}

func TestPool_RunsAsManyAsItHasWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 2, WithPoolQueue(2))
		assert.Zero(t, p.Snapshot().Workers, "none before there is work")
		start := time.Now()
		futures := make([]*Future[time.Duration], 4)
		for i := range futures {
			futures[i] = submit(t, p, time.Second)
		}
		s := p.Snapshot()
		assert.Equal(t, 2, s.Busy)
		assert.Equal(t, 2, s.Queued)
		_, err := Submit(t.Context(), p, sleeps(time.Second))
		assert.Equal(t, ReasonQueueFull, reasonFor(t, err))
		assert.EqualError(t, err, `pool "mail": full, and so is the queue`)
		for i, f := range futures {
			v, err := f.Wait(t.Context())
			require.NoError(t, err)
			assert.Equal(t, time.Second, v)
			assert.Equal(t, time.Duration(1+i/2)*time.Second, time.Since(start), "first come, first served")
		}
		assert.Equal(t, PoolTotalsSnapshot{Done: 4, Waited: 2, WaitTime: 2 * time.Second}, p.Snapshot().Totals)
		assert.Equal(t, RefusedSnapshot{QueueFull: 1}, p.Snapshot().Refused)
	})
}

func TestPool_WithoutAQueueRefusesWhenAllAreBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1)
		f := submit(t, p, time.Second)
		err := p.Do(t.Context(), nothing)
		assert.Equal(t, ReasonFull, reasonFor(t, err))
		_, err = f.Wait(t.Context())
		require.NoError(t, err)
		for range 100 { // whoever hears that a task has ended finds the worker free
			require.NoError(t, p.Do(t.Context(), nothing))
		}
		assert.EqualValues(t, 101, p.Snapshot().Totals.Done)
	})
}

// Nobody needs workers that have had nothing to do for a while.
func TestPool_WorkersRetire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPool("mail", 10, WithKeepAlive(time.Minute))
		require.NoError(t, err)
		for range 10 {
			submit(t, p, time.Second)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, 10, p.Snapshot().Workers)
		assert.Zero(t, p.Snapshot().Busy)
		for range 8 { // of which three have work, now and then
			for range 3 {
				submit(t, p, time.Second)
			}
			time.Sleep(20 * time.Second)
		}
		assert.Equal(t, 3, p.Snapshot().Workers)
		time.Sleep(59 * time.Second)
		assert.LessOrEqual(t, p.Snapshot().Workers, 3)
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		assert.Zero(t, p.Snapshot().Workers)
	}) // which fails if a goroutine is left
}

func TestPool_AWorkerStaysAtLeastThatLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithKeepAlive(time.Minute))
		require.NoError(t, p.Do(t.Context(), nothing))
		for range 10 {
			time.Sleep(59 * time.Second)
			require.Equal(t, 1, p.Snapshot().Workers)
			require.NoError(t, p.Do(t.Context(), nothing))
		}
	})
}

// Workers that are idle while KeepAlive changes go by the new one, also where the old
// one is so long that nobody would look after them any more.
func TestLaw9_KeepAliveChangesForWhoIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithKeepAlive(math.MaxInt64))
		set := func(d time.Duration) {
			require.NoError(t, p.Update(PoolConfig{Workers: 1, KeepAlive: d}))
		}
		workersAfter := func(d time.Duration) int {
			time.Sleep(d)
			synctest.Wait()
			return p.Snapshot().Workers
		}
		require.NoError(t, p.Do(t.Context(), nothing))
		set(time.Minute)
		assert.Equal(t, 1, workersAfter(59*time.Second))
		set(2 * time.Minute)
		assert.Equal(t, 1, workersAfter(119*time.Second), "a longer one counts too")
		assert.Zero(t, workersAfter(121*time.Second))

		set(math.MaxInt64)
		require.NoError(t, p.Do(t.Context(), nothing))
		set(0)
		assert.Zero(t, workersAfter(0))
		set(time.Minute)
		require.NoError(t, p.Do(t.Context(), nothing))
		assert.Equal(t, 1, workersAfter(59*time.Second))
		assert.Zero(t, workersAfter(61*time.Second))
	})
}

func TestPool_WithoutKeepAliveNobodyStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 2, WithKeepAlive(0), WithPoolQueue(5))
		for range 5 {
			submit(t, p, time.Second)
		}
		time.Sleep(2500 * time.Millisecond)
		synctest.Wait()
		assert.Equal(t, 1, p.Snapshot().Workers)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Zero(t, p.Snapshot().Workers)
	})
}

// The task of a caller who timed out stays in the queue of resilience4j's pool, and
// runs for nobody.
func TestPool_AQueuedTaskWhoseCtxEndsLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithPoolQueue(2))
		busy := submit(t, p, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		never := func(context.Context) (int, error) { t.Error("it ran"); return 0, nil }
		f, err := Submit(ctx, p, never)
		require.NoError(t, err)
		start := time.Now()
		err = p.Do(ctx, func(ctx context.Context) error { _, err := never(ctx); return err })
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, time.Second, time.Since(start), "it leaves early while it is queued")
		_, err = f.Wait(t.Context())
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, time.Second, time.Since(start), "nobody had to wait for it to leave")
		assert.Zero(t, p.Snapshot().Queued, "its room is free")
		assert.False(t, isDone(busy))
		assert.EqualValues(t, 2, p.Snapshot().Totals.GaveUp)
	})
}

// A worker that has just been given a task does not begin it for nobody.
func TestPool_ATaskWhoseCtxHasEndedDoesNotBegin(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	task := newTask(ctx, func(context.Context) error { t.Error("it ran"); return nil })
	cancel()
	task.run()
	assert.Equal(t, gaveUp, task.manner)
	assert.Equal(t, context.Canceled, task.err)
}

// Once the call has begun, its caller may read what it writes, so Do stays.
func TestPool_DoStaysWhileItsCallRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start, wrote := time.Now(), false
		err := p.Do(ctx, func(ctx context.Context) error {
			<-ctx.Done()
			time.Sleep(time.Second)
			wrote = true
			return errDown
		})
		assert.Same(t, errDown, err)
		assert.True(t, wrote)
		assert.Equal(t, 2*time.Second, time.Since(start))
	})
}

func TestLaw6_ACtxThatIsDoneRunsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithPoolQueue(1))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		assert.Equal(t, context.Canceled, p.Do(ctx, nothing))
		_, err := Submit(ctx, p, sleeps(time.Second))
		assert.Equal(t, context.Canceled, err)
		assert.Zero(t, p.Snapshot().Workers)
		assert.Zero(t, p.Snapshot().Totals)
	})
}

// The task has the values and the end of the ctx it was given with.
func TestPool_EachTaskHasItsCtx(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithPoolQueue(3))
		for _, priority := range []sluice.Priority{sluice.P0, sluice.P2} {
			ctx, cancel := context.WithCancel(sluice.WithPriority(t.Context(), priority))
			f, err := Submit(ctx, p, func(ctx context.Context) (sluice.Priority, error) {
				<-ctx.Done()
				return sluice.PriorityOf(ctx), ctx.Err()
			})
			require.NoError(t, err)
			synctest.Wait()
			assert.False(t, isDone(f))
			cancel()
			v, err := f.Wait(t.Context())
			assert.Equal(t, context.Canceled, err)
			assert.Equal(t, priority, v)
		}
	})
}

// A result comes once, and everybody who waits gets it.
func TestFuture_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1)
		f := submit(t, p, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.Wait(ctx)
		assert.Equal(t, context.DeadlineExceeded, err, "that was its waiter's, not its own")
		for range 3 {
			go func() {
				v, err := f.Wait(t.Context())
				assert.NoError(t, err)
				assert.Equal(t, time.Minute, v)
			}()
		}
		v, err := f.Wait(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, time.Minute, v)
		v, err = f.Wait(ctx)
		assert.NoError(t, err, "it is there already")
		assert.Equal(t, time.Minute, v)
		assert.True(t, isDone(f))
	})
}

func TestLaw9_ThePoolChangesLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithPoolQueue(10), WithKeepAlive(time.Hour))
		for range 6 {
			submit(t, p, time.Second)
		}
		set := func(workers int, keepAlive time.Duration) {
			require.NoError(t, p.Update(PoolConfig{Workers: workers, MaxQueue: 0, KeepAlive: keepAlive}))
			synctest.Wait()
		}
		set(3, time.Hour)
		assert.Equal(t, 3, p.Snapshot().Busy, "those that wait begin at once")
		assert.Equal(t, 3, p.Snapshot().Queued, "and stay queued though nobody else may")
		set(1, time.Hour)
		assert.Equal(t, 3, p.Snapshot().Busy, "nobody is interrupted")
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Equal(t, 1, p.Snapshot().Workers)
		assert.Equal(t, 2, p.Snapshot().Queued)
		set(4, time.Hour)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		assert.Equal(t, 3, p.Snapshot().Workers)
		assert.Zero(t, p.Snapshot().Busy)
		set(2, time.Hour)
		assert.Equal(t, 2, p.Snapshot().Workers, "idle ones that are too many go at once")
		set(2, 0)
		assert.Zero(t, p.Snapshot().Workers)
		assert.EqualValues(t, 6, p.Snapshot().Totals.Done)

		before := p.config.Load()
		require.NoError(t, p.Update(p.Config()))
		assert.ErrorContains(t, p.Update(PoolConfig{}), "Workers 0")
		assert.Same(t, before, p.config.Load())
	})
}

func TestPool_TheNilPoolBoundsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p *Pool
		assert.Same(t, errDown, p.Do(t.Context(), func(context.Context) error { return errDown }))
		for range 10 {
			submit(t, p, time.Second)
		}
		f, err := Submit(t.Context(), p, explode)
		require.NoError(t, err)
		_, err = f.Wait(t.Context())
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.Empty(t, p.Name())
		assert.Zero(t, p.Config())
		assert.Zero(t, p.Snapshot())
		assert.NoError(t, p.Close(t.Context()))
		assert.NoError(t, p.Update(PoolConfig{Workers: 1}))
		assert.Error(t, p.Update(PoolConfig{}))
		p.Collect(nil)
		time.Sleep(2 * time.Second)
	})
}

// A Pool is a Guard like any other.
func TestPool_InAChain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, b := buildPool(t, 1), build(t, 1)
		chain := sluice.Chain(b, p)
		v, err := sluice.Call(t.Context(), chain, func(context.Context) (int, error) {
			assert.Equal(t, 1, b.Snapshot().InFlight)
			assert.Equal(t, 1, p.Snapshot().Busy)
			return 42, nil
		})
		require.NoError(t, err)
		assert.Equal(t, 42, v)
		submit(t, p, time.Second)
		_, err = sluice.Call(t.Context(), chain, nothingAtAll)
		assert.Equal(t, ReasonFull, reasonFor(t, err))
		assert.Zero(t, b.Snapshot().InFlight)
	})
}
