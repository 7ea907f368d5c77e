package adaptive

import (
	"sync/atomic"
	"time"
)

// meanMultiple is the estimator of MeanMultiple.
type meanMultiple struct {
	multiple float64
	// slots hold the last calls: how long each took, negative if it was cut off after
	// that time.
	slots []atomic.Int64
	next  atomic.Uint64 // the next call's slot, mod len
	// sum is that of all slots without their signs, cut how many are negative. Both
	// are written after a slot has been swapped, by the difference.
	sum, cut atomic.Int64
	done     atomic.Int64
}

func newMeanMultiple(r Rule) *meanMultiple {
	return &meanMultiple{multiple: r.Multiple, slots: make([]atomic.Int64, r.Calls)}
}

func (m *meanMultiple) Observe(s Sample) {
	in := int64(max(s.Took, 1))
	switch s.End {
	case Finished:
		m.done.Add(1)
	case TimedOut:
		in = -int64(max(s.Limit, 1))
	default:
		in = -in
	}
	out := m.slots[(m.next.Add(1)-1)%uint64(len(m.slots))].Swap(in)
	m.sum.Add(max(in, -in) - max(out, -out))
	if in < 0 != (out < 0) {
		if in < 0 {
			m.cut.Add(1)
		} else {
			m.cut.Add(-1)
		}
	}
}

func (m *meanMultiple) Estimate(_ int64, _ Bounds) Estimate {
	calls := min(m.next.Load(), uint64(len(m.slots)))
	if calls < min(minCalls, uint64(len(m.slots))) {
		return Estimate{State: Cold}
	}
	finished := max(1, int64(calls)-m.cut.Load())
	return Estimate{Limit: scaled(time.Duration(m.sum.Load()), m.multiple/float64(finished)), State: Resolved}
}

func (m *meanMultiple) finished() int64           { return m.done.Load() }
func (m *meanMultiple) quantiles(int64) Quantiles { return Quantiles{} }
