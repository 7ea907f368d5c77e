package ratelimit

import (
	"math/bits"
	"runtime"
)

// heir is where a bucket's tokens went when its limiter was given another rate.
type heir struct {
	bucket *bucket // nil if what is given back has nowhere to go
	// How the old one ended: used and claimed, in its units.
	used, claimed int64
	// start is used of the new one when it began, in its units.
	start int64
}

// A Level says what becomes of the tokens in a limiter when its configuration
// changes.
type Level uint8

const (
	// KeepLevel keeps the number of tokens, as far as the new burst can hold them.
	KeepLevel Level = iota + 1
	// ProportionalLevel keeps the share of the burst that is there: half full stays
	// half full. A debt is kept as it is.
	ProportionalLevel
	// ResetLevel begins anew, with as many tokens as a new limiter has.
	ResetLevel
)

// String returns "keep", "proportional" or "reset".
func (l Level) String() string {
	switch l {
	case KeepLevel:
		return "keep"
	case ProportionalLevel:
		return "proportional"
	case ResetLevel:
		return "reset"
	}
	return "invalid"
}

// MarshalText returns the text of String.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// handOver ends b, and begins next with what b has, and what those who are queued
// wait for besides. next is one that nobody knows yet; its epoch is now. The caller
// lets the queue take its tokens again, and then calls inherit.
func (b *bucket) handOver(next *bucket, how Level, queued, now int64) (used int64) {
	used, v := b.used.Swap(frozen), b.at(now)
	if b.ended(now) { // what came after its end fills it, if it comes to that
		late := b.scale
		late.epoch += maxSpan
		v += late.at(now)
	}
	level := min(v-(used-queued), b.burst)
	if how == ProportionalLevel && level > 0 {
		level = rescale(level, b.burst, next.burst)
	} else {
		level = rescale(level, b.unit, next.unit)
	}
	next.used.Store(-level)
	return used
}

// inherit lets what is given back to b, which ended at used, go to next.
func (b *bucket) inherit(next *bucket, used int64) {
	b.heir.Store(&heir{next, used, b.claimed.Load(), next.used.Load()})
}

// end ends b. What it has, and what is given back to it, is lost.
func (b *bucket) end() {
	b.used.Store(frozen)
	b.heir.Store(new(heir))
}

// follow turns what is to be given back to b, which is frozen, into what is to be
// given back to its heir; nil if nothing is.
func (b *bucket) follow(cost, mark int64) (*bucket, int64, int64) {
	h := b.heir.Load()
	for h == nil { // for as long as handOver takes from freezing to here
		runtime.Gosched()
		h = b.heir.Load()
	}
	if h.bucket == nil {
		return nil, 0, 0
	}
	after := -rescale(mark-h.claimed-h.used, b.unit, h.bucket.unit) // taken since
	return h.bucket, rescale(cost, b.unit, h.bucket.unit), h.start - after
}

// rescale returns x × to / from, rounded down, and at most ±maxLevel.
func rescale(x, from, to int64) int64 {
	sign, size := int64(1), uint64(x)
	if x < 0 {
		sign, size = -1, uint64(-x)
	}
	hi, lo := bits.Mul64(size, uint64(to))
	if hi >= uint64(from) {
		return sign * maxLevel
	}
	q, rest := bits.Div64(hi, lo, uint64(from))
	if sign < 0 && rest > 0 {
		q++
	}
	return sign * int64(min(q, uint64(maxLevel)))
}
