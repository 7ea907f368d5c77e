package slidingwindow

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stripe"
)

// Counts is the time window of a circuit breaker: calls, failures and slow calls
// over the last span, in equal buckets.
//
// It promises that no record is lost and none is counted twice, whatever the
// interleaving at a bucket roll, and that no reader sees Failures or Slow above
// Total. What it reports covers between span−width and span, because the oldest
// bucket leaves whole. Nothing saturates.
//
// Most callers want Record and Sum. RecordAt and SumAt are for a caller that has
// read the clock (see Now) already.
//
// Record of a fast success is one atomic add: no lock, no allocation except one
// bucket per bucket width. A busy bucket, and one that follows it, spreads its
// counters over several cache lines; an idle window stays under 400 bytes. It starts
// no goroutine, is safe for concurrent use and must not be copied. Make one with
// NewCounts.
type Counts struct {
	// cur is the newest bucket, or the closed marker after Retire. Written by
	// advance and Retire; it only moves to later buckets.
	cur atomic.Pointer[bucket]
	// late counts records that went into a bucket other than cur. Whoever adds to
	// such a bucket raises it afterwards, which makes every older sealed sum void.
	late  atomic.Uint64
	width int64
	busy  int64 // calls that make a bucket busy
	total *Totals
	ring  []atomic.Pointer[bucket] // slot (start/width) mod len; replaced by CAS, never cleared
}

// NewCounts returns an empty window over span in the given number of buckets.
// span must be a positive multiple of buckets, and buckets in [1, 10000].
func NewCounts(span time.Duration, buckets int) (*Counts, error) {
	return NewCountsInto(nil, span, buckets)
}

// NewCountsInto is NewCounts, and every record that leaves the window is added
// to total, once and exactly: total plus what the window holds is all that was
// ever recorded. A nil total forgets instead.
func NewCountsInto(total *Totals, span time.Duration, buckets int) (*Counts, error) {
	if err := checkShape(span, buckets); err != nil {
		return nil, err
	}
	width := int64(span) / int64(buckets)
	c := &Counts{width: width, busy: busyAt(width), total: total, ring: make([]atomic.Pointer[bucket], buckets)}
	c.cur.Store(before)
	for i := range c.ring {
		c.ring[i].Store(before)
	}
	return c, nil
}

// Record counts one finished call now.
func (c *Counts) Record(e Event) { c.RecordAt(clock.Now(), e) }

// RecordAt counts one call that finished at now. A record that comes late goes
// to the bucket of its own time; one that comes a whole span late is no longer
// part of the window and goes straight to the totals. A time below 0 counts as 0.
func (c *Counts) RecordAt(now int64, e Event) {
	if e != 0 && e&(NoVerdict|Slow) == NoVerdict {
		return
	}
	b := c.cur.Load()
	if uint64(now-b.start) >= uint64(c.width) {
		if b = c.roll(now); b == nil {
			if c.total != nil {
				c.total.Record(e)
			}
			return
		}
	}
	t := &b.own.tally
	if spread := b.spread.Load(); spread != nil {
		t = &spread[stripe.Index()].tally
	}
	switch {
	case e != 0:
		t.add(e)
	case t.total.Add(1) == c.busy:
		b.spread.CompareAndSwap(nil, new([stripe.Cells]cell))
	}
	// The order matters: whoever sums after cur moved on has either seen the add
	// above, or will see late change.
	if c.cur.Load() != b {
		c.late.Add(1)
		if b.gone.Load() {
			b.fold(c.total)
		}
	}
}

// Sum is what the window holds now. It expires old buckets at the time of the
// call, so it needs no traffic to come down.
func (c *Counts) Sum() Sums { return c.SumAt(clock.Now()) }

// SumAt is what the window holds at now. Time does not run backwards in it: for
// a now older than the newest record it is the window as of that record.
//
// While records keep coming it reads the current bucket and one sum of the
// closed ones, not all buckets.
func (c *Counts) SumAt(now int64) Sums {
	b := c.cur.Load()
	if b == before || b == after || now-b.start >= c.width {
		return c.sumFrom(c.floor(now), math.MaxInt64-1)
	}
	// late is read before the buckets are, so that a record which the sum missed
	// makes it void.
	late := c.late.Load()
	s := b.closed.Load()
	if s == nil || s.late != late {
		s = &sealed{late: late, sums: c.sumFrom(c.floor(b.start), b.start-1)}
		b.closed.Store(s)
	}
	return s.sums.Plus(b.sums())
}

// Held is all that Retire would hand to the totals now: what the window holds and
// what has expired but still waits for its bucket to be replaced. The totals plus
// Held are all that was ever recorded, if read in this order and nothing is
// recorded meanwhile.
func (c *Counts) Held() Sums {
	var s Sums
	for i := range c.ring {
		s = s.Plus(c.ring[i].Load().sums())
	}
	return s
}

// LastAt is the start of the newest bucket: about when the last record came, or
// 0 if none ever did.
func (c *Counts) LastAt() int64 {
	if b := c.cur.Load(); b != before && b != after {
		return b.start
	}
	return 0
}

// Retire empties the window for good: all it holds goes to the totals, and so
// does whatever is still recorded. It is what the owner calls when another
// window takes this one's place.
func (c *Counts) Retire() {
	// Records that find the marker, in cur or in a slot, go to the totals. Those
	// that hold a bucket already will see that cur is another one.
	c.cur.Store(after)
	for i := range c.ring {
		c.ring[i].Swap(after).retire(c.total)
	}
}

// roll returns the bucket of now, making it if need be, or nil if now lies
// before the ring or the window has retired.
func (c *Counts) roll(now int64) *bucket {
	start := max(now, 0)
	start -= start % c.width
	slot := &c.ring[int((start/c.width)%int64(len(c.ring)))]
	var b *bucket
	left := before
	for b == nil {
		have := slot.Load()
		switch {
		case have.start == start:
			b = have
		case have.start > start:
			return nil
		default:
			fresh := newBucket(start, c.cur.Load(), c.width)
			if slot.CompareAndSwap(have, fresh) {
				b, left = fresh, have
			}
		}
	}
	c.advance(b)
	left.retire(c.total) // only now is it certain that left is not the newest
	return b
}

// advance makes b the newest bucket unless a newer one is.
func (c *Counts) advance(b *bucket) {
	for {
		cur := c.cur.Load()
		if cur.start >= b.start || c.cur.CompareAndSwap(cur, b) {
			return
		}
	}
}

// floor is the earliest bucket start that a window ending at now covers.
func (c *Counts) floor(now int64) int64 {
	now = max(now, 0)
	return now - now%c.width - c.width*int64(len(c.ring)-1)
}

// sumFrom adds up the buckets that start within [from, to].
func (c *Counts) sumFrom(from, to int64) Sums {
	var s Sums
	for i := range c.ring {
		if b := c.ring[i].Load(); b.start >= from && b.start <= to {
			s = s.Plus(b.sums())
		}
	}
	return s
}
