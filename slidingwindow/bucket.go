package slidingwindow

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/stripe"
)

// busyCalls is how many calls per millisecond of its width make a bucket spread its
// counts: with fewer, two cores hardly ever meet on its cache line.
const busyCalls = 200

// before and after stand in slots that hold no bucket: before in those of a new
// window, after in those of a retired one. Nothing is ever added to them, and no
// time falls into them.
var (
	before = &bucket{start: math.MinInt64}
	after  = &bucket{start: math.MaxInt64}
)

// bucket counts the calls that finished within [start, start+width). It is
// replaced as a whole when its time is over, never cleared: a writer that still
// holds it adds to its own old span, which is the truth.
type bucket struct {
	start int64
	own   cell
	// spread takes the counts instead of own once the bucket, or the one before it, is
	// busy. Set before the bucket is published or by the call that makes it busy, and
	// never unset.
	spread atomic.Pointer[[stripe.Cells]cell]
	// closed is the sum of the buckets before this one while this one is the
	// newest. Written by whoever sums and finds it missing or void.
	closed atomic.Pointer[sealed]
	// gone says that the bucket has left the ring: from then on whoever adds to it
	// folds it into the totals. Set by retire, before it folds itself.
	gone atomic.Bool
}

// sealed is a sum of closed buckets, good as long as Counts.late is late.
type sealed struct {
	late uint64
	sums Sums
}

// tally is one set of counters. Writers raise total first and readers read it
// last, so no reader sees failures or slow above it. They are never lowered, so
// that holds for a reader that still holds a bucket which leaves the ring.
type tally struct {
	total, failures, slow, gaveUp atomic.Int64
}

// cell is a tally of a bucket and how much of it the totals have; one cache line.
type cell struct {
	tally
	folded tally // written by carry, by CAS, upwards
}

// newBucket makes the bucket that begins at start, after newest.
func newBucket(start int64, newest *bucket, width int64) *bucket {
	b := &bucket{start: start}
	if newest.busy(width) {
		b.spread.Store(new([stripe.Cells]cell))
	}
	return b
}

// sums adds up the cells that count.
func (b *bucket) sums() Sums {
	s := b.own.sums()
	spread := b.spread.Load()
	if spread == nil {
		return s
	}
	for i := range spread {
		t := &spread[i].tally
		s.Failures += t.failures.Load()
		s.Slow += t.slow.Load()
		s.GaveUp += t.gaveUp.Load()
		s.Total += t.total.Load()
	}
	return s
}

// busy reports whether the bucket saw more calls than one cache line serves well.
func (b *bucket) busy(width int64) bool {
	return b.sums().Total >= busyAt(width)
}

// busyAt is how many calls make a bucket of that width busy.
func busyAt(width int64) int64 {
	return max(1, width/int64(time.Millisecond)) * busyCalls
}

// retire takes a bucket that has left the ring out of service. It must not be the
// newest any more: a writer that still finds it there does not look at gone.
func (b *bucket) retire(into *Totals) {
	if into == nil || b == before || b == after {
		return
	}
	b.gone.Store(true)
	b.fold(into)
}

// fold adds to the totals what they do not have yet of this bucket.
func (b *bucket) fold(into *Totals) {
	b.own.fold(into)
	if spread := b.spread.Load(); spread != nil {
		for i := range spread {
			spread[i].fold(into)
		}
	}
}

func (t *tally) add(e Event) {
	if e&NoVerdict != 0 {
		if e&Slow != 0 {
			t.gaveUp.Add(1)
		}
		return
	}
	t.total.Add(1)
	if e&Failed != 0 {
		t.failures.Add(1)
	}
	if e&Slow != 0 {
		t.slow.Add(1)
	}
}

func (t *tally) sums() Sums {
	s := Sums{Failures: t.failures.Load(), Slow: t.slow.Load(), GaveUp: t.gaveUp.Load()}
	s.Total = t.total.Load()
	return s
}

// fold carries over what has been counted by now. The totals' own total goes up
// first, and not less than the failures and slow ones that follow it.
func (c *cell) fold(into *Totals) {
	s := c.sums()
	carry(s.Total, &c.folded.total, &into.total)
	carry(s.Failures, &c.folded.failures, &into.failures)
	carry(s.Slow, &c.folded.slow, &into.slow)
	carry(s.GaveUp, &c.folded.gaveUp, &into.gaveUp)
}

// carry adds to into how far count is ahead of done. Whoever moves done forward
// adds the difference, so any number of goroutines may carry the same count.
func carry(count int64, done, into *atomic.Int64) {
	for have := done.Load(); have < count; have = done.Load() {
		if done.CompareAndSwap(have, count) {
			into.Add(count - have)
			return
		}
	}
}
