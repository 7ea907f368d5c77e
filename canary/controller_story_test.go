package canary

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Without traffic a controller counted a failed check for each metric that has no value,
// and rolled a good release back at night; another one passed it, unless one wrote the
// test for NaN oneself; and a third, at low traffic, aborted releases for one 5xx.
// https://github.com/fluxcd/flagger/issues/1035
// https://github.com/fluxcd/flagger/issues/1689
// https://github.com/fluxcd/flagger/issues/1011
// https://github.com/argoproj/argo-rollouts/issues/1905
// https://github.com/kortix-ai/suna/pull/3403
func TestComplaint15_NoTrafficIsNeitherGoodNorBad(t *testing.T) {
	r := newRollout(t)
	require.NoError(t, r.start("v2"))
	for range 24 * 60 {
		r.pass(time.Minute)
	}
	r.expect(ControllerRamping, Percent(1))
	assert.Equal(t, NoData, r.c.Status().Verdict.Result)

	d := Decision{Version: r.p.Version("v2"), Reason: Split, Point: 7, Generation: r.p.Generation()}
	r.j.Observe(d, sluice.Failure, time.Millisecond) // the only request of the night
	for range 60 {
		r.pass(time.Minute)
	}
	r.expect(ControllerRamping, Percent(1))
	assert.Equal(t, Inconclusive, r.c.Status().Verdict.Result)
	assert.Equal(t, []string{"started", "stuck"}, r.kinds())
}

// The Mann-Whitney test that judges canaries elsewhere passes one of whose ten samples
// seven are a hundred times as bad as they should be, since it looks at ranks only.
// https://github.com/spinnaker/kayenta/issues/780
// https://github.com/spinnaker/spinnaker/issues/6278
func TestComplaint17_ADisasterIsSeen(t *testing.T) {
	const share = 100_000
	j := started(t, share)
	for u := range uint32(200) {
		j.Observe(split(share+u, share), sluice.Success, 10*time.Millisecond)
	}
	j.verdict(1)
	for u := range uint32(10) {
		took := 10 * time.Millisecond
		if u >= 3 {
			took *= 100
		}
		j.Observe(split(u, share), sluice.Success, took)
	}
	v := j.verdict(2)
	assert.Equal(t, Fail, v.Result)
	assert.Equal(t, SlowCalls, v.Metric)
}

// A rollback gave all traffic at once to a stable version that had been scaled down
// meanwhile, which then went down under it.
// https://github.com/argoproj/argo-rollouts/issues/3020
// https://github.com/argoproj/argo-rollouts/issues/3372
// https://github.com/argoproj/argo-rollouts/issues/3888
func TestComplaint19_RollbackWaitsForStable(t *testing.T) {
	for _, ready := range []bool{true, false} {
		r := newRollout(t, WithSteps(Percent(90)), WithStableReady(func() bool { return ready }, time.Hour))
		require.NoError(t, r.start("v2"))
		r.serve(1000, map[string]float64{"v2": 0.9})
		r.pass(time.Second)
		r.expect(ControllerRolledBack, 0)
		if ready {
			assert.Zero(t, r.p.Share("v2"))
			continue
		}
		assert.Greater(t, r.p.Share("v2"), Percent(89))
		require.NoError(t, r.p.Rollback("v2", "now it is"))
		assert.Zero(t, r.p.Share("v2"), "who says so at once gets it at once")
	}
}

// When the weight that the canary has is not in the list of step weights, because the list
// was edited, a controller's next step is all that is left
// (https://github.com/fluxcd/flagger, pkg/controller, nextStepWeight).
func TestStory_AnEditedLadderDoesNotJump(t *testing.T) {
	r := newRollout(t)
	require.NoError(t, r.start("v2"))
	r.healthy()
	r.expect(ControllerRamping, Percent(10))
	c := r.c.Config()
	c.Steps = ladder(Percent(5), Percent(15), Percent(30), All)
	require.NoError(t, r.c.Update(c))
	r.healthy()
	r.expect(ControllerRamping, Percent(15))
}

// While it waited for a manual gate the controller did not look at the metrics.
// https://github.com/fluxcd/flagger/issues/1801
func TestStory_AGateIsNoBlindfold(t *testing.T) {
	r := newRollout(t, WithGate(Percent(10)))
	require.NoError(t, r.start("v2"))
	r.healthy()
	r.expect(ControllerAwaiting, Percent(1))
	r.serve(8000, map[string]float64{"v2": 0.5})
	r.pass(time.Second)
	r.expect(ControllerRolledBack, 0)
	require.ErrorIs(t, r.c.Approve(), ErrNoGate)
}

// A dependency that both versions need goes down in the middle of a rollout: the canary
// is not to blame, and not promoted either.
func TestStory_AnOutageOfBothHolds(t *testing.T) {
	r := newRollout(t, WithSteps(Percent(10), All))
	require.NoError(t, r.start("v2"))
	r.serve(2000, nil)
	r.pass(time.Second)
	for range 50 {
		r.serve(2000, map[string]float64{"v1": 0.95, "v2": 0.95})
		r.pass(time.Minute)
		r.expect(ControllerRamping, Percent(10))
	}
	assert.Contains(t, r.c.Status().Verdict.Reason, "what both depend on is to blame")
}

// Judges that add noise to samples of equal numbers give another verdict each time they
// are asked.
func TestStory_TheSameCallsGiveTheSameVerdict(t *testing.T) {
	var said []string
	for range 3 {
		r := newRollout(t)
		require.NoError(t, r.start("v2"))
		r.serve(5000, map[string]float64{"v1": 0.01, "v2": 0.02})
		r.pass(time.Minute)
		said = append(said, fmt.Sprintf("%+v", r.c.Status().Verdict))
	}
	assert.Equal(t, said[0], said[1])
	assert.Equal(t, said[0], said[2])
}
