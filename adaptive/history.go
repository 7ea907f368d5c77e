package adaptive

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A shape is how much a history remembers, and how finely.
type shape struct {
	octaves, shift int // of its grid
	windows        int // that the short span is cut into, at most 64
	sheets         int // that the long span is cut into
}

var (
	fullShape    = shape{octaves: 22, shift: 3, windows: 10, sheets: 10}
	compactShape = shape{octaves: 13, shift: 2, windows: 4, sheets: 4}
)

// A history is how long calls took: lately in windows, of a second by default, and
// before that in sheets, of half a minute, to which windows are added when they
// leave the short span.
//
// Recording takes no lock: it is one atomic add in the newest window. A window is
// never emptied; a call that is recorded late is in the window that it found, and lost
// only if its goroutine was held up for the whole short span in the middle of that.
type history struct {
	newest atomic.Pointer[window] // the last of ring. Written under mu.

	mu         sync.Mutex
	shape      shape
	grid       grid // of windows to come
	width      int64
	sheetWidth int64
	ring       []*window // oldest first; those of the short span
	sheets     []sheet   // that of a time is in slot (time / sheetWidth) mod len
	lastOutage int64     // when the last window began that left the ring as part of an outage
	inOutage   bool      // the last window that left the ring was one
	retired    int64     // calls that finished in windows that have left the ring
}

// A window counts the calls that ended in one short time, by how long they took.
type window struct {
	start, end int64
	grid       grid
	timedOut   atomic.Uint32 // by the Timeout's own limit; they are in cut too
	finished   []atomic.Uint32
	// cut counts the calls that were cut off, nil before the first. Written once, by
	// CAS.
	cut atomic.Pointer[[]atomic.Uint32]
}

// A sheet is the windows of a longer time put together. Guarded by history.mu.
type sheet struct {
	index         int64 // which one it is since the clock began
	grid          grid
	timedOut      uint32
	finished, cut []uint32 // nil before the first
}

// never is a time so long ago that nothing is near it, and nothing overflows.
const never = -1 << 62

// form sets h up, before it is used: windows for the short span, sheets for the
// long one, and a grid that resolves limits of up to longest.
func (h *history) form(s shape, longest, short, long time.Duration, now int64) {
	h.shape, h.grid = s, newGrid(longest, s.octaves, s.shift)
	h.width, h.sheetWidth = int64(short)/int64(s.windows), int64(long)/int64(s.sheets)
	h.ring, h.sheets = make([]*window, 0, s.windows), make([]sheet, s.sheets)
	h.lastOutage = never
	for i := range h.sheets {
		h.sheets[i].index = never
	}
	h.push(now)
}

// regrid makes windows to come resolve limits of up to longest. Those there are keep
// what they have counted.
func (h *history) regrid(longest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.grid = newGrid(longest, h.shape.octaves, h.shape.shift)
}

// finished is how many calls have finished, since the beginning.
func (h *history) finished() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := h.retired
	for _, w := range h.ring {
		n += w.answered()
	}
	return n
}

// record counts a call.
func (h *history) record(s Sample) {
	w := h.newest.Load()
	if s.At >= w.end {
		w = h.roll(s.At)
	}
	switch s.End {
	case Finished:
		w.finished[w.grid.index(s.Took)].Add(1)
	case TimedOut:
		w.timedOut.Add(1)
		w.cutCounts()[w.grid.index(s.Limit)].Add(1)
	case CutShort:
		w.cutCounts()[w.grid.index(s.Took)].Add(1)
	}
}

// roll returns the window for calls that end at now, when the newest one is over.
// While somebody else is at the windows it is still the newest: nobody waits here.
func (h *history) roll(now int64) *window {
	if !h.mu.TryLock() {
		return h.newest.Load()
	}
	defer h.mu.Unlock()
	if w := h.newest.Load(); now < w.end {
		return w
	}
	return h.push(now)
}

// push makes the window of now the newest. The caller holds mu, as for what
// follows.
func (h *history) push(now int64) *window {
	w := &window{start: now - now%h.width, grid: h.grid, finished: make([]atomic.Uint32, h.grid.n)}
	w.end = w.start + h.width
	for len(h.ring) > 0 && h.ring[0].start <= w.start-h.span() {
		h.retire()
	}
	h.ring = append(h.ring, w)
	h.newest.Store(w)
	return w
}

// retire takes the oldest window out of the ring, and adds it to the sheet of its
// time unless it belongs to an outage.
func (h *history) retire() {
	w, outages := h.ring[0], h.outages()
	spoilt := h.spoilt(w, outages)
	h.ring = slices.Delete(h.ring, 0, 1)
	h.retired += w.answered()
	if h.inOutage = outages&1 != 0; h.inOutage {
		h.lastOutage = w.start
	}
	index := w.start / h.sheetWidth
	if s := h.sheetAt(index); !spoilt && s.index <= index {
		s.add(w, index)
	}
}

// outages tells which windows of the ring, one bit each, belong to an outage: to a
// row of windows in each of which more calls timed out than finished, with at least
// three such calls in all. At low traffic, one call that timed out is no outage.
func (h *history) outages() (found uint64) {
	const row = 3
	var calls uint32
	var these uint64
	if h.inOutage {
		calls = row // those before them were
	}
	for i, w := range h.ring {
		if timedOut := w.timedOut.Load(); int64(timedOut) > w.answered() {
			these |= 1 << i
			if calls += timedOut; calls >= row {
				found |= these
			}
		} else {
			calls, these = 0, 0
		}
	}
	return found
}

// spoilt reports whether w holds calls that an outage cut off: calls timed out in
// it, and an outage is at most three seconds away.
func (h *history) spoilt(w *window, outages uint64) bool {
	near := 3 * h.second()
	if w.timedOut.Load() == 0 {
		return false
	}
	if w.start-h.lastOutage <= near {
		return true
	}
	for i, v := range h.ring {
		if d := v.start - w.start; outages>>i&1 != 0 && -near <= d && d <= near {
			return true
		}
	}
	return false
}

// span is what the ring covers when it is full.
func (h *history) span() int64 { return h.width * int64(h.shape.windows) }

// second is a tenth of the short span, which is a second by default. How long it
// takes to see that an outage is over goes with it.
func (h *history) second() int64 { return h.span() / 10 }

func (h *history) sheetAt(index int64) *sheet { return &h.sheets[index%int64(len(h.sheets))] }

// answered is how many calls finished in w.
func (w *window) answered() (n int64) {
	for i := range w.finished {
		n += int64(w.finished[i].Load())
	}
	return n
}

// cutCounts returns the counts of calls that were cut off, making them if need be.
func (w *window) cutCounts() []atomic.Uint32 {
	if cut := w.cut.Load(); cut != nil {
		return *cut
	}
	fresh := make([]atomic.Uint32, len(w.finished))
	if !w.cut.CompareAndSwap(nil, &fresh) {
		return *w.cut.Load() // somebody else was first
	}
	return fresh
}

// add puts the calls of w into the sheet, which is emptied first if it was one of
// an earlier time.
func (s *sheet) add(w *window, index int64) {
	if s.finished == nil {
		s.finished = make([]uint32, w.grid.n)
	}
	if s.index != index {
		clear(s.finished)
		clear(s.cut)
		s.index, s.grid, s.timedOut = index, w.grid, 0
	}
	s.timedOut = sum(s.timedOut, w.timedOut.Load())
	for i := range w.finished {
		n := &s.finished[w.grid.moved(i, s.grid)]
		*n = sum(*n, w.finished[i].Load())
	}
	cut := w.cut.Load()
	if cut == nil {
		return
	}
	if s.cut == nil {
		s.cut = make([]uint32, w.grid.n)
	}
	for i := range *cut {
		n := &s.cut[w.grid.moved(i, s.grid)]
		*n = sum(*n, (*cut)[i].Load())
	}
}

// sum is a + b, or the largest number if that is less.
func sum(a, b uint32) uint32 {
	if a > math.MaxUint32-b {
		return math.MaxUint32
	}
	return a + b
}
