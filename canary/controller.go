package canary

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/notify"
)

// Controller takes a version from its first users to all of them, step by step, as long as
// the Judge finds it as good as stable, and takes its users away again when it does not.
//
// A step ends when it has lasted its hold and the verdict is Pass; without calls, or
// without enough of them, it goes on. The next step is the smallest one above the weight
// that the version has, so the ladder may be changed under way, and a program that was
// restarted goes on where it was. A condemned version is rolled back in every state: while
// a step is held, at a gate, when paused, and after the last step. What others do to the
// Picker meanwhile is respected: a rollback ends the ramp, other weights begin the step
// anew, and a weight of 0 pauses it.
//
// Most callers want Start, once in a rollout, and Run, which looks every second; Tick is
// one look, for tests and for those with a clock of their own. Calls must be told to the
// Judge, or the version never passes. One Controller in a fleet is enough: the others
// apply its Picker's plan.
//
// Nothing here is on the path of a request. Constructors start no goroutine. A Controller
// is safe for concurrent use and must not be copied; a nil *Controller does nothing. Make
// one with NewController.
type Controller struct {
	picker *Picker
	judge  *Judge
	controllerHooks
	running atomic.Bool                      // whether a Run is under way
	config  atomic.Pointer[ControllerConfig] // written by Update; what it points to never changes
	panics  atomic.Int64                     // of listeners and hooks, which were caught; raised by caught
	tally   rampTally
	events  notify.Queue[ControllerEvent]

	mu   sync.Mutex // no foreign code runs under it
	ramp ramp
}

// NewController returns a Controller of a picker that goes by a judge. It returns every
// complaint at once.
func NewController(p *Picker, j *Judge, opts ...ControllerOption) (*Controller, error) {
	set := &controllerSettings{ControllerConfig: DefaultControllerConfig()}
	set.apply(opts)
	if p == nil {
		set.errs = append(set.errs, errors.New("canary: the controller's picker is nil"))
	}
	if j == nil {
		set.errs = append(set.errs, errors.New("canary: the controller's judge is nil; a ramp that judges nothing is a Schedule"))
	}
	if err := set.check(); err != nil {
		return nil, err
	}
	c := &Controller{picker: p, judge: j, controllerHooks: set.controllerHooks, ramp: ramp{state: ControllerIdle}}
	c.config.Store(&set.ControllerConfig)
	return c, nil
}

// Name returns the Picker's name.
func (c *Controller) Name() string {
	if c == nil {
		return ""
	}
	return c.picker.Name()
}

// Answers to those who steer a Controller.
var (
	// ErrRampRunning: a version is on its way already.
	ErrRampRunning = errors.New("canary: a version is on its way")
	// ErrNoRamp: no version is on its way.
	ErrNoRamp = errors.New("canary: no version is on its way")
	// ErrNoGate: nothing waits for an approval.
	ErrNoGate = errors.New("canary: nothing waits for an approval")
)

// Start begins the rollout of a version that the Picker has. If it has a weight already
// the ramp goes on from there; else it gets that of the first step, or waits at its gate.
// The Judge forgets what it saw before.
//
// It is an error while another version is on its way (ErrRampRunning), if the Picker does
// not know the version (ErrUnknownVersion), or has rolled it back (ErrRolledBack, until
// Readmit), and for the stable one (ErrStable).
func (c *Controller) Start(version string) error {
	return c.do(func(now int64) error { return c.start(version, now) })
}

// Approve opens the gate that the version waits at, and no other one that the ladder may
// get meanwhile. The step before it still has to be over and passed.
func (c *Controller) Approve() error {
	return c.do(func(now int64) error {
		if c.ramp.state != ControllerAwaiting {
			return ErrNoGate
		}
		if next, ok := c.config.Load().next(c.ramp.weight); ok {
			c.ramp.approved = next.Weight
		}
		return nil
	})
}

// Pause stops the ramp at the weight it has; the Judge goes on.
func (c *Controller) Pause(cause string) error {
	return c.do(func(now int64) error {
		if c.ramp.state != ControllerRamping && c.ramp.state != ControllerAwaiting {
			return ErrNoRamp
		}
		c.enter(ControllerPaused, ControllerHeld, cause, now)
		return nil
	})
}

// Resume ends Pause. The hold of the step has gone on meanwhile.
func (c *Controller) Resume() error {
	return c.do(func(now int64) error {
		if c.ramp.state != ControllerPaused {
			return ErrNoRamp
		}
		c.enter(ControllerRamping, ControllerResumed, "", now)
		return nil
	})
}

// Abort rolls the version back at once, without asking whether stable is ready. cause is
// for people.
func (c *Controller) Abort(cause string) error {
	return c.do(func(now int64) error {
		if !c.ramp.state.active() {
			return ErrNoRamp
		}
		return c.revert(cause, 0, now)
	})
}

// do steers under the lock, and delivers what has come of it after.
func (c *Controller) do(f func(now int64) error) error {
	if c == nil {
		return nil
	}
	defer c.deliver()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := f(clock.Now()); err != nil {
		return fmt.Errorf("canary %q: %w", c.Name(), err)
	}
	return nil
}

// deliver tells everybody what has happened, with no lock held.
func (c *Controller) deliver() {
	c.picker.deliver()
	c.events.Deliver(c.tell, nil)
}

// Config returns a copy of what the Controller goes by.
func (c *Controller) Config() ControllerConfig {
	if c == nil {
		return ControllerConfig{}
	}
	return c.config.Load().Clone()
}

// Update changes what the Controller goes by, from its next look on; the version keeps its
// weight and the time it has had. One that does not validate is returned as an error and
// changes nothing.
func (c *Controller) Update(next ControllerConfig) error {
	if err := next.Validate(); err != nil || c == nil {
		return err
	}
	next = next.Clone()
	c.config.Store(&next)
	return nil
}

// Run looks every Interval, until ctx ends; it returns the cause of that. Only one Run may
// run at a time. A step that is under way when it ends is taken up by the next Run.
//
// Listeners, the Picker's too, run in it, and so do the functions that it asks: as long as
// one of them blocks, it looks at nothing, and rolls nothing back.
func (c *Controller) Run(ctx context.Context) error {
	if c == nil {
		<-ctx.Done()
		return context.Cause(ctx)
	}
	if !c.running.CompareAndSwap(false, true) {
		return fmt.Errorf("canary %q: the controller has a Run already", c.Name())
	}
	defer c.running.Store(false)
	interval := c.config.Load().Interval
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
			c.tick(clock.Now())
			if i := c.config.Load().Interval; i != interval {
				interval = i
				ticker.Reset(i)
			}
		}
	}
}

// Tick looks once: it asks the Judge, and does what follows. Run does it for those who do
// not want to.
func (c *Controller) Tick() {
	if c != nil {
		c.tick(clock.Now())
	}
}

// tick is Tick. Questions that the user's functions answer are asked with no lock held,
// and then it looks again.
func (c *Controller) tick(now int64) {
	defer c.deliver()
	var a answers
	for range 3 { // each of the two questions is asked once
		c.mu.Lock()
		q, status := c.look(now, &a)
		c.mu.Unlock()
		switch q {
		case askReady:
			a.readyAsked, a.ready = true, c.isReady()
		case askApproval:
			if a.approvalAsked = true; c.isApproved(status) {
				a.approved = gate{status.Version, status.Next}
			}
		default:
			return
		}
	}
}

func (c *Controller) isReady() (ready bool) {
	ready = true
	defer c.caught("StableReady")
	return c.ready()
}

func (c *Controller) isApproved(s ControllerStatus) (approved bool) {
	defer c.caught("Approval")
	return c.approve(s)
}
