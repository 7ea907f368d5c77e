package canary

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// What others do to the Picker and the Judge at the very moment at which a Controller acts,
// or between two of its looks.

func TestController_GoesOnWatchingWhenTheJudgeIsReset(t *testing.T) {
	r := newRollout(t, WithSteps(Percent(10), All))
	require.NoError(t, r.start("v2"))
	r.serve(1000, nil)
	r.j.Reset()
	r.pass(time.Second)
	r.expect(ControllerRamping, Percent(10))
	r.serve(1000, map[string]float64{"v2": 1})
	r.pass(time.Second)
	r.expect(ControllerRolledBack, 0)
}

// Each Controller wants a Judge of its own; if two have one, neither goes by what it says
// of the other's version.
func TestController_GoesByNoVerdictOnAnotherVersion(t *testing.T) {
	r := newRollout(t, WithSteps(Percent(10), All))
	require.NoError(t, r.start("v2"))
	require.NoError(t, r.j.Begin(Trial{Canary: "a", Stable: "b", CanaryWeight: Percent(50), StableWeight: Percent(50), Generation: 1}))
	for i := range uint32(1000) {
		r.j.Observe(Decision{Version: &Version{name: "a"}, Reason: Split, Point: i, Generation: 1}, sluice.Failure, 0)
	}
	require.Equal(t, Fail, r.j.Verdict().Result)
	r.pass(time.Second)
	r.expect(ControllerRamping, Percent(10))
}

// locked does something in the middle of a look.
func (r *rollout) locked(f func() error) error {
	defer r.c.deliver()
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return f()
}

func TestController_OverwritesNoWeightThatItHasNotSeen(t *testing.T) {
	r := newRollout(t)
	require.NoError(t, r.start("v2"))
	require.NoError(t, r.p.SetWeights(map[string]Weight{"v2": 0}), "an emergency")
	require.Error(t, r.locked(func() error { return r.c.setWeight(ControllerStepped, Percent(10), "", r.now) }))
	assert.Zero(t, r.p.Share("v2"))
	r.pass(time.Second)
	r.expect(ControllerPaused, 0)
}

func TestController_PromotesNothingThatItHasNotSeen(t *testing.T) {
	for name, emergency := range map[string]func(p *Picker) error{
		"no weight": func(p *Picker) error { return p.SetWeights(map[string]Weight{"v2": 0}) },
		"killed":    func(p *Picker) error { return p.Kill("an emergency") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRollout(t, WithSteps(All))
			require.NoError(t, r.start("v2"))
			require.NoError(t, emergency(r.p))
			require.Error(t, r.locked(func() error { return r.c.complete(r.c.config.Load(), r.now) }))
			assert.Equal(t, All, r.p.Share("v1"))
			assert.Equal(t, "v1", r.p.Stable().Name())
		})
	}
}

// A step is judged by the shares that were in force, also if they changed once more before
// it began.
func TestController_JudgesByTheSharesInForce(t *testing.T) {
	r := newRollout(t)
	require.NoError(t, r.start("v2"))
	require.NoError(t, r.p.SetWeights(map[string]Weight{"v2": Percent(50)}))
	require.NoError(t, r.locked(func() error { r.c.newStage(r.now); return nil }))
	assert.Equal(t, Percent(50), r.j.Verdict().Trial.CanaryWeight)
	require.NoError(t, r.p.Retire("v2"))
	require.NoError(t, r.locked(func() error { r.c.newStage(r.now); return nil }))
	assert.Nil(t, r.c.ramp.stage)
	r.pass(time.Second)
	r.expect(ControllerRolledBack, 0)
}

// Between two looks the canary had half of the users, and calls from then end late. A
// tenth fails in both versions.
func TestController_CountsNothingOfSharesThatItHasNotSeen(t *testing.T) {
	r := newRollout(t, WithSteps(Percent(1), All))
	require.NoError(t, r.start("v2"))
	r.pass(time.Second)
	require.NoError(t, r.p.SetWeights(map[string]Weight{"v2": Percent(50)}))
	var under []Decision
	for i := range 2000 {
		under = append(under, r.p.Decide(Input{ID: "user-" + strconv.Itoa(i)}))
	}
	require.NoError(t, r.p.SetWeights(map[string]Weight{"v2": Percent(1)}))
	r.pass(time.Second)
	for i, d := range under {
		r.j.Observe(d, outcome(i%10 == 0), 0)
	}
	v := r.j.verdict(r.now)
	assert.Equal(t, NoData, v.Result, v.Reason)
	r.pass(time.Minute - 2*time.Second)
	r.serve(8000, nil)
	r.pass(time.Second)
	r.expect(ControllerRamping, All) // the hold has gone on
}

func TestController_AnApprovalIsForOneGate(t *testing.T) {
	jump := func(c *Controller) {
		next := c.Config()
		next.Steps = []RampStep{{Percent(1), Auto, false}, {Percent(90), Auto, true}, {All, Auto, false}}
		require.NoError(t, c.Update(next))
	}
	t.Run("by hand", func(t *testing.T) {
		r := newRollout(t, WithGate(Percent(10)))
		require.NoError(t, r.start("v2"))
		r.healthy()
		r.expect(ControllerAwaiting, Percent(1))
		require.NoError(t, r.c.Approve())
		jump(r.c)
		r.pass(time.Second)
		r.expect(ControllerAwaiting, Percent(1))
		assert.True(t, r.c.Status().Gate)
		require.NoError(t, r.c.Approve())
		assert.False(t, r.c.Status().Gate)
		r.pass(time.Second)
		r.expect(ControllerRamping, Percent(90))
	})
	t.Run("by a function", func(t *testing.T) {
		var r *rollout
		var asked []Weight
		r = newRollout(t, WithGate(Percent(10)), WithApproval(func(s ControllerStatus) bool {
			asked = append(asked, s.Next)
			jump(r.c)
			return true
		}))
		require.NoError(t, r.start("v2"))
		r.healthy()
		r.expect(ControllerAwaiting, Percent(1))
		r.pass(time.Second)
		r.expect(ControllerRamping, Percent(90))
		assert.Equal(t, []Weight{Percent(10), Percent(90)}, asked)
	})
	t.Run("for one version", func(t *testing.T) {
		var r *rollout
		r = newRollout(t, WithGate(Percent(1)), WithApproval(func(s ControllerStatus) bool {
			if s.Version == "v2" {
				require.NoError(t, r.c.Abort("not this one"))
				require.NoError(t, r.start("v3"))
				return true
			}
			return false
		}))
		require.NoError(t, r.start("v2"))
		r.pass(time.Second)
		r.expect(ControllerAwaiting, 0)
		assert.Equal(t, "v3", r.c.Status().Version)
	})
}

// A Start that the Picker refuses leaves what was, also whom the Judge watches.
func TestController_AFailedStartForgetsNobody(t *testing.T) {
	r := newRollout(t, WithSteps(Percent(60)))
	require.NoError(t, r.start("v2"))
	r.serve(8000, nil)
	r.pass(time.Minute)
	r.expect(ControllerCompleted, Percent(60))
	require.Error(t, r.start("v3"), "there is no room")
	r.expect(ControllerCompleted, Percent(60))
	r.pass(time.Second)
	r.serve(1000, map[string]float64{"v2": 1})
	r.pass(time.Second)
	r.expect(ControllerRolledBack, 0)
}
