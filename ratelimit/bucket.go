package ratelimit

import (
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stripe"
)

// A bucket holds up to burst tokens, fills at the rate of its scale, and gives
// tokens while it has them: the generic cell rate algorithm of ITU-T I.371, told in
// tokens instead of times.
//
//	                        level
//	                 ├──────────────────┤
//	─────┬───────────┬──────────────────┬───────────▶ units
//	  produced     used              produced
//	  − burst                      by now: at(now)
//
// Its whole state is one position, used: all tokens before it are gone. Taking moves
// used to the right, up to what has been produced; a bucket that has not been used
// for long is full because nothing counts that lies more than burst behind. Since
// used only moves by what is taken or given back, no clock, however late or wrong,
// makes tokens out of the same time twice; and saying no writes nothing.
//
// Giving back moves used to the left, but only by tokens that would be there now if
// they had never been taken. For that, every take remembers the position where it
// ended, counted in tokens taken, without those given back: its mark. See giveBack.
type bucket struct {
	scale
	burst int64 // units that it holds

	// What is above is only read; a line that nobody writes keeps it apart.
	_ [2 * stripe.Line]byte
	// used is the position, or frozen. Takes raise it and giveBack lowers it by
	// CompareAndSwap; handOver freezes it, and nobody touches it again.
	used atomic.Int64
	// claimed and returned are the units given back. giveBack raises claimed before
	// it lowers used, and returned after; so claimed is never behind and returned
	// never ahead. Takes read returned before used. What goes back as if it had never
	// been taken is in neither.
	claimed, returned atomic.Int64
	heir              atomic.Pointer[heir] // set by handOver, after frozen
	_                 [stripe.Line]byte
}

// frozen is where no bucket ever is: beyond all that can be produced, so whoever
// reads it is refused, and looks why.
const frozen = 1 << 62

// take takes n tokens, between 1 and what can be above floor, and leaves at least
// floor units. lack is how many units are missing for it, at most 0 if it took them.
// ok is false if the bucket was handed over, or its scale has ended.
func (b *bucket) take(n, floor, now int64) (lack, mark int64, ok bool) {
	if b.ended(now) {
		return 0, 0, false
	}
	v, cost := b.at(now), n*b.unit
	for {
		returned := b.returned.Load()
		used := b.used.Load()
		end := max(used, v-b.burst) + cost
		if lack = end - (v - floor); lack > 0 {
			return lack, v, used != frozen
		}
		if b.used.CompareAndSwap(used, end) {
			return lack, end + returned, true
		}
	}
}

// look is how many units are there, below 0 if more has been taken than produced, and
// what has been produced. ok is as for take.
func (b *bucket) look(now int64) (level, v int64, ok bool) {
	v = b.at(now)
	used := b.used.Load()
	return min(v-used, b.burst), v, used != frozen && !b.ended(now)
}

// level is how many units are there.
func (b *bucket) level(now int64) (level int64, ok bool) {
	level, _, ok = b.look(now)
	return level, ok
}

// reserve takes n tokens, between 1 and what the bucket holds, that will all be there
// by latest, or are: when at reaches end. lack is how many units are missing now, and 0
// if it took them. The bucket is not frozen and its scale has not ended. Unlike that of
// a take, the mark is rather too high than too low, for it says when to go.
func (b *bucket) reserve(n, latest, now int64) (end, lack, mark int64) {
	v, cost := b.at(now), n*b.unit
	last := max(v, b.at(latest))
	for {
		used := b.used.Load()
		end = max(used, v-b.burst) + cost
		if end > last {
			return end, end - v, v
		}
		if claimed := b.claimed.Load(); b.used.CompareAndSwap(used, end) {
			return end, 0, end + claimed
		}
	}
}

// withdraw gives back cost units of a reservation whose tokens will be there when at
// reaches end. It does nothing and returns false if they are there. Those behind it
// have to move up by cost.
func (b *bucket) withdraw(cost, end int64, now func() int64) bool {
	for {
		used := b.used.Load()
		if b.at(now()) >= end { // looked at after used: see giveBack
			return false
		}
		if b.used.CompareAndSwap(used, used-cost) {
			return true
		}
	}
}

// debit takes n tokens, no more than the bucket and the debt hold, whether they are
// there or not, but takes the level no lower than debt units below 0.
func (b *bucket) debit(n, debt, now int64) (ok bool) {
	if b.ended(now) {
		return false
	}
	v, cost := b.at(now), n*b.unit
	for {
		used := b.used.Load()
		if used == frozen {
			return false
		}
		end := min(max(used, v-b.burst)+cost, v+debt)
		if end <= used || b.used.CompareAndSwap(used, end) {
			return true
		}
	}
}

// giveBack gives back cost units of a take that ended at mark, but no more than
// would be there if it had never been: what has run over the brim since, or would
// have, is lost.
//
// If nothing has been taken since, all can go back, at any time, and it is as if
// nobody had ever come. Otherwise later takes lie between mark and used + claimed. Of
// the take's own units, which end at mark, those are still worth something that lie,
// moved back by all that others have given back, within burst of what is produced by
// now:
//
//	refund = min(cost, mark − claimed − (at(now) − burst)), at least 0
//
// That is never too much. It may be too little, since it goes as if the later takes had
// done nothing to keep the bucket from running over, and as if all that was given back
// had been taken before; after as long as the bucket takes to fill nothing is left.
// Time is read after used: if somebody takes in between, who may have seen the bucket
// full, the CompareAndSwap fails.
func (b *bucket) giveBack(cost, mark int64, now func() int64) {
	for {
		used := b.used.Load()
		if used == frozen {
			if b, cost, mark = b.follow(cost, mark); b == nil {
				return
			}
			continue
		}
		claimed := b.claimed.Load()
		if used+claimed == mark {
			if b.used.CompareAndSwap(used, used-cost) {
				return
			}
			continue
		}
		refund := min(cost, mark-claimed-(b.at(now())-b.burst))
		if refund <= 0 {
			return
		}
		if !b.claimed.CompareAndSwap(claimed, claimed+refund) {
			continue
		}
		if b.used.CompareAndSwap(used, used-refund) {
			b.returned.Add(refund)
			return
		}
		b.claimed.Add(-refund)
	}
}

// undo gives back a whole take.
func (b *bucket) undo(n, mark int64) { b.giveBack(n*b.unit, mark, clock.Now) }
