package adaptive

import (
	"math"
	"time"
)

// vegas is the tracker of Vegas. Brakmo, Peterson: "TCP Vegas: End to End Congestion
// Avoidance on a Global Internet", 1995, for calls instead of packets: of L calls under
// way, L · (1 − baseline/took) wait for others, where baseline is how long a call takes
// when none does.
//
//	limit
//	 │   hold ┌──────────────────  more than β wait: down, by half of what is above α
//	 │        │      between α and β wait: hold
//	 │   up   └──────────────────  fewer than α wait: up
//	 │
//	 │ ─────╮  ╭─────────────╮  ╭─────   drain: for two windows the limit is so low that
//	 │      ╰──╯             ╰──╯        none waits; the second tells the baseline
//	 └──────────────────────────────── time
//
// A baseline that was only ever the shortest time seen would never learn that a
// dependency has become slower; one that is read again under load takes the queue for
// the dependency, and grows for as long as the load lasts. So where calls are few, it is
// read again as they are, and under load the queue is drained first.
type vegas struct {
	draw func() uint32
	// baseline is what calls take when none waits, 0 before the first window.
	baseline time.Duration
	// until is how many windows there are before the baseline is read again.
	until int
	// drain is 0, or which window of a drain comes next: 1 or 2. Then held is the limit
	// as it was before.
	drain int
	held  float64
}

func (v *vegas) next(w *LimitWindow, r *LimitRule) float64 {
	if factor, ok := w.dropped(r.Tolerance); ok {
		limit := w.Limit
		if v.drain != 0 {
			limit, v.drain = v.held, 0
		}
		return limit * factor
	}
	if w.Calls == 0 {
		return w.Limit
	}
	switch v.drain {
	case 1:
		v.drain = 2
		return w.Limit
	case 2:
		v.drain = 0
		v.learn(w.Took, r)
		return v.held
	}
	if v.baseline == 0 || w.Took < v.baseline {
		if v.baseline == 0 {
			v.until = 3 + int(v.draw()%8) // it may have been read under load
		}
		v.baseline = w.Took
	}
	v.cap(r)
	if v.until--; v.until <= 0 {
		if !w.needless() {
			v.drain, v.held = 1, w.Limit
			return w.Limit * 0.8 * v.share(w)
		}
		v.learn(w.Took, r)
	}
	return v.adjust(w)
}

// adjust is the next limit while the baseline is known.
func (v *vegas) adjust(w *LimitWindow) float64 {
	step := math.Log10(max(w.Limit, 10))
	alpha, beta := 3*step, 6*step
	waiting := min(w.Limit, float64(w.InFlight)) * (1 - v.share(w))
	switch {
	case w.needless():
		return w.Limit // nobody is refused, so what is slow is slow by itself
	case waiting > beta:
		// They wait for others, or the dependency has become slower: find out soon.
		v.until = min(v.until, 10+int(v.draw()%6))
		return w.Limit - max(step, (waiting-alpha)/2)
	case waiting <= step:
		return w.Limit + beta
	case waiting < alpha:
		return w.Limit + step
	}
	return w.Limit
}

// urgent: it is the first window, or many calls were dropped, or most of those under way
// wait for others.
func (v *vegas) urgent(w *LimitWindow, r *LimitRule) bool {
	if _, ok := w.dropped(r.Tolerance); ok || v.baseline == 0 {
		return true
	}
	return v.drain == 0 && v.baseline > 0 && !w.needless() && v.share(w) < 0.5
}

// share is what part of the time that calls took was not spent waiting for others.
func (v *vegas) share(w *LimitWindow) float64 {
	return min(1, float64(v.baseline)/float64(max(w.Took, 1)))
}

// learn takes a baseline from calls of which none has waited.
func (v *vegas) learn(took time.Duration, r *LimitRule) {
	v.baseline, v.until = took, v.pause()
	v.cap(r)
}

// cap keeps the baseline at what is healthy.
func (v *vegas) cap(r *LimitRule) {
	if r.MaxHealthy > 0 {
		v.baseline = min(v.baseline, r.MaxHealthy)
	}
}

// pause is how many windows there are between two readings of the baseline: by chance,
// so that many processes do not drain at the same time.
func (v *vegas) pause() int { return 60 + int(v.draw()%31) }

func (v *vegas) finding() limitFinding { return limitFinding{v.baseline, v.drain != 0} }
