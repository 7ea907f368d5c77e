package bulkhead

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// A call that waited is admitted later than it came, so that nobody further in takes
// the wait for the call's own time.
func TestStage_AdmittedWhenItsTurnCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(1, time.Minute))
		first, err := b.Admit(t.Context(), clock.Now())
		require.NoError(t, err)
		assert.Equal(t, clock.Now(), first.At)
		came := clock.Now()
		time.AfterFunc(time.Second, func() { b.Settle(first, t.Context(), clock.Now(), nil, true) })
		second, err := b.Admit(t.Context(), came)
		require.NoError(t, err)
		assert.Equal(t, came+int64(time.Second), second.At)
		b.Settle(second, t.Context(), clock.Now(), errDown, false)
		assert.Zero(t, b.Snapshot().InFlight)
	})
}

func TestStage_WhatIsRefusedTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, 1, WithQueue(1, time.Second))
		free := fill(t, b, 1)
		_, err := b.Admit(t.Context(), clock.Now())
		assert.Equal(t, ReasonMaxWait, reasonFor(t, err))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		_, err = b.Admit(ctx, clock.Now())
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, 1, b.Snapshot().InFlight)
		free()
		(*Bulkhead)(nil).Settle(stage.Ticket{}, ctx, 1, nil, true)
	})
}

// However a call in a chain ends, the place is free again.
func TestStage_InAChain(t *testing.T) {
	outer, inner := build(t, 2), build(t, 1)
	chain := sluice.Chain(outer, inner)
	assert.NoError(t, chain.Do(t.Context(), func(ctx context.Context) error {
		assert.Equal(t, ReasonFull, reasonFor(t, chain.Do(ctx, nothing)))
		assert.Equal(t, 1, outer.Snapshot().InFlight, "the refused call gave its place back")
		return nil
	}))
	assert.Panics(t, func() {
		_, _ = sluice.Call(t.Context(), chain, func(context.Context) (int, error) { panic("boom") })
	})
	assert.Zero(t, outer.Snapshot().InFlight)
	assert.Zero(t, inner.Snapshot().InFlight)
}
