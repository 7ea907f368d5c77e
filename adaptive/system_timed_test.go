package adaptive

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSystem_MeasuresOnlyForRulesThatAskHowLongCallsTake(t *testing.T) {
	for name, c := range map[string]struct {
		opts []SystemOption
		want bool
	}{
		"the defaults, for Load1": {[]SystemOption{WithLoad1(Auto)}, true},
		"AvgRT":                   {[]SystemOption{WithAvgRT(time.Hour)}, true},
		"BBR":                     {[]SystemOption{WithMode(BBR), WithCPU(0.8)}, true},
		"Hard":                    {[]SystemOption{WithMode(Hard), WithCPU(0.8), WithConcurrency(9), WithEntryQPS(9)}, false},
		"delay":                   {[]SystemOption{WithQueueDelay(5 * ms)}, false},
		"nothing":                 {nil, false},
	} {
		s := newSystem(t, c.opts...)
		p, err := s.Allow(t.Context())
		require.NoError(t, err)
		assert.Zero(t, p.start, "%s: no Run, no rule", name)
		p.Done(nil)
		s.tick(t0, sight{})
		p, err = s.Allow(t.Context())
		require.NoError(t, err)
		assert.Equal(t, c.want, p.start > 0, name)
		p.Done(nil)
		got := s.counts()
		assert.Equal(t, int64(2), got.succeeded, name)
		assert.Equal(t, c.want, got.successes.calls == 1, name)
	}
}

// A call that began before anybody asked how long it takes is counted, and its length is
// not taken for nothing, nor for all the time since the process began.
func TestSystem_UpdateBeginsToMeasure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, WithCPU(0.8))
		ctx, cancel := context.WithCancel(t.Context())
		go s.Run(ctx)
		defer cancel()
		call := func(p *SystemPermit) {
			time.Sleep(tickSystem / 2)
			var err error
			*p, err = s.Allow(ctx)
			require.NoError(t, err)
			time.Sleep(tickSystem)
		}
		var early [3]SystemPermit
		for i := range early {
			call(&early[i])
		}
		require.NoError(t, s.Update(SystemConfig{Mode: Hard, AvgRT: time.Second}))
		var late SystemPermit
		call(&late) // the rule is in force
		late.Cancel()
		call(&late)
		early[0].Done(nil)
		early[1].Done(assert.AnError)
		early[2].Close()
		late.Done(nil)
		time.Sleep(tickSystem)
		assert.Equal(t, known(tickSystem.Seconds()), s.verdict.Load().findings[AvgRT].reading)
		totals := s.Snapshot().Totals
		assert.Equal(t, []int64{2, 2}, []int64{totals.Success, totals.Failure})
	})
}
