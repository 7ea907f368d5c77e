package slidingwindow

import (
	"fmt"
	"iter"
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram covers [2^minBits, 2^maxBits) nanoseconds, octave by octave.
const (
	minBits = 10
	maxBits = 36
)

// Histogram counts durations from 1.024 µs to 68.7 s in buckets that grow with
// them: every octave, from one power of two to the next, is cut into 8 or 16
// equal ones. Shorter durations, negative ones too, go to the first bucket and
// longer ones to the last.
//
// Quantile is never below the true one and at most 1/8 or 1/16 of it above, for
// what lies in that range. RecordCensored tells of calls that were cut off, so
// that the slowest ones do not vanish from the answer.
//
// Record is one atomic add; only the first RecordCensored allocates. Histogram
// takes no lock, starts no goroutine, is safe for concurrent use and must not be
// copied. It is never emptied: to forget, put a new one in its place. Make one
// with NewHistogram; it takes 1.7 or 3.3 kB, and as much again once a call was
// cut off.
type Histogram struct {
	finished []atomic.Int64
	// cut counts the calls that were cut off, nil before the first. Written once,
	// by CAS; its elements count as those of finished do.
	cut      atomic.Pointer[[]atomic.Int64]
	subShift int // 2^subShift buckets an octave
}

// HistogramBucket is one bucket of a Histogram: the durations below Upper and
// not below the Upper of the bucket before it.
type HistogramBucket struct {
	Upper    time.Duration
	Finished int64 // calls that took that long
	Cut      int64 // calls that were cut off after that long
}

// NewHistogram returns an empty histogram with subBuckets buckets an octave: 8,
// for quantiles at most 12.5 % too high, or 16, for 6.25 %.
func NewHistogram(subBuckets int) (*Histogram, error) {
	if subBuckets != 8 && subBuckets != 16 {
		return nil, fmt.Errorf("slidingwindow: subBuckets %d is neither 8 nor 16", subBuckets)
	}
	return &Histogram{
		finished: make([]atomic.Int64, (maxBits-minBits)*subBuckets),
		subShift: bits.Len(uint(subBuckets)) - 1,
	}, nil
}

// Record counts a call that took d.
func (h *Histogram) Record(d time.Duration) { h.finished[h.index(d)].Add(1) }

// RecordCensored counts a call that was cut off after d, by a time limit or by a
// caller who went away: all that is known is that it would have taken longer.
func (h *Histogram) RecordCensored(d time.Duration) { h.cutCounts()[h.index(d)].Add(1) }

// Count is how many calls finished, Censored not among them.
func (h *Histogram) Count() int64 { return countAll(h.finished) }

// Censored is how many calls were cut off.
func (h *Histogram) Censored() int64 {
	if cut := h.cut.Load(); cut != nil {
		return countAll(*cut)
	}
	return 0
}

// Quantile is the time within which a share q of the calls finishes, rounded up
// to the end of its bucket. A call that was cut off counts as longer than where
// it was cut, but not how much longer (this is the Kaplan–Meier estimate; without
// such calls it is the plain quantile).
//
// It is 0 if no call was recorded or q is NaN, and the largest Duration if the
// calls that finished do not reach q: then the answer is longer than anything
// that was let run. A q below 0 counts as 0, the fastest call, and one above 1
// as 1, the slowest.
//
// It reads every bucket and does not allocate. Calls recorded while it runs may
// or may not be seen.
func (h *Histogram) Quantile(q float64) time.Duration {
	atRisk := float64(h.Count() + h.Censored())
	if atRisk == 0 || math.IsNaN(q) {
		return 0
	}
	// slack is more than the rounding of all the factors below and less than one
	// call in 10^11.
	const slack = 1e-11
	running := 1.0 // share of the calls that run longer than the buckets so far
	for b := range h.All() {
		if b.Finished > 0 {
			// More may have been recorded since atRisk was added up.
			running *= max(0, 1-float64(b.Finished)/atRisk)
			if running <= 1-min(q, 1)+slack {
				return b.Upper
			}
		}
		atRisk = max(1, atRisk-float64(b.Finished+b.Cut))
	}
	return math.MaxInt64
}

// All yields the buckets that have counted anything, shortest durations first.
func (h *Histogram) All() iter.Seq[HistogramBucket] {
	return func(yield func(HistogramBucket) bool) { h.each(yield) }
}

// Merge adds all that other has counted to h; other stays as it is. Both must
// have the same number of sub-buckets. Calls recorded while it runs may or may
// not be carried over.
func (h *Histogram) Merge(other *Histogram) error {
	if h.subShift != other.subShift {
		return fmt.Errorf("slidingwindow: a histogram of %d sub-buckets cannot be merged into one of %d",
			1<<other.subShift, 1<<h.subShift)
	}
	addAll(h.finished, other.finished)
	if cut := other.cut.Load(); cut != nil {
		addAll(h.cutCounts(), *cut)
	}
	return nil
}

// index is the bucket of d.
func (h *Histogram) index(d time.Duration) int {
	ns := min(max(int64(d), 1<<minBits), 1<<maxBits-1)
	octave := bits.Len64(uint64(ns)) - 1
	sub := int(ns>>(octave-h.subShift)) & (1<<h.subShift - 1) // the bits behind the leading one
	return (octave-minBits)<<h.subShift + sub
}

// upper is the end of bucket i: the first duration of the next one.
func (h *Histogram) upper(i int) time.Duration {
	octave, sub := i>>h.subShift, i&(1<<h.subShift-1)
	return time.Duration(1<<h.subShift+sub+1) << (minBits + octave - h.subShift)
}

// cutCounts returns the counts of cut-off calls, making them if need be.
func (h *Histogram) cutCounts() []atomic.Int64 {
	if cut := h.cut.Load(); cut != nil {
		return *cut
	}
	fresh := make([]atomic.Int64, len(h.finished))
	if !h.cut.CompareAndSwap(nil, &fresh) {
		return *h.cut.Load() // somebody else was first
	}
	return fresh
}

func (h *Histogram) each(yield func(HistogramBucket) bool) {
	var cut []atomic.Int64
	if p := h.cut.Load(); p != nil {
		cut = *p
	}
	for i := range h.finished {
		b := HistogramBucket{Finished: h.finished[i].Load()}
		if cut != nil {
			b.Cut = cut[i].Load()
		}
		if b.Finished == 0 && b.Cut == 0 {
			continue
		}
		b.Upper = h.upper(i)
		if !yield(b) {
			return
		}
	}
}

func countAll(counts []atomic.Int64) int64 {
	var n int64
	for i := range counts {
		n += counts[i].Load()
	}
	return n
}

func addAll(into, from []atomic.Int64) {
	for i := range from {
		if n := from[i].Load(); n != 0 {
			into[i].Add(n)
		}
	}
}
