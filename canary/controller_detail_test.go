package canary

import (
	"bytes"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// While another version's users come back to stable one by one, its share grows by the
// clock. The Judge goes by the smallest, which is the most careful, and the step does not
// begin anew with every look.
func TestController_AnotherVersionFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRollout(t)
		require.NoError(t, r.p.SetWeights(map[string]Weight{"v3": Percent(40)}))
		require.NoError(t, r.c.Start("v2"))
		require.NoError(t, r.p.RollbackOver("v3", "x", time.Hour))
		r.c.Tick()
		assert.Equal(t, Percent(59), r.c.Status().Verdict.Trial.StableWeight)
		generation := r.c.Status().Verdict.Trial.Generation
		r.serve(3000, nil)
		time.Sleep(30 * time.Second)
		r.c.Tick()
		v := r.c.Status().Verdict
		assert.Equal(t, Percent(59), v.Trial.StableWeight)
		assert.Equal(t, generation, v.Trial.Generation)
		assert.Positive(t, v.CanarySeen.Requests)
		assert.Equal(t, 30*time.Second, r.c.Status().Lasted)
		time.Sleep(2 * time.Hour)
		r.c.Tick()
		assert.Equal(t, Percent(99), r.c.Status().Verdict.Trial.StableWeight)
	})
}

func TestController_HoldsOfTheirOwn(t *testing.T) {
	r := newRollout(t, WithLadder(RampStep{Percent(10), 10 * time.Minute, false}, RampStep{Percent(50), 0, false}, RampStep{All, Auto, false}), WithStuckAfter(11*time.Minute))
	require.NoError(t, r.start("v2"))
	r.serve(8000, nil)
	r.pass(10*time.Minute - 1)
	r.expect(ControllerRamping, Percent(10))
	assert.Equal(t, 10*time.Minute, r.c.Status().Hold)
	r.pass(1)
	r.expect(ControllerRamping, Percent(50))
	r.pass(11*time.Minute - 1)
	assert.False(t, r.c.Status().Stuck)
	r.pass(1)
	assert.True(t, r.c.Status().Stuck)
	r.serve(8000, nil)
	r.pass(1)
	r.expect(ControllerRamping, All)

	c := r.c.Config()
	c.StuckAfter = 0
	require.NoError(t, r.c.Update(c))
	r.pass(1000 * time.Hour)
	assert.False(t, r.c.Status().Stuck, "0 never tells")
}

func TestController_RunFollowsItsInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int64
		r := newRollout(t, WithGate(Percent(1)), WithApproval(func(ControllerStatus) bool { looks.Add(1); return false }))
		require.NoError(t, r.c.Start("v2"))
		go func() { _ = r.c.Run(t.Context()) }()
		time.Sleep(10*time.Second + time.Millisecond) // so that nobody asks which of two timers is first
		assert.EqualValues(t, 10, looks.Load())
		c := r.c.Config()
		c.Interval = time.Minute
		require.NoError(t, r.c.Update(c))
		time.Sleep(10 * time.Minute)
		assert.EqualValues(t, 20, looks.Load())
	})
}

// The Picker may be ahead of the Controller: somebody has promoted the version, or taken
// it away, in between.
func TestController_SteeringComesLate(t *testing.T) {
	r := newRollout(t)
	require.NoError(t, r.start("v2"))
	require.NoError(t, r.p.Promote("v2"))
	assert.ErrorIs(t, r.c.Abort("x"), ErrStable, "the stable version cannot be rolled back")
	r.pass(time.Second)
	assert.Equal(t, ControllerCompleted, r.c.Status().State)
	assert.Equal(t, r.c.Status().State, r.c.Snapshot().State)
}

func TestController_LogsTheVerdict(t *testing.T) {
	var log bytes.Buffer
	r := newRollout(t, WithRampLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, r.start("v2"))
	r.serve(8000, map[string]float64{"v2": 0.9})
	r.pass(time.Second)
	for _, want := range []string{"level=WARN", "sluice.event=reverted", "sluice.verdict=fail", "sluice.from=1%", "sluice.to=0%", "sluice.version=v2"} {
		assert.Contains(t, log.String(), want)
	}
}

// Words for people and logs; the zero values and what lies beyond have some, too.
func TestWordsOfTheJudgeAndTheController(t *testing.T) {
	for want, got := range map[string]interface{ String() string }{
		"none": VerdictResult(0), "no_data": NoData, "fail": Fail, "VerdictResult(9)": VerdictResult(9),
		"errors": Errors, "slow_calls": SlowCalls, "JudgeMetric(4)": JudgeMetric(4),
		"idle": ControllerIdle, "rolled_back": ControllerRolledBack, "ControllerState(9)": ControllerState(9),
		"refused": ControllerRefused, "ControllerEventKind(0)": ControllerEventKind(0),
		"hold": NoDataHold, "NoDataPolicy(0)": NoDataPolicy(0),
	} {
		assert.Equal(t, want, got.String())
	}
	assert.Equal(t, "none", JudgeMetric(0).String())
	assert.Equal(t, "none", ControllerState(0).String())
	text, err := ControllerDone.MarshalText()
	require.NoError(t, err)
	assert.Equal(t, "done", string(text))
}
