package adaptive

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// LimiterSnapshot is what a Limiter looks like at one moment, as plain data. Its numbers
// are read one after another while calls go on, so they need not add up to the call.
type LimiterSnapshot struct {
	Name  string `json:"name"`
	Rule  string `json:"rule"`
	Limit int    `json:"limit"`
	Min   int    `json:"min"`
	Max   int    `json:"max"`
	// InFlight is how many calls are under way; more than Limit after that became lower.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	MaxQueue int `json:"max_queue"`
	// Overload says that the queue has not been empty for CoDelInterval.
	Overload bool `json:"overload"`
	// Took is how long the calls of the last window took, Baseline what they take when
	// none waits for others; 0 if not known.
	Took     time.Duration `json:"took"`
	Baseline time.Duration `json:"baseline"`
	// Draining says that the limit is low for two windows, to find the baseline.
	Draining bool                   `json:"draining"`
	Totals   LimiterTotalsSnapshot  `json:"totals"`
	Refused  LimiterRefusedSnapshot `json:"refused"`
}

// LimiterTotalsSnapshot counts calls since NewLimiter; the numbers never go down.
type LimiterTotalsSnapshot struct {
	Admitted int64 `json:"admitted"`
	// Those that have ended: Answered ones tell how long calls take, Dropped ones were
	// throttled or timed out, and from the others nothing follows.
	Answered int64 `json:"answered"`
	Dropped  int64 `json:"dropped"`
	Failed   int64 `json:"failed"`
	Ignored  int64 `json:"ignored"`
	// Waited counts admitted calls that had to wait, WaitTime for how long together.
	Waited   int64         `json:"waited"`
	WaitTime time.Duration `json:"wait_time"`
	// GaveUp counts calls whose ctx ended while they waited.
	GaveUp int64 `json:"gave_up"`
}

// LimiterRefusedSnapshot counts refused calls since NewLimiter, by reason.
type LimiterRefusedSnapshot struct {
	Limit     int64 `json:"limit"`
	QueueFull int64 `json:"queue_full"`
	MaxWait   int64 `json:"max_wait"`
}

// Snapshot returns what the Limiter looks like now. It has no side effect; it takes the
// mutex of those that wait for a moment.
func (l *Limiter) Snapshot() LimiterSnapshot {
	if l == nil {
		return LimiterSnapshot{}
	}
	return l.snapshot(clock.Now())
}

func (l *Limiter) snapshot(now int64) LimiterSnapshot {
	waiting, overload := l.places.Queue(now)
	c := l.plan.Load().config
	s := LimiterSnapshot{
		Name: l.name, Rule: c.Rule.String(), Limit: l.places.Limit(), Min: c.Min, Max: c.Max, InFlight: l.places.InUse(),
		Waiting: waiting, MaxQueue: c.MaxQueue, Overload: overload, Totals: l.totals(), Refused: l.refusedSoFar(),
	}
	if l.hooks.algorithm != nil {
		s.Rule = "own"
	}
	if f := l.found.Load(); f != nil {
		s.Took, s.Baseline, s.Draining = f.window.Took, f.baseline, f.draining
	}
	return s
}

func (l *Limiter) totals() LimiterTotalsSnapshot {
	// Calls end while this is read: those that are under way last, so that none of them
	// counts as answered.
	s := LimiterTotalsSnapshot{Dropped: l.dropped.Load(), Failed: l.failed.Load(), Ignored: l.ignored.Load(), GaveUp: l.gaveUp.Load()}
	totals := l.places.Totals()
	answered := int64(totals.Admitted) - int64(l.places.InUse()) - s.Dropped - s.Failed - s.Ignored
	s.Admitted = int64(l.admitted.Report(totals.Admitted))
	s.Answered = int64(l.answers.Report(uint64(max(answered, 0))))
	s.Waited, s.WaitTime = int64(totals.Waited), time.Duration(totals.WaitNanos)
	return s
}
