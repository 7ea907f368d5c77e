package bulkhead

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A future holds the result of a task, and nothing that the task needed for it.
func TestFuture_KeepsNothingButTheResult(t *testing.T) {
	p := buildPool(t, 1, WithPoolQueue(9))
	occupy := func() (free func()) {
		done := make(chan struct{})
		_, err := Submit(t.Context(), p, func(context.Context) (int, error) { <-done; return 0, nil })
		require.NoError(t, err)
		return func() { close(done) }
	}
	var held []weak.Pointer[[64]byte]
	var futures []*Future[int]
	submit := func(ctx context.Context, p *Pool) (wait func() error) {
		load := new([64]byte)
		f, err := Submit(context.WithValue(ctx, load, load), p, func(context.Context) (int, error) { return int(load[7]), nil })
		require.NoError(t, err)
		held, futures = append(held, weak.Make(load)), append(futures, f)
		return func() error { _, err := f.Wait(context.Background()); return err }
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	require.NoError(t, submit(ctx, nil)())
	require.NoError(t, submit(ctx, p)())
	free := occupy()
	queued := submit(ctx, p)
	free()
	require.NoError(t, queued())
	free = occupy()
	leaving, cancelLeaving := context.WithCancel(ctx)
	left := submit(leaving, p)
	cancelLeaving()
	require.ErrorIs(t, left(), context.Canceled)
	refused := submit(ctx, p)
	require.ErrorIs(t, p.Close(leaving), context.Canceled)
	require.ErrorIs(t, refused(), ErrClosed)
	free()

	require.Eventually(t, func() bool {
		runtime.GC()
		return !slices.ContainsFunc(held, func(h weak.Pointer[[64]byte]) bool { return h.Value() != nil })
	}, 20*time.Second, time.Millisecond)
	runtime.KeepAlive(futures)
}

// What a task held is free when it has ended, however long its worker stays.
func TestPool_AnIdleWorkerKeepsNothingOfItsTask(t *testing.T) {
	p := buildPool(t, 1, WithKeepAlive(time.Hour))
	held := func() weak.Pointer[[64]byte] {
		load := new([64]byte)
		f, err := Submit(t.Context(), p, func(context.Context) (byte, error) { return load[7], nil })
		require.NoError(t, err)
		<-f.Done()
		return weak.Make(load)
	}()
	require.Eventually(t, func() bool {
		runtime.GC()
		return held.Value() == nil
	}, time.Minute, time.Millisecond)
	assert.Equal(t, 1, p.Snapshot().Workers)
}
