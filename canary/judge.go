package canary

import (
	"context"
	"errors"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// Judge compares a canary with stable while both serve: it says whether the canary fails
// more often, is slower or panics more, or that it does not know yet.
//
// It may be asked as often as one likes: a canary that is no worse than stable is ever
// condemned, for each of the metrics, with a probability of at most Alpha, a thousandth
// by default, however often something fails in both and however that changes. It counts
// users and not calls: within a step each user fails at most once, so one for whom
// nothing works weighs as much as any other; and since the same users may fail in every
// step, what the steps say is never added up. Users are told apart by their Decision's
// point, to one part in a million. What hits both versions, like a dependency's outage,
// condemns nobody.
//
// Most callers want ObserveError after each call, or Do around it, and a Controller that
// begins the steps and asks for the Verdict. Without a Controller: Begin at each change
// of the shares, and Verdict every second or so.
//
// Observe and its kin take no lock and allocate nothing. A Judge holds half a megabyte
// for the step under way and as much for the one before it. It starts no goroutine, is
// safe for concurrent use and must not be copied. A nil *Judge counts nothing and has no
// verdict; make one with NewJudge.
type Judge struct {
	name   string
	stage  atomic.Pointer[judgeStage]  // the step under way, nil before the first; written by begin and Reset with mu held
	config atomic.Pointer[JudgeConfig] // written by Update; what it points to never changes
	recent atomic.Pointer[latencies]   // stable's; written by tune with mu held
	strays atomic.Int64                // results that belong to no step; raised by observe

	mu     sync.Mutex            // held by whoever begins steps or asks, never by observe
	past   [judgeMetrics]float64 // the most evidence of a step before the last two, as judgeStage.evidence has it; 0 is none
	failed *Verdict              // the condemnation, once there is one
}

// NewJudge returns a Judge of that name, which must not be empty. It returns every
// complaint about the options at once.
//
// For package variables there is sluice.Must.
func NewJudge(name string, opts ...JudgeOption) (*Judge, error) {
	set := &judgeSettings{JudgeConfig: DefaultJudgeConfig()}
	set.apply(opts)
	if name == "" {
		set.errs = append(set.errs, errors.New("canary: the judge's name is empty"))
	}
	if err := set.check(); err != nil {
		return nil, err
	}
	j := &Judge{name: name}
	j.config.Store(&set.JudgeConfig)
	j.recent.Store(newLatencies(nil, clock.Now()))
	return j, nil
}

// Name returns the name given to NewJudge.
func (j *Judge) Name() string {
	if j == nil {
		return ""
	}
	return j.name
}

// Observe counts the result of a call that d decided on and that took so long. Failure
// and Throttled count as failures; Ignored does not count at all, unless the call took
// longer than is slow: whoever gives up on a slow version is evidence. Zero counts as
// Success, and a number that is no Outcome as Ignored. Decisions that neither a hash nor
// chance has made are no fair sample and are not counted.
func (j *Judge) Observe(d Decision, o sluice.Outcome, took time.Duration) {
	j.observe(d, o, took, false, false)
}

// ObserveError is Observe with sluice.Classify's view of err, which the call returned
// that was given ctx. One thing is different: a refusal by a breaker or a bulkhead is a
// failure, since the version's users see it; so use it around those that belong to one
// version. Other refusals, like those of rate limits, do not count, nor does a caller who
// went away.
func (j *Judge) ObserveError(ctx context.Context, d Decision, err error, took time.Duration) {
	o, refused := sluice.Classify(ctx, err), false
	if o == sluice.Ignored && ownRefusal(err) {
		o, refused = sluice.Failure, true
	}
	j.observe(d, o, took, false, refused)
}

// ObservePanic counts a call that panicked; it is a failure, too.
func (j *Judge) ObservePanic(d Decision, took time.Duration) {
	j.observe(d, sluice.Failure, took, true, false)
}

// Do runs call, counts how it ended, and returns its error as it is. A panic goes on.
// runtime.Goexit counts as a panic; neither counts if ctx is done.
func (j *Judge) Do(ctx context.Context, d Decision, call func(context.Context) error) error {
	begun, completed := clock.Now(), false
	var err error
	defer func() {
		took := time.Duration(clock.Now() - begun)
		switch {
		case completed:
			j.ObserveError(ctx, d, err, took)
		case ctx.Err() == nil:
			j.ObservePanic(d, took)
		}
	}()
	err = call(ctx)
	completed = true
	return err
}

// ownRefusal reports whether err says that a breaker or a bulkhead refused.
func ownRefusal(err error) bool {
	r, ok := errors.AsType[sluice.Rejection](err)
	if !ok {
		return false
	}
	switch r.Policy() {
	case "breaker", "bulkhead", "pool", "upstreams":
		return true
	}
	return false
}

func (j *Judge) observe(d Decision, o sluice.Outcome, took time.Duration, panicked, refused bool) {
	switch {
	case o == 0:
		o = sluice.Success
	case o > sluice.Throttled:
		o = sluice.Ignored
	}
	if j == nil || !d.Judged() || d.Point >= points {
		return
	}
	s := j.stage.Load()
	for s != nil && d.Generation < s.Generation {
		s = s.prev.Load()
	}
	if s == nil || d.Generation > s.known.Load() {
		j.strays.Add(1)
		return
	}
	name := d.Version.Name()
	side := s.side(name)
	if side == nil {
		return
	}
	if side == &s.stable && o == sluice.Success {
		j.recent.Load().now.Record(took)
	}
	s.observe(side, d.Point, o, took, panicked, refused)
}

// Begin begins a step. If the versions are those of the step before, its evidence and a
// condemnation stay until Reset; if not, all is forgotten.
func (j *Judge) Begin(t Trial) error {
	if err := t.Validate(); err != nil || j == nil {
		return err
	}
	j.begin(t, clock.Now())
	return nil
}

// begin is Begin with a valid t. The controller says itself until which generation the
// shares are these.
func (j *Judge) begin(t Trial, now int64) *judgeStage {
	return j.beginUntil(t, now, math.MaxUint64)
}

// beginUntil is begin for shares that are known to be these up to that generation.
func (j *Judge) beginUntil(t Trial, now int64, known uint64) *judgeStage {
	next := newJudgeStage(t, now, j.config.Load().WarmUp)
	next.known.Store(known)
	j.mu.Lock()
	defer j.mu.Unlock()
	last := j.stage.Load()
	if last != nil && (last.Canary != t.Canary || last.Stable != t.Stable) {
		j.forget()
		last = nil
	}
	if last != nil {
		if old := last.prev.Swap(nil); old != nil {
			for m := range j.past {
				j.past[m] = max(j.past[m], old.evidence(m))
			}
		}
		next.number = last.number + 1
		next.prev.Store(last)
	}
	j.stage.Store(next)
	j.tune(now)
	return next
}

// Reset forgets everything: no step is under way, and nobody is condemned.
func (j *Judge) Reset() {
	if j == nil {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.forget()
	j.stage.Store(nil)
}

func (j *Judge) forget() {
	j.past, j.failed = [judgeMetrics]float64{}, nil
}

// Config returns a copy of what the Judge decides on.
func (j *Judge) Config() JudgeConfig {
	if j == nil {
		return JudgeConfig{}
	}
	return *j.config.Load()
}

// Update changes what the Judge decides on from its next verdict on; what it has seen
// stays, and so does a condemnation. WarmUp counts from the next step on. A
// configuration that does not validate is returned as an error and changes nothing.
func (j *Judge) Update(c JudgeConfig) error {
	if err := c.Validate(); err != nil || j == nil {
		return err
	}
	j.config.Store(&c)
	return nil
}
