package bulkhead

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// hollow is a ctx whose Done is closed although its Err is nil.
type hollow struct{ context.Context }

func (hollow) Done() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// An error that a broken ctx does not have was taken for leave: the call went ahead
// without a place, and gave back that of another one when it ended.
func TestHollow_NobodyGetsLeaveWithoutAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(3, time.Minute))
		free := fill(t, b, 1)
		_, err := b.Acquire(hollow{t.Context()})
		assert.Equal(t, context.Canceled, err)
		assert.Equal(t, 1, b.Snapshot().InFlight)
		assert.Equal(t, context.Canceled, b.Do(hollow{t.Context()}, func(context.Context) error { return nil }))
		free()
		assert.Zero(t, b.Snapshot().InFlight)
	})
}

func TestHollow_NoTaskIsDoneThatNeverRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPool("test", 1, WithPoolQueue(3))
		require.NoError(t, err)
		done := make(chan struct{})
		f, err := Submit(t.Context(), p, func(context.Context) (int, error) { <-done; return 7, nil })
		require.NoError(t, err)
		synctest.Wait()
		assert.Equal(t, context.Canceled, p.Do(hollow{t.Context()}, func(context.Context) error { t.Error("ran"); return nil }))
		_, err = f.Wait(hollow{t.Context()})
		assert.Equal(t, context.Canceled, err)
		close(done)
		v, err := f.Wait(t.Context())
		require.NoError(t, err)
		assert.Equal(t, 7, v)
		require.NoError(t, p.Close(t.Context()))
	})
}
