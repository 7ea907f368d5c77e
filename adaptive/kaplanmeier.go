package adaptive

import "time"

// The default estimator: the quantile 1 − eps of how long calls take, by the
// Kaplan–Meier estimate, so that the calls that were cut off count as longer than
// where they were cut. A closed loop goes with it: while more calls time out than
// eps allows, the limit grows, and some calls run as long as Max to see what the
// others are cut off from.
//
//	               too few calls            ┌──────┐
//	              ┌────────────────────────►│ Cold │
//	              │                         └──────┘
//	┌─────────────┴──┐ enough, and the      ┌──────────┐
//	│ survey: what   ├─────────────────────►│ Resolved │ limit = quantile · margin
//	│ the calls say  │ quantile is known    └──────────┘
//	└─────────────┬──┘
//	              │ it lies beyond          ┌────────────┐ limit doubles with each tick
//	              ├────────────────────────►│ Unresolved │ that saw a call time out, up to Max;
//	              │ the calls that were cut └────────────┘ probes run up to Max
//	              │
//	              │ and most calls of the   ┌────────┐ the same, but up to
//	              └────────────────────────►│ Outage │ OutageCap · the last that was resolved
//	                last two s timed out    └────────┘
type kaplanMeier struct {
	history
	growth
	stall stall

	tuning tuning        // guarded by history.mu
	ref    time.Duration // the last limit that was resolved; Estimate's
}

// tuning is what a kaplanMeier decides on.
type tuning struct {
	eps, margin, outageCap float64
}

// minCalls is how many calls say anything.
const minCalls = 20

func (k *kaplanMeier) Observe(s Sample) {
	k.record(s)
	if s.End == TimedOut {
		k.growth.observe(s)
		k.stall.observe(s)
	}
}

func (k *kaplanMeier) Estimate(now int64, b Bounds) Estimate {
	var s survey
	t := k.tuned()
	k.survey(now, int64(10/t.eps), &s)
	e := Estimate{State: Cold}
	switch hit := k.look(); {
	case s.calls >= minCalls:
		s.survive()
		e.Median, _ = s.quantile(0.5)
		e.State = k.judge(&s, t, b, hit)
	case hit:
		k.double(b.Max) // else a limit that was learnt long ago could cut off rare calls for ever
	}
	k.limit = b.clamp(k.limit)
	e.Probing = e.State > Resolved && k.limit < b.Max
	e.Limit = k.limit + k.stall.stretch(now, k.limit)
	return e
}

// judge sets the limit to what s says, and returns how sure that is. hit tells that a
// call has run into the limit lately.
func (k *kaplanMeier) judge(s *survey, t tuning, b Bounds, hit bool) TimeoutState {
	// Alarmed, do not extrapolate: probes may have seen what there is.
	alarm := float64(s.timedOut) > max(3, 2*t.eps*float64(s.calls))
	q, ok := s.tail(t.eps)
	if alarm {
		q, ok = s.quantile(1 - t.eps)
	}
	if ok {
		if alarm && s.longer(k.ref) < 10 {
			q = scaled(q, 2) // a few probes know little of the tail
		}
		k.limit = b.clamp(scaled(q, t.margin))
		k.ref = k.limit
		return Resolved
	}
	state, most := Unresolved, b.Max
	if s.lateFinished < s.lateTimedOut {
		state, most = Outage, b.clamp(scaled(k.ref, t.outageCap))
	}
	if hit {
		k.double(most)
	}
	return state
}

// tuned returns what k decides on now.
func (k *kaplanMeier) tuned() tuning {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tuning
}

// tune changes what k decides on. Windows keep what they have counted.
func (k *kaplanMeier) tune(t tuning, longest time.Duration) {
	k.regrid(longest)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tuning = t
}
