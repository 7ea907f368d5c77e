package adaptive

import (
	"math"
	"time"
)

// A LimitAlgorithm works out the limit of one Limiter from what its calls say. The
// package's own are named by a LimitRule; give your own with WithLimitAlgorithm.
//
// Next is called on the path of a call that has ended, when a window is over: by one
// goroutine at a time and with no lock held. Calls go on meanwhile, under the old
// limit. It must not panic.
type LimitAlgorithm interface {
	// Next returns the limit for the calls to come. The Limiter keeps it within the
	// bounds, remembers fractions and admits as many calls as there are whole ones.
	// 0, less and NaN leave the limit as it is.
	Next(w LimitWindow) float64
}

// A LimitWindow is what a Limiter saw of its calls in one stretch of time. Calls that
// failed, were ignored or were refused say nothing about the limit and are not in it.
type LimitWindow struct {
	At   int64         // when it ended, as slidingwindow.Now tells the time
	Span time.Duration // how long it was
	// Limit is the limit as of the end of the window, Min and Max what it stays within.
	Limit    float64
	Min, Max int
	// InFlight is the most calls that were under way at once. Less than half of Limit
	// means that the calls do not need so high a limit, and say nothing about a higher.
	InFlight int
	// Calls is how many were answered, Took how long they took: the mean without the
	// fastest and the slowest tenth. Waiting for leave does not count.
	Calls int
	Took  time.Duration
	// Drops is how many were throttled or timed out.
	Drops int

	counts *[tookBuckets]uint32 // of the calls, by how long they took; nil in one made by hand
}

// Quantile returns what a share q of the calls was answered within, at most an eighth
// too long; Took if the window was made by hand.
func (w LimitWindow) Quantile(q float64) time.Duration {
	if w.counts == nil {
		return w.Took
	}
	rank, n := int(math.Ceil(q*float64(w.Calls))), 0
	for i, in := range w.counts {
		if n += int(in); in > 0 && n >= rank {
			return tookGrid.upper(i)
		}
	}
	return 0
}

// ended is how many calls the window says anything about.
func (w *LimitWindow) ended() int { return w.Calls + w.Drops }

// needless reports whether so high a limit is not needed.
func (w *LimitWindow) needless() bool { return 2*float64(w.InFlight) < w.Limit }

// dropped returns what the limit is to be multiplied by because of drops, if their
// share is more than tolerance: 0.9, or down to a half if most calls were dropped.
func (w *LimitWindow) dropped(tolerance float64) (factor float64, ok bool) {
	if w.Drops == 0 {
		return 1, false
	}
	share := float64(w.Drops) / float64(w.ended())
	return min(0.9, 1-share/2), share > tolerance
}

// A limitTracker is a LimitAlgorithm that a Limiter can also look into. Its methods are
// called by one goroutine at a time.
type limitTracker interface {
	// next is as LimitAlgorithm.Next. r is the rule in force, which may have other
	// numbers than last time.
	next(w *LimitWindow, r *LimitRule) float64
	// urgent reports whether a window that is not over yet says so much that it is to
	// be ended.
	urgent(w *LimitWindow, r *LimitRule) bool
	// finding is what it has found out, for people to read.
	finding() limitFinding
}

// A limitFinding is what a limitTracker goes by.
type limitFinding struct {
	baseline time.Duration // how long calls take when none waits; 0 if not known
	draining bool          // the limit is low to find that out
}

// newLimitTracker makes the tracker of r, or of the user's own algorithm.
func newLimitTracker(r *LimitRule, h *limiterHooks, draw func() uint32) limitTracker {
	if h.algorithm != nil {
		return &foreignLimit{make: h.algorithm}
	}
	switch r.Kind {
	case LimitByAIMD:
		return new(aimd)
	case LimitByGradient2:
		return new(gradient2)
	case LimitFixed:
		return fixedLimit{}
	}
	return &vegas{draw: draw}
}

// foreignLimit is a LimitAlgorithm of the user's. It is made when it is first needed,
// which in a LimiterGroup is after its lock has been released.
type foreignLimit struct {
	make func() LimitAlgorithm
	own  LimitAlgorithm
}

func (f *foreignLimit) next(w *LimitWindow, _ *LimitRule) float64 {
	if f.own == nil {
		if f.own = f.make(); f.own == nil {
			panic(errNoAlgorithm)
		}
	}
	return f.own.Next(*w)
}

func (f *foreignLimit) urgent(*LimitWindow, *LimitRule) bool { return false }
func (f *foreignLimit) finding() limitFinding                { return limitFinding{} }

// fixedLimit is the tracker of FixedLimit.
type fixedLimit struct{}

func (fixedLimit) next(_ *LimitWindow, r *LimitRule) float64 { return float64(r.Limit) }
func (fixedLimit) urgent(_ *LimitWindow, _ *LimitRule) bool  { return false }
func (fixedLimit) finding() limitFinding                     { return limitFinding{} }
