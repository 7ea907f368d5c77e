package bulkhead

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
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

func explode(context.Context) (int, error) { panic(io.ErrUnexpectedEOF) }

// A panic in one task ends neither the process nor the worker, and whoever waits
// hears of it, with the stack of the task.
func TestPool_APanicBecomesAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithPoolQueue(1))
		f, err := Submit(t.Context(), p, explode)
		require.NoError(t, err)
		after := submit(t, p, time.Second)
		_, err = f.Wait(t.Context())
		panicked, ok := errors.AsType[*PanicError](err)
		require.True(t, ok)
		assert.Equal(t, io.ErrUnexpectedEOF, panicked.Value)
		assert.Contains(t, string(panicked.Stack), "bulkhead.explode(")
		assert.ErrorIs(t, err, io.ErrUnexpectedEOF)
		assert.True(t, strings.HasPrefix(err.Error(), "bulkhead: a task panicked: unexpected EOF\n\ngoroutine "), err.Error())
		assert.NotErrorIs(t, err, sluice.ErrRejected)
		_, err = after.Wait(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, PoolTotalsSnapshot{Done: 1, Panicked: 1, Waited: 1}, p.Snapshot().Totals)
		assert.NoError(t, errors.Unwrap(&PanicError{Value: "boom"}))
	})
}

// A Guard keeps a panic from nobody.
func TestPool_DoPanicsWithItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1)
		var err error
		func() {
			defer func() { err, _ = recover().(error) }()
			_ = p.Do(t.Context(), func(ctx context.Context) error { _, err := explode(ctx); return err })
		}()
		panicked, ok := errors.AsType[*PanicError](err)
		require.True(t, ok)
		assert.Contains(t, string(panicked.Stack), "bulkhead.explode(")
		assert.NoError(t, p.Do(t.Context(), nothing))
	})
}

// A panic with nil, and one of the runtime, are panics too.
func TestPool_EveryPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1)
		for want, do := range map[string]func(){
			"called with nil":  func() { panic(any(nil)) },
			"index out of ran": func() { var none []int; _ = none[len(none)] },
			"boom":             func() { panic("boom") },
		} {
			f, err := Submit(t.Context(), p, func(context.Context) (int, error) { do(); return 0, nil })
			require.NoError(t, err)
			_, err = f.Wait(t.Context())
			_, ok := errors.AsType[*PanicError](err)
			assert.True(t, ok)
			assert.ErrorContains(t, err, want)
		}
	})
}

// A task that ends its goroutine, as a failed assertion in it does, ends a worker;
// another takes its place, and the work goes on.
func TestPool_Goexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithPoolQueue(2))
		exit := func(context.Context) (int, error) { runtime.Goexit(); return 1, nil }
		first, err := Submit(t.Context(), p, exit)
		require.NoError(t, err)
		second, err := Submit(t.Context(), p, exit)
		require.NoError(t, err)
		after := submit(t, p, time.Second)
		for _, f := range []*Future[int]{first, second} {
			_, err = f.Wait(t.Context())
			assert.Equal(t, ErrGoexit, err)
		}
		_, err = after.Wait(t.Context())
		assert.NoError(t, err)
		assert.EqualValues(t, 2, p.Snapshot().Totals.Exited)
		assert.Equal(t, 1, p.Snapshot().Workers)

		went := make(chan bool, 1)
		go func() {
			defer close(went)
			_ = p.Do(t.Context(), func(ctx context.Context) error { _, err := exit(ctx); return err })
			went <- true
		}()
		assert.False(t, <-went, "Do ends its caller's goroutine")
		require.NoError(t, p.Close(t.Context()))
		assert.Zero(t, p.Snapshot().Workers)
	})
}

func TestPool_CloseDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithPoolQueue(5))
		var futures []*Future[time.Duration]
		for range 3 {
			futures = append(futures, submit(t, p, time.Second))
		}
		start := time.Now()
		go func() { assert.NoError(t, p.Close(t.Context())) }()
		synctest.Wait()
		_, err := Submit(t.Context(), p, sleeps(time.Second))
		assert.Equal(t, ReasonClosed, reasonFor(t, err))
		wait, _ := sluice.RetryAfter(err)
		assert.Negative(t, wait, "never")
		assert.Equal(t, ReasonClosed, reasonFor(t, p.Do(t.Context(), nothing)))
		require.NoError(t, p.Close(t.Context()))
		assert.Equal(t, 3*time.Second, time.Since(start))
		for _, f := range futures {
			assert.True(t, isDone(f))
		}
		s := p.Snapshot()
		assert.True(t, s.Closed)
		assert.Zero(t, s.Workers)
		assert.EqualValues(t, 3, s.Totals.Done)
		require.NoError(t, p.Close(t.Context()), "again")
	})
}

func TestPool_CloseOfAnIdlePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		require.NoError(t, buildPool(t, 1).Close(t.Context()), "never used")
		p := buildPool(t, 3)
		for range 3 {
			submit(t, p, time.Second)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		done, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.Close(done); err != nil { // its workers may take a moment
			require.Equal(t, context.Canceled, err)
		}
		require.NoError(t, p.Close(t.Context()))
		time.Sleep(time.Hour)
		assert.Zero(t, p.Snapshot().Workers)
	})
}

// When Close runs out of time, what has not begun never will, and whoever waits for
// it hears so.
func TestPool_CloseGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithPoolQueue(5))
		running := submit(t, p, time.Minute)
		taskCtx, stop := context.WithCancel(t.Context())
		defer stop()
		queued, err := Submit(taskCtx, p, sleeps(time.Second))
		require.NoError(t, err)
		go func() { assert.Equal(t, ReasonClosed, reasonFor(t, p.Do(t.Context(), nothing))) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Equal(t, context.DeadlineExceeded, p.Close(ctx))
		_, err = queued.Wait(t.Context())
		assert.Equal(t, ReasonClosed, reasonFor(t, err))
		assert.False(t, isDone(running))
		require.NoError(t, p.Close(t.Context()), "it may be waited for again")
		assert.True(t, isDone(running))
		assert.EqualValues(t, 2, p.Snapshot().Refused.Closed)
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

// A bulkhead or a pool of the whole program may be used in one test after another.
func TestLaw10_NothingIsLeftOfABubble(t *testing.T) {
	b, p := build(t, 1, WithQueue(3, time.Second)), sluice.Must(NewPool("mail", 1, WithPoolQueue(1)))
	for range 3 {
		synctest.Test(t, func(t *testing.T) {
			free := fill(t, b, 1)
			_, err := b.Acquire(t.Context())
			assert.Equal(t, ReasonMaxWait, reasonFor(t, err))
			free()
			submit(t, p, time.Second)
			require.NoError(t, p.Do(t.Context(), nothing))
			time.Sleep(time.Minute) // until its worker has ended
		})
		require.NoError(t, b.Do(t.Context(), nothing))
	}
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
