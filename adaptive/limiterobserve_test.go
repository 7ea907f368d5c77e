package adaptive

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

func TestLimiter_SnapshotAndCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := few(t, 2, WithQueue(1, time.Second))
		var permits [2]LimiterPermit
		for i := range permits {
			p := &permits[i]
			var err error
			*p, err = l.Acquire(t.Context())
			require.NoError(t, err)
		}
		go func() { assert.NoError(t, l.Do(t.Context(), nothingToDo), "it gets its turn") }()
		synctest.Wait()
		assert.ErrorIs(t, l.Do(t.Context(), nothingToDo), ErrLimited)
		time.Sleep(500 * ms)
		s := l.Snapshot()
		assert.Equal(t, LimiterSnapshot{
			Name: "backend", Rule: "FixedLimit(2)", Limit: 2, Min: 1, Max: 1000, InFlight: 2, Waiting: 1, MaxQueue: 1, Overload: true,
			Totals: LimiterTotalsSnapshot{Admitted: 2}, Refused: LimiterRefusedSnapshot{QueueFull: 1},
		}, s)
		assert.Equal(t, s, l.View())
		text, err := json.Marshal(s)
		require.NoError(t, err)
		assert.Contains(t, string(text), `"in_flight":2,"waiting":1,"max_queue":1,"overload":true,"took":0`)
		got := figures(t, l)
		for figure, want := range map[string]float64{
			"limiter_limit backend": 2, "limiter_in_flight backend": 2, "limiter_waiting backend": 1,
			"limiter_calls backend answered": 0, "rejected backend limiter queue_full": 1, "rejected backend limiter limit": 0,
		} {
			assert.InDelta(t, want, got[figure], 0, figure)
		}
		assert.NotContains(t, got, "limiter_baseline_seconds backend", "not known yet")
		permits[0].Settle(sluice.Throttled)
		permits[1].Done(nil)
		synctest.Wait()
		got = figures(t, l)
		assert.InDelta(t, 1, got["limiter_calls backend dropped"], 0)
		assert.InDelta(t, 2, got["limiter_calls backend answered"], 0)
		assert.InDelta(t, 1, got["limiter_waits backend"], 0)
		assert.InDelta(t, 0.5, got["limiter_wait_seconds backend"], 1e-9)
	})
}

func TestLimiter_WhatItHasFound(t *testing.T) {
	w := newWorld(1)
	l := newTestLimiter(t, w)
	now := passes(t, l, w.now, 150, 10*ms, nil)
	s := l.snapshot(now)
	assert.Equal(t, 10*ms, s.Took)
	assert.Equal(t, 10*ms, s.Baseline)
	got := figures(t, l)
	assert.InDelta(t, 0.01, got["limiter_baseline_seconds backend"], 1e-9)
	assert.InDelta(t, 0.01, got["limiter_took_seconds backend"], 1e-9)
	assert.Nil(t, l.found.Load().window.counts, "a window that is over is not kept")
}
