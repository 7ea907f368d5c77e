package adaptive

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// TimeoutSnapshot is what a Timeout looks like at one moment, as plain data. Its
// numbers are read one after another while calls go on, so they need not add up to
// the call.
type TimeoutSnapshot struct {
	Name  string        `json:"name"`
	Limit time.Duration `json:"limit"`
	Base  time.Duration `json:"base"`
	Max   time.Duration `json:"max"`
	State TimeoutState  `json:"state"`
	// Probing: some calls run as long as Max.
	Probing bool `json:"probing"`
	// Median is what Begin asks of a caller's deadline, 0 if it asks for nothing.
	Median time.Duration         `json:"median"`
	Rule   string                `json:"rule"`
	Took   Quantiles             `json:"took"`
	Totals TimeoutTotalsSnapshot `json:"totals"`
}

// Quantiles is how long calls take, lately: P50 is what half of them finish within.
// A call that was cut off counts as longer than that. A quantile is 0 if it lies
// beyond all that was let run, and all are for rules that do not need them.
type Quantiles struct {
	P50   time.Duration `json:"p50"`
	P95   time.Duration `json:"p95"`
	P99   time.Duration `json:"p99"`
	P999  time.Duration `json:"p999"`
	Calls int           `json:"calls"` // that they come from
}

// TimeoutTotalsSnapshot counts calls since NewTimeout by how they ended; the numbers
// never go down.
type TimeoutTotalsSnapshot struct {
	Finished int64 `json:"finished"`
	// TimedOut calls were cut off by the limit, CutShort ones by their caller or by
	// another limit before it.
	TimedOut int64 `json:"timed_out"`
	CutShort int64 `json:"cut_short"`
	// Of the others nothing was learnt.
	Failed    int64 `json:"failed"`
	Throttled int64 `json:"throttled"`
	Ignored   int64 `json:"ignored"`
	// Probes are in the numbers above as well.
	Probes int64 `json:"probes"`
	// Refused calls had too little time left and are in no other number.
	Refused int64 `json:"refused"`
}

// Snapshot returns what the Timeout looks like now. It has no side effect and does
// not disturb calls.
func (t *Timeout) Snapshot() TimeoutSnapshot {
	if t == nil {
		return TimeoutSnapshot{}
	}
	return t.snapshot(clock.Now())
}

func (t *Timeout) snapshot(now int64) TimeoutSnapshot {
	w, p := t.cur.Load(), t.plan.Load()
	s := TimeoutSnapshot{
		Name: t.name, Limit: w.limit, Base: p.config.Base, Max: p.config.Max, State: w.state, Probing: w.probing, Median: w.median,
		Rule: p.config.Rule.String(), Took: p.est.quantiles(now),
		Totals: TimeoutTotalsSnapshot{
			Finished: t.finishedBefore.Load() + p.est.finished(),
			TimedOut: t.timedOut.Load(), CutShort: t.cutShort.Load(),
			Failed: t.failed.Load(), Throttled: t.throttled.Load(), Ignored: t.ignored.Load(),
			Probes: t.probes.Load(), Refused: t.refused.Load(),
		},
	}
	if t.hooks.estimator != nil {
		s.Rule = "own"
	}
	return s
}
