// Package clock is the one time that every package of the module reads: int64
// nanoseconds since the process began, plus 1. It is monotonic, so setting the
// wall clock changes nothing, and it is plain arithmetic, so a test can drive
// any method that takes the time as an argument.
//
// Inside a testing/synctest bubble Now follows the bubble's own clock. It is
// small and positive there too, so an object built outside a bubble and used
// within (or the other way round) sees a time that makes sense. That holds for as
// long as the bubble's date, which begins with the year 2000, has not come to the
// date on which the process began: a test must not sleep for decades.
package clock

import (
	"math"
	"time"
)

// base carries a monotonic reading; differences to it ignore the wall clock.
var base = time.Now()

// bubbleBehind is how far the start of every synctest bubble, 2000-01-01, lies
// before base. In a bubble, and only there, time.Since(base) is negative.
var bubbleBehind = int64(base.Round(0).Sub(time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)))

// Now returns the time in nanoseconds, at least 1. It does not allocate; one
// reading is the whole cost.
func Now() int64 {
	d := int64(time.Since(base))
	if d < 0 {
		d += bubbleBehind
	}
	return d + 1
}

// After returns now + d, or the last instant there is when that would overflow.
// A negative d counts as 0.
func After(now int64, d time.Duration) int64 {
	if d <= 0 {
		return now
	}
	if now > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return now + int64(d)
}

// At turns a deadline into this package's time. It reads the clock only for a t
// before base, to tell a bubble (where every t is) from a deadline that passed
// before the process began, which is 1.
func At(t time.Time) int64 {
	d := int64(t.Sub(base))
	if d < 0 {
		if time.Since(base) >= 0 {
			return 1
		}
		d = max(d+bubbleBehind, 0)
	}
	return After(1, time.Duration(d))
}

// Wall returns the wall clock's time at, for people to read.
func Wall(at int64) time.Time {
	return time.Now().Add(time.Duration(at - Now()))
}
