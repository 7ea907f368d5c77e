package adaptive

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// A limitWindow collects what a LimitWindow tells. Recording takes no lock: it is one
// atomic add. A window is never emptied; what is recorded after it was closed is lost
// to the limit, which goes by many calls.
type limitWindow struct {
	began int64
	// next is when somebody should look whether the window is over. Written by look.
	next atomic.Int64
	// peak is the most calls that were under way. Raised by whoever settles.
	peak  atomic.Int64
	drops atomic.Int64 // raised by whoever settles
	_     [64 - 32]byte
	// took has, for each bucket of tookGrid, how many calls are in it, 24 bits, and how
	// far beyond its beginning they are together, 40 bits, in 65 536ths of its width. So
	// one add keeps the mean exact. Raised by whoever settles.
	took [tookBuckets]atomic.Uint64
	// counts is what see found in took. Written by whoever has Limiter.looking.
	counts [tookBuckets]uint32
}

// tookGrid resolves times from a microsecond to a minute, in eighths of octaves.
var tookGrid = newGrid(longestTook, 26, 3)

const (
	longestTook = time.Minute
	tookBuckets = 26 << 3
	// The parts of limitWindow.took.
	tookOne    = 1 << 40
	tookFine   = 16 // bits of the distance
	tookBeyond = tookOne - 1
)

func newLimitWindow(now int64, look time.Duration) *limitWindow {
	w := &limitWindow{began: now}
	w.next.Store(clock.After(now, look))
	return w
}

// answered records a call that took so long.
func (w *limitWindow) answered(took int64) {
	ns := uint64(min(max(took, 1<<tookGrid.first), int64(longestTook)))
	octave := bits.Len64(ns) - 1
	i := (octave-int(tookGrid.first))<<3 + int(ns>>(octave-3))&7
	beyond := ns & (1<<(octave-3) - 1) << tookFine >> (octave - 3)
	w.took[i].Add(tookOne + beyond)
}

// crowd records that so many calls are under way.
func (w *limitWindow) crowd(inFlight int64) {
	if inFlight > w.peak.Load() {
		raise(&w.peak, inFlight)
	}
}

// see returns what the window has collected by now.
func (w *limitWindow) see(now int64) LimitWindow {
	counts := &w.counts
	seen := LimitWindow{
		At: now, Span: time.Duration(now - w.began),
		InFlight: int(w.peak.Load()), Drops: int(w.drops.Load()), counts: counts,
	}
	var means [tookBuckets]float64
	for i := range w.took {
		word := w.took[i].Load()
		counts[i] = uint32(word / tookOne)
		if counts[i] > 0 {
			seen.Calls += int(counts[i])
			lower, upper := tookGrid.upper(i-1), tookGrid.upper(i)
			means[i] = float64(lower) + float64(upper-lower)*float64(word&tookBeyond)/(1<<tookFine)/float64(counts[i])
		}
	}
	seen.Took = middle(counts, &means, seen.Calls)
	return seen
}

// middle is the mean of the calls without the fastest and the slowest tenth.
func middle(counts *[tookBuckets]uint32, means *[tookBuckets]float64, calls int) time.Duration {
	if calls == 0 {
		return 0
	}
	from, to := float64(calls)*0.1, float64(calls)*0.9
	var before, sum float64
	for i, n := range counts {
		after := before + float64(n)
		if in := min(after, to) - max(before, from); in > 0 {
			sum += in * means[i]
		}
		before = after
	}
	return time.Duration(sum / (to - from))
}
