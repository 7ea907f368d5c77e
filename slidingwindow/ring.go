package slidingwindow

import (
	"fmt"
	"sync/atomic"
)

// maxRing bounds a Ring. It leaves a lane of totals as much room below 0 and
// twice as much above the largest count, for Records that are under way.
const maxRing = 1 << 14

// One outcome in each lane of a packed word.
const (
	ringTotal uint64 = 1 << (16 * iota)
	ringFailure
	ringSlow
	ringGaveUp
)

// ringBias lifts every lane by maxRing.
const ringBias = maxRing * (ringTotal + ringFailure + ringSlow + ringGaveUp)

// Ring is the window of the last n outcomes, however old they are: use it where
// calls are too rare for a time window to hold enough of them.
//
// It promises that Sum is exactly what the last n records say whenever no Record
// is running, and that no reader ever sees a negative number, Failures or Slow
// above Total, or more than n outcomes. Outcomes recorded at the same moment
// take their places in either order.
//
// Record is two or three atomic operations on one shared cache line and a slot:
// Counts scales with the cores, a Ring does not. It takes no lock, does not
// allocate and starts no goroutine. Ring is safe for concurrent use and must not
// be copied. Make one with NewRing.
type Ring struct {
	// seq is how many records have taken a slot: the next one's is seq mod len.
	seq atomic.Uint64
	// totals is the sum of all slots: total, failures, slow and gaveUp in lanes of
	// 16 bits, lowest first. Written by Record after it has swapped its slot, by
	// the difference.
	//
	// Of two Records a lap apart on one slot, the later may add its difference
	// first, so a lane may be below 0 for a moment and borrow from the one above
	// it. The word is one sum modulo 2^64, so the other's difference pays that
	// back exactly; and Sum lifts all lanes before it takes them apart, so it sees
	// no borrowed ones (unless 16 384 Records stand between swap and add at once).
	totals atomic.Uint64
	// slots hold what each outcome adds to totals, 0 for none.
	slots []atomic.Uint64
}

// NewRing returns an empty window of the last n outcomes, n in [1, 16384]. It
// takes 8 bytes for each.
func NewRing(n int) (*Ring, error) {
	if n < 1 || n > maxRing {
		return nil, fmt.Errorf("slidingwindow: ring size %d is not in [1, %d]", n, maxRing)
	}
	return &Ring{slots: make([]atomic.Uint64, n)}, nil
}

// Record counts one finished call; when the ring is full, the oldest outcome
// leaves for it. An event that changes nothing (see NoVerdict) pushes nothing
// out either.
func (r *Ring) Record(e Event) {
	in := ringLanes(e)
	if in == 0 {
		return
	}
	ticket := r.seq.Add(1) - 1
	out := r.slots[ticket%uint64(len(r.slots))].Swap(in)
	if in != out {
		r.totals.Add(in - out)
	}
}

// Sum is what the last n outcomes say. It is one atomic load.
func (r *Ring) Sum() Sums {
	word := r.totals.Load() + ringBias
	lane := func(i, most int64) int64 {
		n := int64(word>>(16*i)&0xffff) - maxRing
		return min(max(n, 0), most)
	}
	// The limits bind only while Records are under way.
	total := lane(0, int64(len(r.slots)))
	return Sums{
		Total:    total,
		Failures: lane(1, total),
		Slow:     lane(2, total),
		GaveUp:   lane(3, int64(len(r.slots))-total),
	}
}

// ringLanes is what e adds to the totals.
func ringLanes(e Event) uint64 {
	if e&NoVerdict != 0 {
		if e&Slow != 0 {
			return ringGaveUp
		}
		return 0
	}
	lanes := ringTotal
	if e&Failed != 0 {
		lanes += ringFailure
	}
	if e&Slow != 0 {
		lanes += ringSlow
	}
	return lanes
}
