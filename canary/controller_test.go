package canary

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A rollout is a Controller with its Picker and Judge, driven by hand: time goes by in
// pass, and users call in serve.
type rollout struct {
	t      *testing.T
	p      *Picker
	j      *Judge
	c      *Controller
	now    int64
	events []ControllerEvent
	served int
}

func newRollout(t *testing.T, opts ...ControllerOption) *rollout {
	t.Helper()
	r := &rollout{t: t, now: 1}
	r.p = sluice.Must(New("checkout", "v1", WithVersion("v2", 0, 0), WithVersion("v3", 1, 0)))
	r.j = sluice.Must(NewJudge("checkout", WithWarmUp(0)))
	opts = append([]ControllerOption{
		WithSteps(Percent(1), Percent(10), Percent(50), All), WithMinHold(time.Minute),
		WithOnRamp(func(e ControllerEvent) { r.events = append(r.events, e) }),
	}, opts...)
	var err error
	r.c, err = NewController(r.p, r.j, opts...)
	require.NoError(t, err)
	return r
}

// pass lets time go by, and looks.
func (r *rollout) pass(d time.Duration) {
	r.now += int64(d)
	r.c.tick(r.now)
}

// start starts v2 at r.now.
func (r *rollout) start(version string) error {
	defer r.c.deliver()
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	return r.c.start(version, r.now)
}

// serve makes each of so many users call once; a share of each version's calls fails.
func (r *rollout) serve(users int, failing map[string]float64) {
	seen := map[string]int{}
	for range users {
		r.served++
		d := r.p.Decide(Input{ID: "user-" + strconv.Itoa(r.served)})
		v := d.Version.Name()
		seen[v]++
		rate := failing[v]
		failed := int(rate*float64(seen[v])) > int(rate*float64(seen[v]-1))
		r.j.Observe(d, outcome(failed), time.Millisecond)
	}
}

// healthy serves until the canary has been seen enough, and lets the hold go by.
func (r *rollout) healthy() {
	r.serve(8000, nil)
	r.pass(time.Minute)
}

func (r *rollout) kinds() []string {
	var kinds []string
	for _, e := range r.events {
		kinds = append(kinds, e.Kind.String())
	}
	return kinds
}

func (r *rollout) expect(state ControllerState, w Weight) {
	r.t.Helper()
	s := r.c.Status()
	require.Equal(r.t, state, s.State, s.Verdict.Reason)
	require.Equal(r.t, w, s.Weight)
}

func TestController_GoesUpTheLadder(t *testing.T) {
	r := newRollout(t)
	r.expect(ControllerIdle, 0)
	require.NoError(t, r.start("v2"))
	for _, w := range []Weight{Percent(1), Percent(10), Percent(50), All} {
		r.expect(ControllerRamping, w)
		assert.Equal(t, w, r.p.Share("v2"))
		r.serve(8000, nil)
		r.pass(time.Minute - 1)
		r.expect(ControllerRamping, w) // not before its hold is over
		r.pass(1)
	}
	r.expect(ControllerCompleted, All)
	assert.Equal(t, "v2", r.p.Stable().Name())
	assert.Equal(t, []string{"started", "stepped", "stepped", "stepped", "done"}, r.kinds())
	moved := []Weight{Percent(1), Percent(9), Percent(40), Percent(50), 0}
	for i, e := range r.events {
		assert.Equal(t, moved[i], e.Moved.Moved(), e.Kind)
		assert.Equal(t, "checkout", e.Name)
		assert.Equal(t, "v2", e.Version)
	}
	assert.Equal(t, moved[1], r.events[1].Moved.Of("v1", "v2"))
	assert.Equal(t, "promoted", r.events[4].Cause)
	r.pass(time.Hour)
	assert.Len(t, r.events, 5)

	// The next version comes after it.
	require.ErrorIs(t, r.start("v2"), ErrStable)
	require.NoError(t, r.start("v3"))
	r.expect(ControllerRamping, Percent(1))
}

func TestController_EndsBelowTheTop(t *testing.T) {
	r := newRollout(t, WithSteps(Percent(5), Percent(20)))
	require.NoError(t, r.start("v2"))
	r.healthy()
	r.healthy()
	r.expect(ControllerCompleted, Percent(20))
	assert.Equal(t, "v1", r.p.Stable().Name())
	require.ErrorIs(t, r.start("v2"), ErrRampRunning)
	r.serve(2000, map[string]float64{"v2": 0.5})
	r.pass(time.Hour)
	r.expect(ControllerRolledBack, 0)
}

// The Judge is listened to in every state: at a gate, when paused, after the last step.
func TestController_RollsBackInEveryState(t *testing.T) {
	for name, into := range map[string]func(r *rollout){
		"first step":  func(r *rollout) {},
		"a later one": func(r *rollout) { r.healthy() },
		"at a gate": func(r *rollout) {
			r.healthy()
			r.healthy()
			r.expect(ControllerAwaiting, Percent(10))
		},
		"paused": func(r *rollout) {
			require.NoError(t, r.c.Pause("lunch"))
			r.expect(ControllerPaused, Percent(1))
		},
		"completed": func(r *rollout) {
			c := r.c.Config()
			c.Promote, c.Steps = false, ladder(Percent(1), Percent(10))
			require.NoError(t, r.c.Update(c))
			r.healthy()
			r.healthy()
			r.expect(ControllerCompleted, Percent(10))
		},
		"stuck": func(r *rollout) { r.pass(time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRollout(t, WithGate(Percent(50)))
			require.NoError(t, r.start("v2"))
			into(r)
			r.serve(4000, map[string]float64{"v2": 0.9})
			r.pass(time.Second)
			r.expect(ControllerRolledBack, 0)
			assert.Zero(t, r.p.Share("v2"))
			last := r.events[len(r.events)-1]
			assert.Equal(t, ControllerReverted, last.Kind)
			assert.Contains(t, last.Cause, "errors: evidence")
			assert.Equal(t, last.From, last.Moved.Of("v2", "v1"), "all of its users go to stable")
			assert.Equal(t, Fail, last.Verdict.Result)
			assert.NotEqual(t, "v2", r.p.Decide(Input{ID: "user-1"}).Version.Name())

			require.ErrorIs(t, r.start("v2"), ErrRolledBack, "the same version does not start by itself again")
			require.NoError(t, r.p.Readmit("v2"))
			require.NoError(t, r.start("v2"))
			r.expect(ControllerRamping, Percent(1))
			r.pass(time.Second)
			r.expect(ControllerRamping, Percent(1)) // what was seen before is forgotten
		})
	}
}

func TestController_WithoutAutoRollback(t *testing.T) {
	r := newRollout(t, WithAutoRollback(false))
	require.NoError(t, r.start("v2"))
	r.serve(8000, map[string]float64{"v2": 0.9})
	r.pass(time.Minute)
	r.pass(time.Minute)
	r.expect(ControllerRamping, Percent(1))
	assert.Equal(t, []string{"started", "condemned"}, r.kinds())
	require.NoError(t, r.c.Abort("enough"))
	r.expect(ControllerRolledBack, 0)
	assert.Equal(t, "enough", r.c.Status().Cause)
}

func TestController_Gate(t *testing.T) {
	r := newRollout(t, WithGate(Percent(10)), WithGate(Percent(50)))
	require.NoError(t, r.start("v2"))
	require.ErrorIs(t, r.c.Approve(), ErrNoGate)
	r.healthy()
	r.expect(ControllerAwaiting, Percent(1))
	assert.True(t, r.c.Status().Gate)
	assert.Equal(t, Percent(10), r.c.Status().Next)
	r.pass(time.Hour)
	r.expect(ControllerAwaiting, Percent(1))
	require.NoError(t, r.c.Approve())
	r.pass(time.Second)
	r.expect(ControllerRamping, Percent(10))
	r.healthy()
	r.expect(ControllerAwaiting, Percent(10)) // one approval opens one gate
	require.NoError(t, r.c.Approve())
	r.pass(time.Second)
	r.expect(ControllerRamping, Percent(50))
	assert.Equal(t, []string{"started", "gated", "stepped", "gated", "stepped"}, r.kinds())
}

func TestController_GateBeforeTheFirstStep(t *testing.T) {
	r := newRollout(t, WithGate(Percent(1)))
	require.NoError(t, r.start("v2"))
	r.expect(ControllerAwaiting, 0)
	r.pass(time.Hour)
	r.expect(ControllerAwaiting, 0)
	require.NoError(t, r.c.Approve())
	r.pass(time.Second)
	r.expect(ControllerRamping, Percent(1))
}

func TestController_Approval(t *testing.T) {
	asked, answer := 0, false
	var r *rollout
	r = newRollout(t, WithGate(Percent(10)), WithApproval(func(s ControllerStatus) bool {
		asked++
		assert.Equal(t, Percent(1), s.Weight)
		assert.Equal(t, Percent(10), s.Next)
		assert.Equal(t, s.State, r.c.Status().State, "no lock is held")
		if asked == 2 {
			panic("no")
		}
		return answer
	}))
	require.NoError(t, r.start("v2"))
	r.pass(time.Second)
	assert.Zero(t, asked, "not before the step is over")
	r.healthy()
	r.pass(time.Second)
	r.expect(ControllerAwaiting, Percent(1))
	assert.Equal(t, 2, asked)
	assert.EqualValues(t, 1, r.c.Status().Panics)
	answer = true
	r.pass(time.Second)
	r.expect(ControllerRamping, Percent(10))
}

func TestController_PauseAndResume(t *testing.T) {
	r := newRollout(t)
	require.ErrorIs(t, r.c.Pause("x"), ErrNoRamp)
	require.ErrorIs(t, r.c.Abort("x"), ErrNoRamp)
	require.NoError(t, r.start("v2"))
	require.ErrorIs(t, r.c.Resume(), ErrNoRamp)
	require.NoError(t, r.c.Pause("lunch"))
	require.ErrorIs(t, r.start("v3"), ErrRampRunning)
	r.healthy()
	r.pass(time.Hour)
	r.expect(ControllerPaused, Percent(1))
	require.NoError(t, r.c.Resume())
	r.pass(time.Second)
	r.expect(ControllerRamping, Percent(10))
	assert.Equal(t, []string{"started", "held", "resumed", "stepped"}, r.kinds())
}

// Too little to say, for three holds.
func TestController_Stuck(t *testing.T) {
	r := newRollout(t)
	require.NoError(t, r.start("v2"))
	r.serve(500, nil)
	r.pass(3*time.Minute - 1)
	assert.False(t, r.c.Status().Stuck)
	r.pass(1)
	r.pass(time.Hour)
	assert.True(t, r.c.Status().Stuck)
	assert.Equal(t, []string{"started", "stuck"}, r.kinds())
	assert.Contains(t, r.c.Status().Cause, "users of the canary were seen")
	r.healthy()
	r.expect(ControllerRamping, Percent(10))
	assert.False(t, r.c.Status().Stuck)
}

func TestController_NoData(t *testing.T) {
	for policy, want := range map[NoDataPolicy]Weight{NoDataHold: Percent(1), NoDataProceed: Percent(10), NoDataRollback: 0} {
		r := newRollout(t, WithNoData(policy, 10*time.Minute))
		require.NoError(t, r.start("v2"))
		r.pass(10*time.Minute - 1)
		r.expect(ControllerRamping, Percent(1))
		r.pass(1)
		assert.Equal(t, want, r.p.Share("v2"), policy)
	}
}

// What others do to the Picker is respected.
func TestController_OthersChangeTheWeights(t *testing.T) {
	t.Run("more", func(t *testing.T) {
		r := newRollout(t)
		require.NoError(t, r.start("v2"))
		r.serve(8000, nil)
		require.NoError(t, r.p.SetWeights(map[string]Weight{"v2": Percent(20)}))
		r.serve(200, map[string]float64{"v2": 1, "v1": 1}) // which nobody has told the Judge of yet
		r.pass(time.Minute)
		r.expect(ControllerRamping, Percent(20)) // the step begins anew
		assert.EqualValues(t, 200, r.j.Snapshot().Strays)
		r.healthy()
		r.expect(ControllerRamping, Percent(50))
		assert.Equal(t, []string{"started", "changed", "stepped"}, r.kinds())
	})
	t.Run("nothing", func(t *testing.T) {
		r := newRollout(t)
		require.NoError(t, r.start("v2"))
		require.NoError(t, r.p.SetWeights(map[string]Weight{"v2": 0}))
		r.pass(time.Hour)
		r.expect(ControllerPaused, 0)
		require.NoError(t, r.c.Resume())
		r.pass(time.Second)
		r.expect(ControllerRamping, Percent(1))
	})
	t.Run("rollback", func(t *testing.T) {
		r := newRollout(t)
		require.NoError(t, r.start("v2"))
		require.NoError(t, r.p.Rollback("v2", "by hand"))
		r.pass(time.Second)
		r.expect(ControllerRolledBack, 0)
		assert.Equal(t, "by hand", r.c.Status().Cause)
	})
	t.Run("retired", func(t *testing.T) {
		r := newRollout(t)
		require.NoError(t, r.start("v2"))
		require.NoError(t, r.p.Retire("v2"))
		r.pass(time.Second)
		r.expect(ControllerRolledBack, 0)
	})
	t.Run("promoted", func(t *testing.T) {
		r := newRollout(t)
		require.NoError(t, r.start("v2"))
		require.NoError(t, r.p.Promote("v2"))
		r.pass(time.Second)
		assert.Equal(t, ControllerCompleted, r.c.Status().State)
	})
	t.Run("another version", func(t *testing.T) {
		r := newRollout(t)
		require.NoError(t, r.start("v2"))
		require.NoError(t, r.p.SetWeights(map[string]Weight{"v3": Percent(40)}))
		r.pass(time.Second)
		r.serve(8000, nil)
		r.pass(time.Minute)
		r.expect(ControllerRamping, Percent(10))
		assert.Equal(t, Percent(50), r.j.Snapshot().Verdict.Trial.StableWeight)
	})
	t.Run("something else", func(t *testing.T) {
		r := newRollout(t)
		require.NoError(t, r.start("v2"))
		r.serve(1000, nil)
		require.NoError(t, r.p.Rollback("v3", "which has nothing anyway"))
		r.pass(time.Second)
		r.serve(7000, nil)
		r.pass(time.Minute - time.Second)
		r.expect(ControllerRamping, Percent(10)) // the step goes on
	})
	t.Run("killed", func(t *testing.T) {
		r := newRollout(t)
		require.NoError(t, r.start("v2"))
		r.serve(8000, nil)
		require.NoError(t, r.p.Kill("fire"))
		r.pass(time.Hour)
		r.expect(ControllerRamping, Percent(1))
		require.NoError(t, r.p.Revive())
		r.pass(time.Second)
		r.expect(ControllerRamping, Percent(1))
		r.healthy()
		r.expect(ControllerRamping, Percent(10))
	})
}

// A ladder may be changed under way.
func TestController_LadderEdits(t *testing.T) {
	r := newRollout(t)
	require.NoError(t, r.start("v2"))
	r.healthy()
	r.expect(ControllerRamping, Percent(10))
	c := r.c.Config()
	c.Steps = ladder(Percent(2), Percent(20), Percent(40), Percent(80))
	require.NoError(t, r.c.Update(c))
	assert.Equal(t, Percent(20), r.c.Status().Next)
	r.healthy()
	r.expect(ControllerRamping, Percent(20))
	c.Steps = ladder(Percent(5))
	require.NoError(t, r.c.Update(c))
	r.healthy()
	r.expect(ControllerCompleted, Percent(20))

	c.Steps = nil
	require.Error(t, r.c.Update(c))
	assert.Len(t, r.c.Config().Steps, 1)
}

// After a restart there is a new Controller, and the Picker has the plan of before.
func TestController_GoesOnAfterARestart(t *testing.T) {
	r := newRollout(t)
	require.NoError(t, r.p.SetWeights(map[string]Weight{"v2": Percent(10)}))
	require.NoError(t, r.start("v2"))
	r.expect(ControllerRamping, Percent(10))
	r.healthy()
	r.expect(ControllerRamping, Percent(50))
}

func TestController_StartRefuses(t *testing.T) {
	r := newRollout(t)
	assert.ErrorIs(t, r.c.Start("v9"), ErrUnknownVersion)
	assert.ErrorIs(t, r.c.Start("v1"), ErrStable)
	assert.EqualError(t, r.c.Start("v9"), `canary "checkout": start of "v9": canary: unknown version`)
	r.expect(ControllerIdle, 0)
	require.NoError(t, r.p.SetWeights(map[string]Weight{"v3": Percent(99.5)}))
	assert.Error(t, r.c.Start("v2"), "there is no room for the first step")
	r.expect(ControllerIdle, 0)
}

// When there is no room for the next step the version stays where it is, which is told
// once.
func TestController_NoRoom(t *testing.T) {
	r := newRollout(t)
	require.NoError(t, r.start("v2"))
	require.NoError(t, r.p.SetWeights(map[string]Weight{"v3": Percent(95)}))
	r.pass(time.Second)
	r.healthy()
	r.pass(time.Second)
	r.expect(ControllerRamping, Percent(1))
	assert.Equal(t, []string{"started", "refused"}, r.kinds())
	require.NoError(t, r.p.SetWeights(map[string]Weight{"v3": 0}))
	r.pass(time.Second)
	r.healthy()
	r.expect(ControllerRamping, Percent(10))
}

func TestController_StableReady(t *testing.T) {
	ready, asked := false, 0
	var r *rollout
	r = newRollout(t, WithStableReady(func() bool {
		asked++
		_ = r.c.Status() // no lock is held
		return ready
	}, time.Minute))
	require.NoError(t, r.start("v2"))
	r.healthy()
	r.healthy()
	r.expect(ControllerRamping, Percent(50))
	assert.Zero(t, asked)
	r.serve(1000, map[string]float64{"v2": 0.9})
	r.pass(time.Second)
	r.expect(ControllerRolledBack, 0)
	assert.Equal(t, 1, asked)
	assert.Greater(t, r.p.Share("v2"), Percent(40), "it falls, and not at once")
	assert.Less(t, r.p.Share("v2"), Percent(50))
}

func TestController_StableReadyPanics(t *testing.T) {
	r := newRollout(t, WithStableReady(func() bool { panic("x") }, time.Minute))
	require.NoError(t, r.start("v2"))
	r.serve(8000, map[string]float64{"v2": 0.9})
	r.pass(time.Second)
	r.expect(ControllerRolledBack, 0)
	assert.Zero(t, r.p.Share("v2"), "in doubt at once")
	assert.EqualValues(t, 1, r.c.Status().Panics)
}

func TestController_ListenersAndLogger(t *testing.T) {
	var log bytes.Buffer
	var r *rollout
	calls := 0
	r = newRollout(t, WithOnRamp(func(e ControllerEvent) {
		calls++
		_ = r.c.Status()
		if e.Kind == ControllerStarted {
			assert.NoError(t, r.c.Pause("from a listener"))
		}
		panic("listener")
	}), WithRampLogger(slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, r.c.Start("v2"))
	r.expect(ControllerPaused, Percent(1))
	assert.Equal(t, 2, calls)
	assert.EqualValues(t, 2, r.c.Status().Panics)
	assert.Equal(t, []string{"started", "held"}, r.kinds(), "the other listener has seen all")
	assert.Contains(t, log.String(), "sluice.event=started")
	assert.Contains(t, log.String(), "sluice.panic=listener")
}

func TestController_Run(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRollout(t, WithSteps(Percent(10), All))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := make(chan error, 1)
		go func() { done <- r.c.Run(ctx) }()
		require.NoError(t, r.c.Start("v2"))
		time.Sleep(time.Second)
		synctest.Wait()
		assert.True(t, r.c.Status().Running)
		assert.ErrorContains(t, r.c.Run(ctx), "has a Run already")
		r.serve(1000, nil)
		time.Sleep(50 * time.Second)
		synctest.Wait()
		s := r.c.Status()
		assert.Equal(t, time.Minute, s.Hold)
		assert.Equal(t, 51*time.Second, s.Lasted)
		assert.Equal(t, time.Now().Add(9*time.Second).UTC(), s.Earliest.UTC())
		time.Sleep(10 * time.Second)
		synctest.Wait()
		r.expect(ControllerRamping, All)
		r.serve(1000, map[string]float64{"v2": 1})
		time.Sleep(time.Second)
		synctest.Wait()
		r.expect(ControllerRolledBack, 0)

		c := r.c.Config()
		c.Interval = time.Minute
		require.NoError(t, r.c.Update(c))
		time.Sleep(time.Hour)
		synctest.Wait()
		why := errors.New("shutdown")
		cancel(why)
		assert.ErrorIs(t, <-done, why)
		assert.False(t, r.c.Status().Running)
	})
}

func TestController_Nil(t *testing.T) {
	var c *Controller
	for _, err := range []error{c.Start("x"), c.Approve(), c.Pause(""), c.Resume(), c.Abort(""), c.Update(DefaultControllerConfig())} {
		assert.NoError(t, err)
	}
	c.Tick()
	assert.Zero(t, c.Status())
	assert.Zero(t, c.Config())
	assert.Empty(t, c.Name())
	c.Collect(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, c.Run(ctx), context.Canceled)
}

func TestController_NewRefuses(t *testing.T) {
	_, err := NewController(nil, nil, nil, WithMinHold(-1), WithGate(Percent(3)), WithOnRamp(nil))
	for _, want := range []string{"picker is nil", "judge is nil", "option 0 is nil", "MinHold -1ns", "a gate at 3%, which is no step", "listener of WithOnRamp is nil"} {
		assert.ErrorContains(t, err, want)
	}
	for want, change := range map[string]func(*ControllerConfig){
		"0 Steps are not 1 to 100":                       func(c *ControllerConfig) { c.Steps = nil },
		"Steps[1].Weight 1% is not above 1%":             func(c *ControllerConfig) { c.Steps = ladder(Percent(1), Percent(1)) },
		"Steps[0].Weight 0% is not above 0%":             func(c *ControllerConfig) { c.Steps = ladder(0) },
		"Steps[0].Weight: canary: weight 101% is not":    func(c *ControllerConfig) { c.Steps = ladder(Percent(101)) },
		"Steps[0].Hold -2ns is not in":                   func(c *ControllerConfig) { c.Steps = []RampStep{{1, -2, false}} },
		"NoDataAfter -1ns is not in [0, 8760h0m0s]":      func(c *ControllerConfig) { c.NoDataAfter = -1 },
		"RollbackOver 8760h0m0.000000001s is not in":     func(c *ControllerConfig) { c.RollbackOver = maxRampTime + 1 },
		"StuckAfter -2ns is negative, and not Auto":      func(c *ControllerConfig) { c.StuckAfter = -2 },
		"NoData 4 is not one of hold, rollback, proceed": func(c *ControllerConfig) { c.NoData = 4 },
		"NoData 0 is not one of":                         func(c *ControllerConfig) { c.NoData = 0 },
		"Interval 0s is not in [1ms, 1h0m0s]":            func(c *ControllerConfig) { c.Interval = 0 },
	} {
		c := DefaultControllerConfig()
		change(&c)
		assert.ErrorContains(t, c.Validate(), "canary: "+want)
	}
	require.NoError(t, DefaultControllerConfig().Validate())
	require.Error(t, ControllerConfig{}.Validate())
}

func TestController_ConfigJSON(t *testing.T) {
	c := DefaultControllerConfig()
	data, err := json.Marshal(c)
	require.NoError(t, err)
	var again ControllerConfig
	require.NoError(t, json.Unmarshal(data, &again))
	assert.Equal(t, c, again)
	require.NoError(t, json.Unmarshal([]byte(`{"steps":[{"weight":"0.05%"},{"weight":"100%","hold":"1h","gate":true}],"no_data":"rollback","stuck_after":"0s"}`), &c))
	assert.Equal(t, []RampStep{{PPM(500), Auto, false}, {All, time.Hour, true}}, c.Steps)
	assert.Equal(t, NoDataRollback, c.NoData)
	assert.Zero(t, c.StuckAfter)
	assert.Equal(t, 5*time.Minute, c.MinHold, "what is absent stays")
	before := c.Clone()
	for _, bad := range []string{`{"Step":1}`, `{"steps":[{"weigth":"1%"}]}`, `{"steps":[{"weight":5}]}`, `{"no_data":"x"}`, `{"min_hold":5}`} {
		assert.Error(t, json.Unmarshal([]byte(bad), &c), bad)
		assert.Equal(t, before, c)
	}
}

func TestController_Options(t *testing.T) {
	c := sluice.Must(NewController(sluice.Must(New("x", "v1")), sluice.Must(NewJudge("x")),
		WithControllerConfig(DefaultControllerConfig()), WithLadder(RampStep{Percent(5), time.Hour, false}, RampStep{All, Auto, false}),
		WithGate(All), WithMinHold(time.Minute), WithStuckAfter(time.Second), WithNoData(NoDataProceed, time.Second),
		WithAutoRollback(false), WithPromote(false), WithInterval(time.Minute), WithStableReady(func() bool { return true }, 7)))
	assert.Equal(t, ControllerConfig{
		Steps: []RampStep{{Percent(5), time.Hour, false}, {All, Auto, true}}, MinHold: time.Minute, StuckAfter: time.Second,
		NoData: NoDataProceed, NoDataAfter: time.Second, RollbackOver: 7, Interval: time.Minute,
	}, c.Config())
	assert.Equal(t, "x", c.Name())
}

// Steering, looking and serving at once: nothing deadlocks, and the Picker never has more
// than one ramp.
func TestController_Race(t *testing.T) {
	r := newRollout(t, WithMinHold(0), WithNoData(NoDataProceed, 0), WithGate(Percent(50)))
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 0; !stop.Load(); i++ {
			d := r.p.Decide(Input{ID: strconv.Itoa(i)})
			r.j.Observe(d, outcome(i%50 == 0), 0)
		}
	}()
	for range runs(500) {
		_ = r.c.Start("v2")
		r.c.Tick()
		_ = r.c.Approve()
		r.c.Tick()
		_ = r.c.Status()
		_ = r.j.Snapshot()
		if r.c.Status().State == ControllerRolledBack {
			_ = r.p.Readmit("v2")
		}
		_ = r.c.Abort("again")
		_ = r.p.Readmit("v2")
	}
	stop.Store(true)
	<-done
}
