package ratelimit

import (
	"math"
	"math/big"
	"math/bits"
	"time"
)

// A scale turns time into tokens. It counts both in units, of which a token has
// unit and a nanosecond brings mul/2^59, so that a bucket's whole state is one
// position on an axis of units: see bucket.
//
// A rate of at most 16 tokens in some whole number of nanoseconds (when the fraction
// is reduced: 7/s, 3000000/s, 150/s, 1/d, 10000000000/s) is exact: there, a token has
// as many units as the fraction has nanoseconds, and mul is whole. Any other rate
// gets 8 to 16 units a nanosecond, and mul is rounded down; so in the four years that
// a scale lasts it is behind by less than 1.25 units, which is less than a sixth of
// a nanosecond, and never ahead.
type scale struct {
	epoch int64  // the time at position 0
	mul   uint64 // units in a nanosecond, times 2^59; between 2^59 and 2^63
	unit  int64  // units in a token
}

const (
	fraction = 59 // binary places of scale.mul
	// maxUnits is how many units a nanosecond brings at most.
	maxUnits = 16
	// maxSpan is how far from its epoch a scale reaches: four years. Its positions then
	// stay below 2^61.
	maxSpan = int64(4 * 365 * day)
	// maxFill is how long a bucket may take to fill, a debt to be paid and a caller to
	// wait.
	maxFill = 2 * 365 * day
	// maxLevel is what any level, debt or cost is below, so that sums and differences
	// of a few of them and a position stay well within an int64.
	maxLevel = maxUnits * int64(maxFill)
)

// newScale returns the scale of rate tokens a nanosecond, more than 0 and at most
// maxPerNano, that begins at epoch.
func newScale(rate *big.Rat, epoch int64) scale {
	s := scale{epoch: epoch}
	if n := rate.Num(); n.IsInt64() && n.Int64() <= maxUnits && rate.Denom().IsInt64() {
		s.mul, s.unit = n.Uint64()<<fraction, rate.Denom().Int64()
		return s
	}
	perUnit, half := new(big.Rat).Set(rate), big.NewRat(maxUnits/2, 1)
	for s.unit = 1; perUnit.Cmp(half) < 0; s.unit <<= 1 {
		perUnit.Add(perUnit, perUnit)
	}
	fixed := new(big.Int).Lsh(perUnit.Num(), fraction)
	s.mul = fixed.Quo(fixed, perUnit.Denom()).Uint64()
	return s
}

// perNano is the rate in tokens a nanosecond. r is valid and a real rate.
func (r Rate) perNano() *big.Rat { return big.NewRat(r.Tokens, int64(r.Per)) }

// within is how many tokens come in d, at most.
func (r Rate) within(d time.Duration) int64 {
	if r.IsUnlimited() || r.IsBlocked() {
		return math.MaxInt64
	}
	hi, lo := bits.Mul64(uint64(d), uint64(r.Tokens))
	if hi >= uint64(r.Per) {
		return math.MaxInt64
	}
	n, _ := bits.Div64(hi, lo, uint64(r.Per))
	return int64(min(n, math.MaxInt64))
}

// at is the position that time has produced by now: 0 before the epoch, and no more
// than after maxSpan. It rises with every nanosecond.
func (s *scale) at(now int64) int64 {
	t := now - s.epoch
	if uint64(t) > uint64(maxSpan) {
		t = min(max(t, 0), maxSpan)
	}
	hi, lo := bits.Mul64(uint64(t), s.mul)
	return int64(hi<<(64-fraction) | lo>>fraction)
}

// ended reports whether now is beyond the scale's reach.
func (s *scale) ended(now int64) bool { return now-s.epoch > maxSpan }

// span is how long it takes to produce so many units, from the epoch: the first
// nanosecond at which at is no less. It is 0 for none.
func (s *scale) span(units int64) time.Duration {
	if units <= 0 {
		return 0
	}
	x := uint64(units)
	q, rest := bits.Div64(x>>(64-fraction), x<<fraction, s.mul)
	if rest > 0 {
		q++
	}
	return time.Duration(q)
}

// between is how long it takes from position from, which at has returned, until at
// reaches to.
func (s *scale) between(from, to int64) time.Duration { return s.span(to) - s.span(from) }
