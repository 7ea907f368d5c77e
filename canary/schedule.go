package canary

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/bits"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// Schedule raises a version's weight by the clock alone, without looking at how it does:
// a pure function of the wall clock's time, so that all replicas agree without asking one
// another, and on every machine to the last ppm, since it reckons in whole numbers. Where
// the version should prove itself at each step, take a Controller.
//
// Make one with LinearSchedule, ExponentialSchedule or StepSchedule. At answers for any
// time; Run applies it to a Picker. A Schedule is a plain value that never changes; the
// zero Schedule gives nobody the version, ever.
type Schedule struct {
	start    time.Time
	length   time.Duration
	from, to Weight
	steps    int64      // the weight changes so often on its way
	roots    []*big.Int // of to/from, for an exponential one: the 2nd, 4th, 8th … in 32 binary places
	points   []SchedulePoint
}

// SchedulePoint is a weight that a StepSchedule has from After its start on.
type SchedulePoint struct {
	After  time.Duration
	Weight Weight
}

// scheduleSteps is how often a weight changes on its way, as it does in Kong's canary
// plugin. More would mean a plan a second for ramps of an hour.
const scheduleSteps = 1000

// LinearSchedule goes from one weight to another in a thousand equal steps. It returns
// every complaint at once.
func LinearSchedule(start time.Time, length time.Duration, from, to Weight) (Schedule, error) {
	s := ramping(start, length, from, to)
	return s, s.check(0)
}

// ExponentialSchedule goes from one weight to another in a thousand steps, each of which
// multiplies it by the same factor: 1 % to 100 % spends half the time below 10 %. Neither
// weight may be 0.
func ExponentialSchedule(start time.Time, length time.Duration, from, to Weight) (Schedule, error) {
	s := ramping(start, length, from, to)
	if err := s.check(1); err != nil {
		return s, err
	}
	root := new(big.Int).Div(new(big.Int).Lsh(big.NewInt(int64(to)), 2*rootPlaces), big.NewInt(int64(from)))
	for range rootPlaces {
		root = new(big.Int).Sqrt(root) // of 2n binary places, so with n
		s.roots = append(s.roots, root)
		root = new(big.Int).Lsh(root, rootPlaces)
	}
	return s, nil
}

// rootPlaces is how exact the factors of an exponential schedule are, in binary places.
const rootPlaces = 32

// StepSchedule has the weight of the last point that has come; before the first, nobody
// has the version. The points must come in order of time.
func StepSchedule(start time.Time, points ...SchedulePoint) (Schedule, error) {
	s := Schedule{start: start.Round(0), points: append([]SchedulePoint(nil), points...)}
	var v complaints
	v.unless(len(points) > 0, "a schedule without points")
	last := time.Duration(-1)
	for i, p := range points {
		v.unless(p.After >= 0, "points[%d].After %v is negative", i, p.After)
		v.unless(p.After < 0 || p.After > last, "points[%d].After %v does not come after %v", i, p.After, last)
		if err := p.Weight.Validate(); err != nil {
			v = append(v, fmt.Errorf("points[%d]: %w", i, err))
		}
		last = max(last, p.After)
	}
	return s, errors.Join(v...)
}

// ramping is a schedule that goes from one weight to another. Of its start only the date
// counts: replicas cannot read another clock's time that may come with it.
func ramping(start time.Time, length time.Duration, from, to Weight) Schedule {
	return Schedule{start: start.Round(0), length: length, from: from, to: to, steps: scheduleSteps}
}

// check returns all that is wrong with a ramp whose weights must be least at least.
func (s *Schedule) check(least Weight) error {
	var v complaints
	v.unless(s.length > 0, "length %v is not positive", s.length)
	for _, w := range []struct {
		name string
		Weight
	}{{"from", s.from}, {"to", s.to}} {
		if err := w.Validate(); err != nil {
			v = append(v, fmt.Errorf("%s: %w", w.name, err))
			continue
		}
		v.unless(w.Weight >= least, "%s %v cannot be multiplied into another weight", w.name, w.Weight)
	}
	return errors.Join(v...)
}

// At returns the weight at t: that of the start before it, and that of the end after it.
// It is a whole ppm, rounded down.
func (s Schedule) At(t time.Time) Weight {
	since := t.Sub(s.start) // saturates
	if s.length == 0 {
		w := Weight(0)
		for _, p := range s.points {
			if since >= p.After {
				w = p.Weight
			}
		}
		return w
	}
	return s.weight(s.step(since))
}

// step is how many of the steps are done that long after the start.
func (s *Schedule) step(since time.Duration) int64 {
	switch {
	case since <= 0:
		return 0
	case since >= s.length:
		return s.steps
	}
	high, low := bits.Mul64(uint64(since), uint64(s.steps))
	n, _ := bits.Div64(high, low, uint64(s.length))
	return int64(n)
}

// weight is the weight after n steps.
func (s *Schedule) weight(n int64) Weight {
	switch {
	case n == 0:
		return s.from
	case n == s.steps:
		return s.to
	case s.roots == nil && s.to < s.from:
		return s.from - Weight((int64(s.from-s.to)*n+s.steps-1)/s.steps)
	case s.roots == nil:
		return s.from + Weight(int64(s.to-s.from)*n/s.steps)
	}
	// (to/from)^(n/steps) is the product of the roots for each binary place of n/steps.
	w := new(big.Int).Lsh(big.NewInt(int64(s.from)), rootPlaces)
	for _, root := range s.roots {
		if n *= 2; n >= s.steps {
			n -= s.steps
			w.Rsh(w.Mul(w, root), rootPlaces)
		}
	}
	low, high := min(s.from, s.to), max(s.from, s.to)
	return min(max(Weight(w.Rsh(w, rootPlaces).Int64()), low), high)
}

// Next returns when the weight changes first after t; ok is false if it never does again.
func (s Schedule) Next(t time.Time) (at time.Time, ok bool) {
	since := t.Sub(s.start)
	if s.length == 0 {
		for _, p := range s.points {
			if p.After > since && s.At(s.start.Add(p.After)) != s.At(t) {
				return s.start.Add(p.After), true
			}
		}
		return time.Time{}, false
	}
	now := s.At(t)
	for n := s.step(since) + 1; n <= s.steps; n++ {
		if s.weight(n) != now {
			return s.start.Add(s.begin(n)), true
		}
	}
	return time.Time{}, false
}

// begin is how long after the start the n-th step is done: the first moment for which
// step says so.
func (s *Schedule) begin(n int64) time.Duration {
	high, low := bits.Mul64(uint64(n), uint64(s.length))
	low, carry := bits.Add64(low, uint64(s.steps-1), 0)
	d, _ := bits.Div64(high+carry, low, uint64(s.steps))
	return time.Duration(d)
}

// Run gives the version the weight of the schedule whenever that changes, until nothing
// changes any more, and then returns nil; it returns the cause if ctx ends before, and
// the Picker's error if that refuses a weight, as it does once the version was rolled
// back. It goes by the wall clock, at least once a minute in case somebody sets it. What
// others do to the weight meanwhile stays until the next change.
func (s Schedule) Run(ctx context.Context, p *Picker, version string) error {
	for given := refused(-1); ctx.Err() == nil; { // at first, no weight that there is
		t := clock.Wall(clock.Now())
		if w := s.At(t); w != given {
			if err := p.SetWeights(map[string]Weight{version: w}); err != nil {
				return err
			}
			given = w
		}
		at, ok := s.Next(t)
		if !ok {
			return nil
		}
		timer := time.NewTimer(min(at.Sub(t), time.Minute))
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
	return context.Cause(ctx)
}
