package adaptive

import (
	"sync/atomic"
	"time"
)

// fixed is the estimator of Fixed.
type fixed struct {
	limit time.Duration
	done  atomic.Int64
}

func (f *fixed) Observe(s Sample) {
	if s.End == Finished {
		f.done.Add(1)
	}
}

func (f *fixed) Estimate(int64, Bounds) Estimate { return Estimate{Limit: f.limit, State: Resolved} }

func (f *fixed) finished() int64           { return f.done.Load() }
func (f *fixed) quantiles(int64) Quantiles { return Quantiles{} }
