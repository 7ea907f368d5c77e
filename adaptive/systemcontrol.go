package adaptive

import (
	"math"
	"time"
)

// A controller finds the share of the calls to refuse: a PI controller on the error of
// the signal that is the furthest above its threshold, from -1, far below, to 1. It
// belongs to tick.
//
// The proportional part answers at once and lets go at once; the integral finds what is
// refused in the long run, and takes two seconds from 0 to 1 at the full error.
type controller struct {
	integral float64
	at       int64
}

const (
	proportional = 0.3
	integral     = 0.5 // a second
	// mostShed keeps some calls coming, which tell that the overload is over.
	mostShed = 0.95
)

// step takes the error at now, and returns the share.
func (c *controller) step(now int64, e float64) float64 {
	if c.at > 0 {
		passed := min(max(time.Duration(now-c.at), 0), time.Second).Seconds()
		c.integral = min(max(c.integral+integral*e*passed, 0), mostShed)
	}
	c.at = now
	return min(max(c.integral+proportional*e, 0), mostShed)
}

// width is how far a signal must be above its threshold for the full error, in
// thresholds.
var width = [signals]float64{QueueDelay: 4, Load1: 1, CPU: 1, AvgRT: 1, Concurrency: 1}

// excess is the error of a signal.
func excess(s Signal, value, threshold float64) float64 {
	return min(max((value-threshold)/(threshold*width[s]), -1), 1)
}

// A mix is how many calls there are of each class, lately.
type mix struct {
	seen   [classes]float64
	before [classes]int64
}

// add takes how many calls were sampled so far.
func (m *mix) add(sampled [classes]int64) {
	for class, n := range sampled {
		m.seen[class] = m.seen[class]*0.9 + float64(n-m.before[class])
	}
	m.before = sampled
}

// enough is how many calls must have been sampled to know the mix.
const enough = 10

// shares spreads p, the share of all calls to refuse, over the classes: the last one
// first, and the next only when mostShed of that is refused. The first class bears
// what is left of lasting, the part of p that is no answer to the moment. While the mix
// is not known, all but the first class bear p. No class bears more than mostShed, so
// whatever the mix is, no more than that is refused of all.
func (m *mix) shares(p, lasting float64) (of [classes]float64) {
	var all float64
	for _, n := range m.seen {
		all += n
	}
	if all < enough {
		for class := 1; class < classes; class++ {
			of[class] = p
		}
		return of
	}
	rest := p * all
	for class := classes - 1; class >= 0; class-- {
		if class == 0 {
			rest -= (p - min(p, lasting)) * all
		}
		if rest <= all*1e-9 {
			break
		}
		of[class] = mostShed
		if m.seen[class] > 0 {
			of[class] = min(rest/m.seen[class], mostShed)
		}
		rest -= of[class] * m.seen[class]
	}
	return of
}

// chance is a share as what a random uint32 must be below.
func chance(share float64) uint64 { return uint64(share * (1 << 32)) }

// ceiling is the bound on calls under way that keeps them at most at capacity. One may
// always be.
func ceiling(capacity float64) int64 {
	return int64(max(math.Floor(capacity), 1))
}
