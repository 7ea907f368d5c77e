package metrics

import "sync/atomic"

// A Total keeps a counter from going down when it is the sum of parts that are
// read one after another: what a window has retired, and what is live in it.
//
// Read the retired part first. A bucket that retires between the two readings
// is then missing from the sum, which Report makes good; read the other way
// round it would be in the sum twice, and nothing could take it out again.
//
// The zero Total is ready, and safe for concurrent use. It must not be copied.
type Total struct {
	last atomic.Uint64 // the largest sum reported, by whoever collects
}

// Report returns sum, or what it returned before if that was more.
func (t *Total) Report(sum uint64) uint64 {
	for {
		last := t.last.Load()
		if sum <= last {
			return last
		}
		if t.last.CompareAndSwap(last, sum) {
			return sum
		}
	}
}
