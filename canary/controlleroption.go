package canary

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// ControllerOption sets one thing of a new Controller. The last one wins; they start from
// DefaultControllerConfig.
type ControllerOption func(*controllerSettings)

// WithSteps sets the weights that the version goes through, without gates.
//
// Default: 1, 5, 10, 25, 50 and 100 %.
func WithSteps(weights ...Weight) ControllerOption {
	return func(s *controllerSettings) { s.Steps = ladder(weights...) }
}

// WithLadder sets the steps with all that can be said of them.
//
// Default: see WithSteps.
func WithLadder(steps ...RampStep) ControllerOption {
	return func(s *controllerSettings) { s.Steps = slices.Clone(steps) }
}

// WithGate keeps the version below the step of that weight until Approve is called, or
// the function of WithApproval agrees. It applies to the steps set in the end.
//
// Default: none.
func WithGate(w Weight) ControllerOption {
	return func(s *controllerSettings) { s.gates = append(s.gates, w) }
}

// WithMinHold sets how long a step lasts at least.
//
// Default: 5 minutes.
func WithMinHold(d time.Duration) ControllerOption {
	return func(s *controllerSettings) { s.MinHold = d }
}

// WithStuckAfter sets how long a step may last before an event tells of it; 0 never does.
//
// Default: Auto, three times the step's hold.
func WithStuckAfter(d time.Duration) ControllerOption {
	return func(s *controllerSettings) { s.StuckAfter = d }
}

// WithNoData sets what happens when nothing was seen of the version for so long.
//
// Default: NoDataHold; 30 minutes.
func WithNoData(p NoDataPolicy, after time.Duration) ControllerOption {
	return func(s *controllerSettings) { s.NoData, s.NoDataAfter = p, after }
}

// WithAutoRollback sets whether a version that the Judge condemns is rolled back.
//
// Default: true.
func WithAutoRollback(yes bool) ControllerOption {
	return func(s *controllerSettings) { s.AutoRollback = yes }
}

// WithPromote sets whether the version becomes the stable one after the step of 100 %.
//
// Default: true.
func WithPromote(yes bool) ControllerOption {
	return func(s *controllerSettings) { s.Promote = yes }
}

// WithInterval sets how often Run looks.
//
// Default: 1 s.
func WithInterval(d time.Duration) ControllerOption {
	return func(s *controllerSettings) { s.Interval = d }
}

// WithControllerConfig replaces all data set so far by c, so it comes first.
//
// Default: DefaultControllerConfig.
func WithControllerConfig(c ControllerConfig) ControllerOption {
	return func(s *controllerSettings) { s.ControllerConfig = c.Clone() }
}

// WithApproval asks approve at each look, while the version waits at a gate, whether it
// may go on. Approve works all the same. The answer must be at hand: until it is there, Run
// does not look at how the version does. Who has to ask a person calls Approve.
//
// Default: nobody is asked.
func WithApproval(approve func(ControllerStatus) bool) ControllerOption {
	return func(s *controllerSettings) { s.approve = approve }
}

// WithStableReady asks ready, before a version is rolled back, whether stable could bear
// all users at once. If not, the version's share falls to nothing over so long. A panic
// of ready counts as yes. The answer must be at hand: the rollback waits for it.
//
// Default: rollback is at once.
func WithStableReady(ready func() bool, over time.Duration) ControllerOption {
	return func(s *controllerSettings) { s.ready, s.RollbackOver = ready, over }
}

// WithOnRamp adds a listener for what the Controller does: events in order, one at a
// time, called by whoever caused them, with no lock held. A panic in it is caught and
// counted.
//
// Default: none.
func WithOnRamp(listen func(ControllerEvent)) ControllerOption {
	return func(s *controllerSettings) {
		if listen == nil {
			s.errs = append(s.errs, errors.New("canary: the listener of WithOnRamp is nil"))
			return
		}
		s.listeners = append(s.listeners, listen)
	}
}

// WithRampLogger logs what the Controller does; rollbacks and what is stuck as warnings.
//
// Default: nothing is logged.
func WithRampLogger(l *slog.Logger) ControllerOption {
	return func(s *controllerSettings) { s.logger = l }
}

// controllerHooks is what a Controller calls. None of it changes after NewController.
type controllerHooks struct {
	approve   func(ControllerStatus) bool
	ready     func() bool
	listeners []func(ControllerEvent)
	logger    *slog.Logger
}

// controllerSettings is what the options fill in.
type controllerSettings struct {
	ControllerConfig
	controllerHooks
	gates []Weight
	errs  []error
}

func (s *controllerSettings) apply(opts []ControllerOption) {
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("canary: option %d is nil", i))
			continue
		}
		o(s)
	}
	for _, w := range s.gates {
		if i := slices.IndexFunc(s.Steps, func(step RampStep) bool { return step.Weight == w }); i >= 0 {
			s.Steps[i].Gate = true
		} else {
			s.errs = append(s.errs, fmt.Errorf("canary: a gate at %v, which is no step", w))
		}
	}
}

// check returns all that is wrong.
func (s *controllerSettings) check() error { return errors.Join(append(s.errs, s.Validate())...) }
