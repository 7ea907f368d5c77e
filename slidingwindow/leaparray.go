package slidingwindow

import (
	"iter"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// LeapArray is a sliding window over counters of the caller's own type: a ring
// of time buckets, each holding one T.
//
// T is a struct of atomics whose zero value is empty. All buckets of one window
// cover between span−width and span, because the oldest bucket leaves whole.
// What is added to a bucket is never lost and never counted twice, whatever the
// interleaving at a bucket roll.
//
// Most callers want Current, to add to, and All, to add up. At and AllAt are for
// a caller that has read the clock (see Now) already; a time below 0 counts as 0
// there.
//
// It takes no lock and starts no goroutine; the one allocation is a bucket per
// bucket width, made by the first writer in it. LeapArray is safe for concurrent
// use and must not be copied. Make one with New.
type LeapArray[T any] struct {
	// cur is the newest bucket, nil before the first. Written by advance, only
	// towards later buckets, and always before anybody gets a pointer into the
	// bucket: so no bucket newer than cur has counted anything.
	cur   atomic.Pointer[leapBucket[T]]
	width int64
	// ring holds the bucket that begins at start in slot (start/width) mod len.
	// Written by seek, by CAS, only towards later buckets.
	//
	// A bucket is replaced as a whole, never cleared. Clearing would race with
	// whoever still holds it: what they add between the new start and the clearing
	// is lost, and what they added before it is read as new. This way a late writer
	// adds to its own old span, which is the truth.
	ring []atomic.Pointer[leapBucket[T]]
}

// leapBucket is the T of the time within [start, start+width).
type leapBucket[T any] struct {
	start int64
	value T
}

// New returns an empty window over span in the given number of buckets. span
// must be a positive multiple of buckets in nanoseconds, and buckets in
// [1, 10000].
func New[T any](span time.Duration, buckets int) (*LeapArray[T], error) {
	if err := checkShape(span, buckets); err != nil {
		return nil, err
	}
	return &LeapArray[T]{
		width: int64(span) / int64(buckets),
		ring:  make([]atomic.Pointer[leapBucket[T]], buckets),
	}, nil
}

// Current returns the T to add to now.
func (a *LeapArray[T]) Current() *T { return a.At(clock.Now()) }

// At returns the T of the bucket that now lies in, for one call to add to; to
// keep it longer is to count in the past. A time older than the newest bucket
// gets its own old bucket while that is part of the window. A time a whole span
// late gets an empty T that no reader sees.
func (a *LeapArray[T]) At(now int64) *T {
	if b := a.cur.Load(); b != nil && uint64(now-b.start) < uint64(a.width) {
		return &b.value
	}
	return a.seek(now)
}

// All yields the start and the T of every live bucket, oldest first. It reads
// the clock when the loop begins, so old buckets expire without any traffic.
// Buckets that nobody has written to are left out.
//
// A bucket that a writer replaces while the loop runs, because its time is over,
// is left out too.
func (a *LeapArray[T]) All() iter.Seq2[int64, *T] {
	return func(yield func(int64, *T) bool) { a.each(clock.Now(), yield) }
}

// AllAt is All at now. Time does not run backwards in it: for a now older than
// the newest bucket it is the window as of that bucket.
func (a *LeapArray[T]) AllAt(now int64) iter.Seq2[int64, *T] {
	return func(yield func(int64, *T) bool) { a.each(now, yield) }
}

// seek finds or makes the bucket of now, off the fast path.
func (a *LeapArray[T]) seek(now int64) *T {
	start := a.floor(now)
	if newest := a.cur.Load(); newest != nil && newest.start-start >= a.span() {
		return new(T)
	}
	slot := &a.ring[start/a.width%int64(len(a.ring))]
	for {
		b := slot.Load()
		switch {
		case b == nil || b.start < start:
			fresh := &leapBucket[T]{start: start}
			if !slot.CompareAndSwap(b, fresh) {
				continue // somebody else rolled it first
			}
			b = fresh
		case b.start > start:
			return new(T) // the ring moved on by a whole span meanwhile
		}
		a.advance(b)
		return &b.value
	}
}

// advance makes b the newest bucket unless a newer one is.
func (a *LeapArray[T]) advance(b *leapBucket[T]) {
	for {
		cur := a.cur.Load()
		if cur != nil && cur.start >= b.start || a.cur.CompareAndSwap(cur, b) {
			return
		}
	}
}

// each yields the live buckets of the window that ends with now's bucket, or
// with the newest one if that is later.
func (a *LeapArray[T]) each(now int64, yield func(int64, *T) bool) {
	newest := a.floor(now)
	if cur := a.cur.Load(); cur != nil && cur.start > newest {
		newest = cur.start
	}
	n := int64(len(a.ring))
	slot := newest / a.width % n
	start := newest - a.span()
	for range n {
		slot++
		if slot == n {
			slot = 0
		}
		start += a.width
		// Any other start is a bucket that expired, or one beyond newest.
		if b := a.ring[slot].Load(); b != nil && b.start == start && !yield(start, &b.value) {
			return
		}
	}
}

// floor is the start of the bucket that now lies in. The grid is absolute, so
// every goroutine computes the same one.
func (a *LeapArray[T]) floor(now int64) int64 {
	now = max(now, 0)
	return now - now%a.width
}

func (a *LeapArray[T]) span() int64 { return a.width * int64(len(a.ring)) }
