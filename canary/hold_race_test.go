package canary

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Whatever others try meanwhile, no pick that begins after Rollback has returned yields
// the version: plans of a leader that knows nothing of it, weights, configurations, a
// schedule, a controller, tokens and stored assignments.
func TestRollback_HoldsAgainstAll(t *testing.T) {
	tokens := sluice.Must(NewTokens(make([]byte, 32), nil))
	token := sluice.Must(tokens.Sign(Token{Rollout: "rollout", Version: "c0", Expires: time.Now().Add(time.Hour)}))
	for range runs(3) {
		p := sluice.Must(New("rollout", "stable", WithVersion("c0", 0, Percent(50)), WithVersion("c1", 1, 0), WithTokens(tokens),
			WithTargeting(func(Input) string { return "c0" })))
		leader := pickerOf(t, 500_000, 0)
		j := sluice.Must(NewJudge("rollout"))
		c := sluice.Must(NewController(p, j, WithMinHold(0), WithNoData(NoDataProceed, 0)))
		require.NoError(t, c.Start("c0"))
		schedule := sluice.Must(LinearSchedule(time.Now().Add(-time.Minute), time.Hour, Percent(20), Percent(80)))
		var (
			stop, gone atomic.Bool
			all        sync.WaitGroup
			late       atomic.Int64
		)
		try := func(f func(i int)) {
			all.Go(func() {
				for i := 0; !stop.Load(); i++ {
					f(i)
				}
			})
		}
		for _, in := range []Input{{}, {Sticky: "c0"}, {Token: token}, {Override: "c0", Authorized: true}, {Override: "always", Authorized: true, Target: "c0"}} {
			try(func(i int) {
				in.ID = strconv.Itoa(i)
				before := gone.Load()
				if v := p.Decide(in).Version; before && v.Name() == "c0" || before && p.Pick(in.ID).Name() == "c0" {
					late.Add(1)
				}
			})
		}
		try(func(i int) {
			_ = leader.SetWeights(map[string]Weight{"c0": PPM(500_000 - i%1000), "c1": PPM(i % 1000)})
			_ = p.Apply(leader.Plan())
		})
		try(func(i int) {
			next := p.Config()
			for i := range next.Versions {
				next.Versions[i].Weight = PPM(100_000 + i)
			}
			_ = p.Update(next)
		})
		try(func(i int) { _ = p.SetWeights(map[string]Weight{"c0": PPM(i % 500_000)}) })
		try(func(int) { c.Tick() })
		try(func(int) { _ = p.Drain("c0", time.Hour) })
		try(func(int) { _ = p.SetWeights(map[string]Weight{"c0": schedule.At(time.Now())}) })
		for range 20 { // some of all that before
			time.Sleep(time.Millisecond) // real time, for real goroutines to meet in
		}
		require.NoError(t, p.Rollback("c0", "bad"))
		gone.Store(true)
		for range 20 {
			time.Sleep(time.Millisecond)
		}
		stop.Store(true)
		all.Wait()
		assert.Zero(t, late.Load())
		assert.Zero(t, p.Share("c0"))
		require.NoError(t, p.Plan().Validate())
	}
}
