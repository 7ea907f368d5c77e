package adaptive

import (
	"sync/atomic"
	"time"
)

// A growth is a limit that doubles while calls time out. Only calls that had nearly
// all of it count, so that those which began under a shorter one do not double it
// again.
type growth struct {
	hit   atomic.Int64  // the longest limit that a call has run into since the last look
	limit time.Duration // Estimate's
}

// observe is told of a call that timed out.
func (g *growth) observe(call Sample) { raise(&g.hit, int64(call.Limit)) }

// look returns whether a call has run into the limit since the last look.
func (g *growth) look() bool { return float64(g.hit.Swap(0)) >= 0.9*float64(g.limit) }

// double makes the limit twice as long, or most if that is less.
func (g *growth) double(most time.Duration) { g.limit = min(scaled(g.limit, 2), most) }

// raise makes word at least to.
func raise(word *atomic.Int64, to int64) {
	for {
		have := word.Load()
		if have >= to || word.CompareAndSwap(have, to) {
			return
		}
	}
}
