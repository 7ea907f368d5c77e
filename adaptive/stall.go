package adaptive

import (
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// A stall is how long this process itself has kept calls waiting: it was paused or
// throttled, or had more to run than processors. A deadline that passes meanwhile
// is noticed late, and the answer may have been there all the time. So limits are
// stretched by as much as deadlines were late, to at most four times, and for half
// an hour, since a stall that a stretched limit has covered is not seen again
// (Dadgar et al.: "Lifeguard: SWIM-ing with Situational Awareness", 2017).
type stall struct {
	late    atomic.Int64 // by how much the latest call missed the limit without its stretch
	lateAt  atomic.Int64 // when that was last observed; 0 is never
	inForce atomic.Int64 // the stretch of the limits that are given out; written by stretch
}

const (
	// tolerance is how late a deadline is noticed on a machine that is merely busy.
	tolerance = 10 * time.Millisecond
	// mostStretch is how many times a limit may be added to itself.
	mostStretch = 3
	remembered  = 30 * time.Minute
)

// observe is told of a call that timed out.
func (s *stall) observe(call Sample) {
	if late := call.Took - call.Limit; late > tolerance {
		raise(&s.late, int64(late)+s.inForce.Load())
		s.lateAt.Store(call.At)
	}
}

// stretch is by how much limits are longer than limit, from now on.
func (s *stall) stretch(now int64, limit time.Duration) time.Duration {
	if at := s.lateAt.Load(); at != 0 && now >= clock.After(at, remembered) {
		s.late.Store(0)
		s.lateAt.Store(0)
	}
	d := min(s.late.Load(), int64(min(limit, 1<<60)*mostStretch))
	s.inForce.Store(d)
	return time.Duration(d)
}
