package bulkhead

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// Snapshot is what a bulkhead looks like at one moment, as plain data. Its numbers
// are read one after another while calls go on, so they need not add up to the
// call.
type Snapshot struct {
	Name  string `json:"name"`
	Limit int    `json:"limit"`
	// InFlight is how many places are taken; more than Limit after that was lowered.
	InFlight int `json:"in_flight"`
	Waiting  int `json:"waiting"`
	MaxQueue int `json:"max_queue"`
	// Overload says that the queue has not been empty for CoDelInterval.
	Overload bool            `json:"overload"`
	Totals   TotalsSnapshot  `json:"totals"`
	Refused  RefusedSnapshot `json:"refused"`
}

// TotalsSnapshot counts calls since New; the numbers never go down.
type TotalsSnapshot struct {
	Admitted int64 `json:"admitted"`
	// Waited counts admitted calls that had to wait, WaitTime for how long together.
	Waited   int64         `json:"waited"`
	WaitTime time.Duration `json:"wait_time"`
	// GaveUp counts calls whose ctx ended while they waited.
	GaveUp int64 `json:"gave_up"`
}

// RefusedSnapshot counts refused calls since New, by reason.
type RefusedSnapshot struct {
	Full            int64 `json:"full"`
	QueueFull       int64 `json:"queue_full"`
	MaxWait         int64 `json:"max_wait"`
	ExceedsCapacity int64 `json:"exceeds_capacity"`
	Closed          int64 `json:"closed"`
}

// Snapshot returns what the bulkhead looks like now. It has no side effect; it takes
// the mutex of those that wait for a moment.
func (b *Bulkhead) Snapshot() Snapshot {
	if b == nil {
		return Snapshot{}
	}
	return b.snapshot(clock.Now())
}

func (b *Bulkhead) snapshot(now int64) Snapshot {
	waiting, overload := b.places.Queue(now)
	totals := b.places.Totals()
	return Snapshot{
		Name: b.name, Limit: b.places.Limit(), InFlight: b.places.InUse(),
		Waiting: waiting, MaxQueue: b.Config().MaxQueue, Overload: overload,
		Totals: TotalsSnapshot{
			Admitted: int64(b.admitted.Report(totals.Admitted)), Waited: int64(totals.Waited),
			WaitTime: time.Duration(totals.WaitNanos), GaveUp: b.gaveUp.Load(),
		},
		Refused: b.refusedSoFar(),
	}
}
