package bulkhead

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

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

// longLived is the ctx of many tasks, which counts who watches it.
type longLived struct {
	context.Context
	done    chan struct{}
	watches atomic.Int64
}

func (c *longLived) Done() <-chan struct{} { return c.done }

func (c *longLived) AfterFunc(func()) (stop func() bool) {
	c.watches.Add(1)
	return func() bool { c.watches.Add(-1); return true }
}

// A task leaves nothing behind in its ctx, however it came off the queue.
func TestPool_NobodyWatchesTheCtxOfATaskThatIsNotQueued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := buildPool(t, 1, WithPoolQueue(2))
		ctx := &longLived{Context: context.Background(), done: make(chan struct{})}
		var futures []*Future[time.Duration]
		for range 3 {
			f, err := Submit(ctx, p, sleeps(time.Second))
			require.NoError(t, err)
			futures = append(futures, f)
		}
		assert.EqualValues(t, 2, ctx.watches.Load(), "the first is not queued")
		_, err := futures[0].Wait(t.Context())
		require.NoError(t, err)
		synctest.Wait()
		assert.EqualValues(t, 1, ctx.watches.Load())
		now, cancel := context.WithCancel(t.Context())
		cancel()
		assert.Equal(t, context.Canceled, p.Close(now))
		_, err = futures[2].Wait(t.Context())
		assert.Equal(t, ReasonClosed, reasonFor(t, err))
		assert.Zero(t, ctx.watches.Load())
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
