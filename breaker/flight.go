package breaker

import (
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/slidingwindow"
)

// flight keeps how many calls are out, by when they began, so that those which are
// overdue can count as slow before they return. A call counts from the moment it
// is overdue until it returns, but no longer than the window would keep it. The
// methods of a nil flight do nothing.
type flight struct {
	seat    // of the calls that it keeps
	width   int64
	buckets int
	starts  *slidingwindow.LeapArray[atomic.Int64]
	// look is when overdue calls are looked for next. Whoever moves it on looks.
	look atomic.Int64
}

// newFlight makes the flight of an episode under p, which has a slow rule.
func newFlight(p *plan, e *episode) *flight {
	width, buckets := flightShape(p)
	span := time.Duration(width * int64(buckets))
	f := &flight{width: width, buckets: buckets, starts: sluice.Must(slidingwindow.New[atomic.Int64](span, buckets))}
	f.seat.ep = e
	return f
}

// flightShape is how finely and how far back calls must be kept under p. A call
// can be told to be overdue once its whole bucket is, so buckets are small against
// the limit; their number is bounded.
func flightShape(p *plan) (width int64, buckets int) {
	const fine, most = 32, 512
	var span int64
	for _, r := range p.config.Rules {
		if r.Kind == SlowCallRatio {
			span = max(span, int64(clock.After(int64(r.SlowerThan), max(r.Over, p.config.Window))))
		}
	}
	span = min(span, 1<<62) // for ever is long enough, and must not overflow
	width = max(p.slowLimit/fine, span/most, 1)
	return width, int(span/width) + 1
}

// fits reports whether f is what p wants.
func (f *flight) fits(p *plan) bool {
	width, buckets := flightShape(p)
	return f.width == width && f.buckets == buckets
}

// enter keeps a call that begins at now.
func (f *flight) enter(now int64) *seat {
	f.starts.At(now).Add(1)
	return &f.seat
}

// leave lets go of the call in s that began at start, if it was kept here.
func (f *flight) leave(s *seat, start int64) {
	if f != nil && s == &f.seat {
		f.starts.At(start).Add(-1)
	}
}

// overdue is how many calls have been out for longer than limit at now, and have
// become so within w.
func (f *flight) overdue(now, limit int64, w *window) (n int64) {
	if f == nil {
		return 0
	}
	oldest := now - limit - int64(w.span)
	for start, calls := range f.starts.AllAt(now) {
		if start >= oldest && start+f.width <= now-limit {
			n += max(0, calls.Load())
		}
	}
	return n
}

// timeToLook reports, to one caller for each bucket, that it is time to look for
// overdue calls.
func (f *flight) timeToLook(now int64) bool {
	next := f.look.Load()
	return now >= next && f.look.CompareAndSwap(next, now+f.width)
}
