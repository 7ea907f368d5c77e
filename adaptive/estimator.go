package adaptive

import (
	"fmt"
	"time"
)

// An Estimator works out the time limit of one Timeout from how its calls end.
// The package's own are named by a Rule; give your own with WithEstimator.
//
// Observe is called for each call that says something about how long calls take,
// on its path and from many goroutines at once: let it take no lock that others
// hold for long, and not panic. Estimate is called when a call has ended, at most
// every 250 ms and by one goroutine at a time, but while others call Observe. Both
// are called with no lock held.
type Estimator interface {
	Observe(s Sample)
	// Estimate returns the limit for the calls to come. The Timeout keeps it within
	// the bounds. now is as Sample.At.
	Estimate(now int64, b Bounds) Estimate
}

// A Sample is one call that has ended, as far as it says something about time.
// Failures, refusals and throttled calls say nothing and are not shown: a refused
// connection answers in a millisecond.
type Sample struct {
	At    int64         // when it ended, as slidingwindow.Now tells the time
	Took  time.Duration // from Begin to the end
	Limit time.Duration // what it was allowed to take
	End   End
}

// End is how a call ended.
type End uint8

const (
	// Finished: the call was answered, after Took.
	Finished End = iota + 1
	// TimedOut: the limit of this Timeout cut the call off. All that is known is that
	// it would have taken longer than Limit. Took may be more than that: by how much
	// the call was late to notice.
	TimedOut
	// CutShort: the caller or another limit cut the call off after Took, before this
	// Timeout's limit did.
	CutShort
)

// String returns "finished", "timed_out" or "cut_short".
func (e End) String() string {
	if e >= Finished && e <= CutShort {
		return [...]string{"finished", "timed_out", "cut_short"}[e-1]
	}
	return fmt.Sprintf("End(%d)", uint8(e))
}

// MarshalText returns the text of String, for JSON and logs.
func (e End) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// Bounds are what a Timeout keeps its limit within.
type Bounds struct{ Base, Max time.Duration }

// clamp returns what of the bounds is nearest to d.
func (b Bounds) clamp(d time.Duration) time.Duration { return min(max(d, b.Base), b.Max) }

// An Estimate is what an Estimator has found. An own Estimator needs to fill in no
// more than Limit.
type Estimate struct {
	// Limit is for the calls to come. 0 or less leaves it as it is.
	Limit time.Duration
	// Median is what half of the calls finish within, 0 if that is not known. Begin
	// refuses calls that have less time left.
	Median time.Duration
	// Probing asks for calls that may take as long as Max, to see what the others are
	// cut off from.
	Probing bool
	// State is for people to read; 0 counts as Resolved.
	State TimeoutState
}

// TimeoutState is how sure an estimator is of its limit.
type TimeoutState uint8

const (
	// Cold: there have been too few calls; the limit is as it was.
	Cold TimeoutState = iota + 1
	// Resolved: the limit follows from how long calls take.
	Resolved
	// Unresolved: calls time out too often, and the dependency is alive. The limit
	// grows.
	Unresolved
	// Outage: most calls time out. The limit does not grow beyond a multiple of the
	// last one that was Resolved unless a probe shows that there is an answer to wait
	// for.
	Outage
)

// String returns the state in lower case.
func (s TimeoutState) String() string {
	if s >= Cold && s <= Outage {
		return [...]string{"cold", "resolved", "unresolved", "outage"}[s-1]
	}
	return fmt.Sprintf("TimeoutState(%d)", uint8(s))
}

// MarshalText returns the text of String, for JSON and logs.
func (s TimeoutState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// A tracker is an Estimator that a Timeout can also look into.
type tracker interface {
	Estimator
	// finished is how many calls have been observed to finish.
	finished() int64
	// quantiles is how long calls take, as of now.
	quantiles(now int64) Quantiles
}
