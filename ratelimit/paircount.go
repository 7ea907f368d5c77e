package ratelimit

import (
	"math/bits"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/stripe"
)

// A pairCount counts tokens in windows of time that follow one another, but keeps
// only the window that is running and the one before. From these two it works out how
// many tokens the last width nanoseconds have seen, as if those of the window before
// had been spread over it evenly:
//
//	               ┊←──── the last width ────→┊
//	┌──────────────┊──────────────┬───────────┊──────────────┐
//	│       before ┊              │    in     ┊              │
//	└──────────────┊──────────────┴───────────┊──────────────┘
//	                              ├── into ───┤
//
//	used = in + before × (width − into) / width
//
// All of it is one word, so that rolling to the next window and adding are one step:
// no call is counted in the wrong window, and none is lost or counted twice.
type pairCount struct {
	width int64 // of a window
	epoch int64 // when the first one began

	// What is above is only read; a line that nobody writes keeps it apart.
	_ [2 * stripe.Line]byte
	// word packs the window's number 16 | before 24 | in 24, or is sealed. It is
	// changed by CompareAndSwap; follow seals it, and nobody touches it again.
	word atomic.Uint64
	// latest is the number of the latest window that word has come to, or is about to
	// come to. It is raised before word and read after it, so it is never behind; so
	// 16 bits of the number are enough to know which window word is about, and a call
	// whose time is of an earlier one, because it was held up, sees the start of this.
	latest atomic.Int64
	_      [stripe.Line]byte
}

const (
	pairBits = 24
	pairMask = 1<<pairBits - 1
	// maxPair is the largest count.
	maxPair = pairMask - 1
	// sealed is no word of a pairCount: its counts are more than maxPair.
	sealed = ^uint64(0)
)

func newPairCount(width, epoch int64) *pairCount { return &pairCount{width: width, epoch: epoch} }

// A sight is the counts as they are at a time.
type sight struct {
	time       int64 // since the epoch
	number     int64 // of the window that is running
	before, in int64
}

// pack is s as a word.
func (s sight) pack() uint64 {
	return uint64(s.number)<<(2*pairBits) | uint64(s.before)<<pairBits | uint64(s.in)
}

// see returns the word, the latest window, and what the two come to at now.
func (c *pairCount) see(now int64) (word uint64, latest int64, s sight) {
	word = c.word.Load()
	latest = c.latest.Load()
	s.time = max(now-c.epoch, latest*c.width)
	s.number = s.time / c.width
	switch s.number - numberOf(word, latest) {
	case 0:
		s.before, s.in = int64(word>>pairBits&pairMask), int64(word&pairMask)
	case 1:
		s.before = int64(word & pairMask)
	}
	return word, latest, s
}

// numberOf is the number of the window that word is about: latest or, while somebody
// rolls, an earlier one.
func numberOf(word uint64, latest int64) int64 {
	return latest - int64(uint16(latest)-uint16(word>>(2*pairBits)))
}

// take counts n tokens if with them, and ahead more, no more than limit are used.
// ok is false if the counts are sealed.
func (c *pairCount) take(n, ahead, limit, now int64) (s sight, taken, ok bool) {
	for {
		word, latest, s := c.see(now)
		if word == sealed {
			return s, false, false
		}
		if !c.fits(s, n+ahead, limit) {
			return s, false, true
		}
		s.in += n
		if c.change(word, latest, s) {
			return s, true, true
		}
	}
}

// add counts n tokens whatever the limit, up to maxPair.
func (c *pairCount) add(n, now int64) {
	for {
		word, latest, s := c.see(now)
		if word == sealed {
			return
		}
		s.in = min(s.in+n, maxPair)
		if c.change(word, latest, s) {
			return
		}
	}
}

// change puts s in the place of word.
func (c *pairCount) change(word uint64, latest int64, s sight) bool {
	if s.number > latest && !c.latest.CompareAndSwap(latest, s.number) {
		return false
	}
	return c.word.CompareAndSwap(word, s.pack())
}

// giveBack takes n tokens out again that were counted at a time since the epoch, from
// whichever count they are in by now.
func (c *pairCount) giveBack(n, time int64) {
	for {
		word := c.word.Load()
		if word == sealed {
			return
		}
		place := 0
		switch numberOf(word, c.latest.Load()) - time/c.width {
		case 0:
		case 1:
			place = pairBits
		default: // it counts no more
			return
		}
		there := word >> place & pairMask
		if c.word.CompareAndSwap(word, word-min(uint64(n), there)<<place) {
			return
		}
	}
}

// follow seals the counts and returns others, of windows of another width, which have
// as many tokens used now.
func (c *pairCount) follow(width, now int64) *pairCount {
	for {
		word, _, s := c.see(now)
		if !c.word.CompareAndSwap(word, sealed) {
			continue
		}
		next := newPairCount(width, now)
		next.word.Store(sight{before: min(c.used(s), maxPair)}.pack())
		return next
	}
}

// fits reports whether n more tokens are within limit: whether
// used + n ≤ limit, without dividing.
func (c *pairCount) fits(s sight, n, limit int64) bool {
	free := limit - s.in - n
	if free < 0 {
		return false
	}
	freeHi, freeLo := bits.Mul64(uint64(free), uint64(c.width))
	hi, lo := bits.Mul64(uint64(s.before), uint64(c.left(s)))
	return hi < freeHi || hi == freeHi && lo <= freeLo
}

// left is how much of the running window is left.
func (c *pairCount) left(s sight) int64 { return (s.number+1)*c.width - s.time }

// used is how many tokens are used, rounded up.
func (c *pairCount) used(s sight) int64 {
	return s.in - rescale(-s.before, c.width, c.left(s)) // as rescale rounds down
}

// untilFit is how long it takes until n tokens fit which do not yet, if nothing is
// counted until then. n is at most limit.
func (c *pairCount) untilFit(s sight, n, limit int64) int64 {
	if free := limit - s.in - n; free >= 0 {
		return c.left(s) - rescale(c.width, s.before, free)
	}
	// Not in this window. In the next, what is in this one counts as before.
	return c.left(s) + c.width - rescale(c.width, s.in, limit-n)
}

// untilEmpty is how long it takes until nothing is used, if nothing is counted.
func (c *pairCount) untilEmpty(s sight) int64 {
	switch {
	case s.in > 0:
		return c.left(s) + c.width
	case s.before > 0:
		return c.left(s)
	}
	return 0
}
