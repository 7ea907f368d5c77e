package canary

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/metrics"
)

// ControllerStatus is what a Controller is about at one moment, as plain data for people
// and dashboards.
type ControllerStatus struct {
	Name    string          `json:"name"`
	State   ControllerState `json:"state"`
	Version string          `json:"version,omitempty"`
	Stable  string          `json:"stable"`
	// Weight is what the version has, Next the step that follows; 0 if none does.
	Weight Weight `json:"weight"`
	Next   Weight `json:"next"`
	// Gate: the next step needs an approval.
	Gate bool `json:"gate"`
	// Lasted is how long the step has lasted, Hold how long it must, and Earliest when it
	// can end, by the wall clock.
	Lasted   time.Duration `json:"lasted"`
	Hold     time.Duration `json:"hold"`
	Earliest time.Time     `json:"earliest"`
	// Stuck: the step should be over by now, and was told to be stuck.
	Stuck bool `json:"stuck"`
	// Cause says why the state is as it is, or the last step came.
	Cause string `json:"cause,omitempty"`
	// Verdict is what the Judge said at the last look.
	Verdict Verdict `json:"verdict"`
	// Running: a Run is under way.
	Running bool `json:"running"`
	// Panics counts those of listeners and hooks, Dropped the events that a slow listener
	// never saw.
	Panics  int64  `json:"panics"`
	Dropped uint64 `json:"dropped"`
	// Generation is that of the Picker's plan.
	Generation uint64 `json:"generation"`
}

// Status returns what the Controller is about now. It disturbs nobody.
func (c *Controller) Status() ControllerStatus {
	if c == nil {
		return ControllerStatus{}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status(clock.Now())
}

func (c *Controller) status(now int64) ControllerStatus {
	r, config := &c.ramp, c.config.Load()
	s := ControllerStatus{
		Name: c.Name(), State: r.state, Version: r.version, Stable: c.picker.Stable().Name(), Weight: r.weight,
		Stuck: r.stuck, Cause: r.cause, Verdict: r.verdict, Running: c.running.Load(),
		Panics: c.panics.Load(), Dropped: c.events.Dropped(), Generation: c.picker.Generation(),
	}
	if !r.state.active() || r.state == ControllerCompleted {
		return s
	}
	s.Lasted, s.Hold = time.Duration(now-r.since), config.hold(r.weight)
	if s.Lasted < s.Hold {
		s.Earliest = clock.Wall(clock.After(r.since, s.Hold)).Round(0)
	}
	if next, ok := config.next(r.weight); ok {
		s.Next, s.Gate = next.Weight, next.Gate && r.approved != next.Weight
	}
	return s
}

// Snapshot returns the Status.
func (c *Controller) Snapshot() ControllerStatus { return c.Status() }

var (
	descRampState     = metrics.Desc{Name: "canary_ramp_state", Help: "1 for the state of the controller, 0 for the others.", Kind: metrics.Gauge, Labels: []string{"resource", "state"}}
	descRampWeight    = metrics.Desc{Name: "canary_ramp_weight_ratio", Help: "Share of all users that the version on its way has.", Unit: "1", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descRampStuck     = metrics.Desc{Name: "canary_ramp_stuck", Help: "1 while a step should be over and has no verdict to go on, else 0.", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descRampLasted    = metrics.Desc{Name: "canary_ramp_step_seconds", Help: "How long the step has lasted.", Unit: "s", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descRampStarts    = metrics.Desc{Name: "canary_ramp_starts", Help: "Rollouts that were started.", Unit: "{rollout}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descRampSteps     = metrics.Desc{Name: "canary_ramp_steps", Help: "Steps that were taken after the first.", Unit: "{step}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descRampRollbacks = metrics.Desc{Name: "canary_ramp_rollbacks", Help: "Rollouts that ended in a rollback.", Unit: "{rollout}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descRampCompleted = metrics.Desc{Name: "canary_ramp_completions", Help: "Rollouts that passed their last step.", Unit: "{rollout}", Kind: metrics.Counter, Labels: []string{"resource"}}
)

// Collect yields the Controller's figures, for metrics.Set; the Judge and the Picker are
// sources by themselves.
func (c *Controller) Collect(yield func(metrics.Sample) bool) {
	if c == nil {
		return
	}
	s := c.Status()
	show := func(desc *metrics.Desc, value float64, labels ...string) bool {
		return yield(metrics.Sample{Desc: desc, Labels: append([]string{s.Name}, labels...), Value: value})
	}
	ok := true
	for state := ControllerIdle; state <= ControllerRolledBack; state++ {
		ok = ok && show(&descRampState, indicator(state == s.State), state.String())
	}
	_ = ok && show(&descRampWeight, s.Weight.Fraction()) &&
		show(&descRampStuck, indicator(s.Stuck)) &&
		show(&descRampLasted, s.Lasted.Seconds()) &&
		show(&descRampStarts, float64(c.tally.started.Load())) &&
		show(&descRampSteps, float64(c.tally.stepped.Load())) &&
		show(&descRampRollbacks, float64(c.tally.reverted.Load())) &&
		show(&descRampCompleted, float64(c.tally.completed.Load()))
}

// View returns the ControllerStatus, for metrics.Set.
func (c *Controller) View() any { return c.Status() }
