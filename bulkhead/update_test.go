package bulkhead

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// https://github.com/golang/go/issues/29721: a semaphore whose size cannot change.
// A higher limit lets in those that wait, a lower one holds as calls end.
func TestLaw9_TheLimitChangesLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 10, WithQueue(10, math.MaxInt64))
		free := fill(t, b, 10)
		start := time.Now()
		require.NoError(t, b.SetLimit(2), "resilience4j's hangs here")
		assert.Zero(t, time.Since(start))
		assert.Equal(t, 10, b.Snapshot().InFlight)
		var admitted atomic.Int64
		for range 4 {
			go func() {
				p, err := b.Acquire(t.Context())
				assert.NoError(t, err)
				admitted.Add(1)
				time.Sleep(time.Hour)
				p.Close()
			}()
			synctest.Wait()
		}
		for range 8 {
			free()
		}
		synctest.Wait()
		assert.Zero(t, admitted.Load(), "two of ten are still there")
		free()
		synctest.Wait()
		assert.EqualValues(t, 1, admitted.Load())
		require.NoError(t, b.SetLimit(4))
		synctest.Wait()
		assert.EqualValues(t, 3, admitted.Load())
		free()
		synctest.Wait()
		assert.EqualValues(t, 4, admitted.Load())
		assert.Equal(t, 4, b.Snapshot().Limit)
		time.Sleep(2 * time.Hour)
		assert.Zero(t, b.Snapshot().InFlight)
	})
}

func TestLaw9_ALimitOf0Closes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(10, time.Hour))
		free := fill(t, b, 1)
		go func() {
			_, err := b.Acquire(t.Context())
			assert.Equal(t, ReasonClosed, reasonFor(t, err))
		}()
		synctest.Wait()
		require.NoError(t, b.SetLimit(0))
		synctest.Wait()
		_, err := b.Acquire(t.Context())
		assert.Equal(t, ReasonClosed, reasonFor(t, err))
		_, err = b.TryAcquire(t.Context())
		assert.Equal(t, ReasonClosed, reasonFor(t, err))
		free()
		assert.Equal(t, RefusedSnapshot{Closed: 3}, b.Snapshot().Refused)
		require.NoError(t, b.SetLimit(1))
		assert.NoError(t, b.Do(t.Context(), func(context.Context) error { return nil }))
	})
}

func TestLaw9_WhoWaitsKeepsTurnAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(10, time.Second))
		free := fill(t, b, 1)
		start := time.Now()
		go func() {
			_, err := b.Acquire(t.Context())
			assert.Equal(t, ReasonMaxWait, reasonFor(t, err))
			assert.Equal(t, time.Second, time.Since(start))
		}()
		synctest.Wait()
		c := b.Config()
		c.MaxQueue, c.MaxWait = 0, 0
		require.NoError(t, b.Update(c))
		assert.Equal(t, 1, b.Snapshot().Waiting)
		_, err := b.Acquire(t.Context())
		assert.Equal(t, ReasonQueueFull, reasonFor(t, err))
		time.Sleep(2 * time.Second)
		_, err = b.Acquire(t.Context())
		assert.Equal(t, ReasonFull, reasonFor(t, err))
		free()
	})
}

func TestLaw9_WhatDoesNotValidateChangesNothing(t *testing.T) {
	b := build(t, 3)
	before := b.Config()
	assert.ErrorContains(t, b.SetLimit(-1), "Limit -1")
	assert.Error(t, b.Update(Config{}))
	assert.Equal(t, before, b.Config())
	assert.Equal(t, 3, b.Snapshot().Limit)
	kept := b.config.Load()
	require.NoError(t, b.Update(before))
	assert.Same(t, kept, b.config.Load(), "an equal one touches nothing")
}
