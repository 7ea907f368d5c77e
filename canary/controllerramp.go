package canary

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// A ramp is one version on its way. All of it belongs to the Controller's mu.
type ramp struct {
	version string
	state   ControllerState
	weight  Weight      // that the version has
	since   int64       // when the step began
	stage   *judgeStage // of the Judge; nil while the version has no share
	cause   string      // of the last event
	verdict Verdict

	approved  Weight // the gate that is open, 0 if none is
	stuck     bool   // it was told that the step does not end
	condemned bool   // it was told that the verdict is Fail
	refused   bool   // it was told that the Picker refuses
}

// rampTally counts what a Controller did, ever.
type rampTally struct {
	started, stepped, reverted, completed, stuck atomic.Int64 // raised by emit
}

// active reports whether the version can still be rolled back.
func (s ControllerState) active() bool { return s >= ControllerRamping && s <= ControllerCompleted }

// A question is what only the user's functions can answer.
type question uint8

const (
	askNothing question = iota
	askReady
	askApproval
)

// answers are those that were given in this look.
type answers struct {
	readyAsked, ready bool
	approvalAsked     bool
	approved          gate
}

// A gate is what an approval is for. While it is asked for, others may bring the ramp, or
// the ladder, to another one.
type gate struct {
	version string
	weight  Weight
}

func (c *Controller) start(version string, now int64) error {
	plan := &c.picker.current.Load().plan
	o := plan.version(version)
	over := c.ramp.state == ControllerCompleted && (c.ramp.version != version || plan.Config.Stable == version)
	switch {
	case c.ramp.state.active() && !over:
		return fmt.Errorf("start of %q: %w: %q", version, ErrRampRunning, c.ramp.version)
	case version == plan.Config.Stable:
		return fmt.Errorf("start of %q: %w", version, ErrStable)
	case o == nil:
		return fmt.Errorf("start of %q: %w", version, ErrUnknownVersion)
	case plan.rolledBack(version) != nil:
		return fmt.Errorf("start of %q: %w", version, ErrRolledBack)
	}
	last := c.ramp
	c.ramp = ramp{version: version, state: ControllerRamping, weight: o.Weight, since: now}
	if o.Weight > 0 {
		c.judge.Reset()
		c.newStage(now)
		c.emit(ControllerStarted, o.Weight, Diff{}, "it has a weight already", now)
		return nil
	}
	first := c.config.Load().Steps[0]
	if first.Gate {
		c.judge.Reset()
		c.emit(ControllerStarted, 0, Diff{}, "", now)
		c.enter(ControllerAwaiting, ControllerGated, fmt.Sprintf("the gate of %v", first.Weight), now)
		return nil
	}
	if err := c.setWeight(ControllerStarted, first.Weight, "", now); err != nil {
		c.ramp = last
		return err
	}
	return nil
}

// look is one look, under mu. It returns the question that must be answered before it can
// go on.
func (c *Controller) look(now int64, a *answers) (question, ControllerStatus) {
	r := &c.ramp
	if !r.state.active() || !c.notice(now) {
		return askNothing, ControllerStatus{}
	}
	if r.verdict = (Verdict{}); r.stage != nil {
		r.verdict = c.judge.verdict(now)
	}
	config := c.config.Load()
	lasted := time.Duration(now - r.since)
	noData := r.verdict.Result == NoData && lasted >= config.NoDataAfter
	if r.verdict.Result == Fail && config.AutoRollback || noData && config.NoData == NoDataRollback {
		over := time.Duration(0)
		if c.ready != nil && config.RollbackOver > 0 {
			if !a.readyAsked {
				return askReady, ControllerStatus{}
			}
			if !a.ready {
				over = config.RollbackOver
			}
		}
		c.try(c.revert(r.verdict.Reason, over, now), now)
		return askNothing, ControllerStatus{}
	}
	if r.verdict.Result == Fail && !r.condemned {
		r.condemned = true
		c.emit(ControllerCondemned, r.weight, Diff{}, r.verdict.Reason, now)
	}
	if r.state != ControllerRamping && r.state != ControllerAwaiting {
		return askNothing, ControllerStatus{}
	}
	passed := r.verdict.Result == Pass || noData && config.NoData == NoDataProceed || r.weight == 0
	if lasted < config.hold(r.weight) && r.weight > 0 {
		return askNothing, ControllerStatus{}
	}
	if passed {
		return c.proceed(config, a, now)
	}
	if after := config.stuckAfter(r.weight); after > 0 && lasted >= after && !r.stuck {
		r.stuck = true
		c.emit(ControllerStuck, r.weight, Diff{}, r.verdict.Reason, now)
	}
	return askNothing, ControllerStatus{}
}

// proceed ends a step that was passed.
func (c *Controller) proceed(config *ControllerConfig, a *answers, now int64) (question, ControllerStatus) {
	r := &c.ramp
	next, ok := config.next(r.weight)
	switch {
	case !ok:
		c.try(c.complete(config, now), now)
		return askNothing, ControllerStatus{}
	case next.Gate && r.approved != next.Weight && a.approved != gate{r.version, next.Weight}:
		if r.state != ControllerAwaiting {
			c.enter(ControllerAwaiting, ControllerGated, fmt.Sprintf("the gate of %v", next.Weight), now)
		}
		if c.approve != nil && !a.approvalAsked {
			return askApproval, c.status(now)
		}
		return askNothing, ControllerStatus{}
	}
	c.try(c.setWeight(ControllerStepped, next.Weight, r.verdict.Reason, now), now)
	return askNothing, ControllerStatus{}
}

// notice sees what others have done to the Picker. It reports whether the ramp goes on.
func (c *Controller) notice(now int64) bool {
	r, t := &c.ramp, c.picker.current.Load()
	o, rolledBack := t.plan.version(r.version), t.plan.rolledBack(r.version)
	switch {
	case t.plan.Config.Stable == r.version:
		if r.state != ControllerCompleted {
			c.enter(ControllerCompleted, ControllerDone, "it was promoted by somebody else", now)
		}
		return false
	case rolledBack != nil:
		c.gone(rolledBack.Cause, now)
		return false
	case o == nil:
		c.gone("it was taken out by somebody else", now)
		return false
	case o.Weight != r.weight:
		from := r.weight
		r.weight = o.Weight
		c.newStage(now)
		c.emit(ControllerChanged, from, Diff{}, "somebody else has set the weight", now)
		if o.Weight == 0 && r.state != ControllerPaused {
			c.enter(ControllerPaused, ControllerHeld, "somebody else has taken the weight away", now)
		}
	case r.weight > 0 && (r.stage == nil && !t.killed || r.stage != nil && (t.killed || r.stage.Trial != c.trial(t, r.stage.Generation, now))):
		c.newStage(now) // another version's weight has changed stable's share, or all was killed or revived
	case r.stage != nil && r.stage != c.judge.stage.Load():
		r.condemned = false
		c.newStage(now) // somebody else has reset the Judge, or told it of another step
	case r.stage != nil && t.generation > r.stage.known.Load()+1:
		c.judgeAnew(t, now) // the shares are as before, but who knows what they were in between
	case r.stage != nil:
		r.stage.known.Store(t.generation)
	}
	return true
}

// gone ends the ramp of a version that others have taken the users of.
func (c *Controller) gone(cause string, now int64) {
	from := c.ramp.weight
	c.ramp.weight, c.ramp.stage, c.ramp.state = 0, nil, ControllerRolledBack
	c.emit(ControllerReverted, from, Diff{}, cause, now)
}

// trial is who is compared under the plan of t, from that generation on.
func (c *Controller) trial(t *table, generation uint64, now int64) Trial {
	trial := Trial{Canary: c.ramp.version, Stable: t.plan.Config.Stable, CanaryWeight: t.weight(c.ramp.version), StableWeight: t.plan.stableWeight(), Generation: generation}
	if now := t.share(trial.Stable, now); now < trial.StableWeight {
		// Another version falls, and stable's share grows by the clock until it has fallen: the
		// smallest is the most careful.
		trial.StableWeight = now
		if s := c.ramp.stage; s != nil && s.Canary == trial.Canary && s.Stable == trial.Stable && s.CanaryWeight == trial.CanaryWeight {
			trial.StableWeight = min(now, s.StableWeight)
		}
	}
	return trial
}

// newStage begins a step of the Judge for the shares that there are, and the hold anew.
func (c *Controller) newStage(now int64) {
	r, t := &c.ramp, c.picker.current.Load()
	r.since, r.stuck, r.approved = now, false, 0
	c.judgeAnew(t, now)
}

// judgeAnew begins a step of the Judge for the shares in t, which may be newer than what
// the ramp knows. The Judge has none where there is nobody to compare.
func (c *Controller) judgeAnew(t *table, now int64) {
	r := &c.ramp
	trial := c.trial(t, t.generation, now)
	if r.stage = nil; t.killed || trial.Validate() != nil {
		return
	}
	r.stage = c.judge.beginUntil(trial, now, t.generation)
}

// setWeight gives the version a weight.
func (c *Controller) setWeight(kind ControllerEventKind, w Weight, cause string, now int64) error {
	r, before := &c.ramp, c.picker.current.Load()
	err := c.picker.alter(Change{Action: ActionSetWeights, Version: r.version}, func(plan *Plan, _ time.Time) error {
		if err := r.seen(plan); err != nil {
			return err
		}
		return plan.setWeights(map[string]Weight{r.version: w})
	})
	if err != nil {
		return err
	}
	from := r.weight
	r.weight, r.state = w, ControllerRamping
	if kind == ControllerStarted {
		c.judge.Reset()
	}
	c.newStage(now)
	c.emit(kind, from, c.movedSince(before), cause, now)
	return nil
}

// seen refuses to go on from another weight than the ramp has seen: somebody may just
// have taken it away.
func (r *ramp) seen(plan *Plan) error {
	if o := plan.version(r.version); o != nil && o.Weight != r.weight {
		return fmt.Errorf("%q: somebody else has set the weight, to %v", r.version, o.Weight)
	}
	return nil
}

// revert rolls the version back.
func (c *Controller) revert(cause string, over time.Duration, now int64) error {
	r, before, action := &c.ramp, c.picker.current.Load(), ActionRollback
	if over > 0 {
		action = ActionRollbackOver
	}
	err := c.picker.alter(Change{Action: action, Version: r.version, Cause: cause}, func(plan *Plan, wall time.Time) error {
		return plan.rollBack(r.version, cause, over, wall)
	})
	if err != nil {
		return err
	}
	from := r.weight
	r.weight, r.stage, r.state = 0, nil, ControllerRolledBack
	c.emit(ControllerReverted, from, c.movedSince(before), cause, now)
	return nil
}

// complete ends the ramp after its last step.
func (c *Controller) complete(config *ControllerConfig, now int64) error {
	r, before, cause := &c.ramp, c.picker.current.Load(), c.ramp.verdict.Reason
	if config.Promote && r.weight == All {
		if err := c.picker.alter(Change{Action: ActionPromote, Version: r.version}, func(plan *Plan, wall time.Time) error {
			if err := r.seen(plan); err != nil {
				return err
			}
			if plan.Killed != "" {
				return fmt.Errorf("promotion of %q: killed (%s)", r.version, plan.Killed)
			}
			return plan.promote(r.version, wall)
		}); err != nil {
			return err
		}
		r.stage, cause = nil, "promoted"
	}
	r.state = ControllerCompleted
	c.emit(ControllerDone, r.weight, c.movedSince(before), cause, now)
	return nil
}

// movedSince is who has moved since an earlier plan.
func (c *Controller) movedSince(before *table) Diff {
	return diff(&before.plan, &c.picker.current.Load().plan)
}

// try tells of a refusal of the Picker's, once.
func (c *Controller) try(err error, now int64) {
	if err == nil {
		c.ramp.refused = false
		return
	}
	if !c.ramp.refused {
		c.ramp.refused = true
		c.emit(ControllerRefused, c.ramp.weight, Diff{}, err.Error(), now)
	}
}

// enter goes into another state.
func (c *Controller) enter(s ControllerState, kind ControllerEventKind, cause string, now int64) {
	c.ramp.state = s
	c.emit(kind, c.ramp.weight, Diff{}, cause, now)
}

// emit queues an event about the ramp as it is now.
func (c *Controller) emit(kind ControllerEventKind, from Weight, moved Diff, cause string, now int64) {
	switch kind {
	case ControllerStarted:
		c.tally.started.Add(1)
	case ControllerStepped:
		c.tally.stepped.Add(1)
	case ControllerStuck:
		c.tally.stuck.Add(1)
	case ControllerReverted:
		c.tally.reverted.Add(1)
	case ControllerDone:
		c.tally.completed.Add(1)
	}
	r := &c.ramp
	r.cause = cause
	if len(c.listeners) == 0 && c.logger == nil {
		return
	}
	c.events.Push(ControllerEvent{
		Name: c.Name(), Version: r.version, Kind: kind, State: r.state, From: from, To: r.weight, Moved: moved,
		Cause: cause, Verdict: r.verdict, Generation: c.picker.Generation(), Time: clock.Wall(now),
	})
}
