package waitq

import (
	"math"
	"time"
)

// Classes is how many classes of importance there are. Class 0 is the most
// important.
const Classes = 3

// Whole is a share of everything, in millionths.
const Whole = 1_000_000

// Policy is who may wait, for how long, and who goes first. Its owner has checked
// it: nothing in it is negative, and the shares are no more than Whole together.
type Policy struct {
	// MaxQueue is how many may wait. 0 lets nobody wait.
	MaxQueue int
	// MaxWait is how long each may wait.
	MaxWait time.Duration
	// Newest lets the newest of a class go first while the queue is in overload,
	// instead of the oldest.
	Newest bool
	// Aging is how much later an entry may come and yet go before one of the next
	// class. 0 means that classes do not matter to the order.
	Aging time.Duration
	// Shares are millionths: what part of those that are served is of each class at
	// least, while any of it wait. The same part of the queue is kept for it.
	Shares [Classes]int
	// Target, if not 0, replaces a longer MaxWait for those that come in overload.
	Target time.Duration
	// Interval is how long a queue must not have been empty to be in overload.
	Interval time.Duration
}

// handicap is the time by which entries of class count as later than they came.
func (p *Policy) handicap(class uint8) int64 {
	return int64(class) * min(int64(p.Aging), math.MaxInt64/(2*Classes))
}

// reserved is how many places in the queue are kept for class.
func (p *Policy) reserved(class int) int {
	return int(int64(p.MaxQueue) * int64(p.Shares[class]) / Whole)
}

// wait is how long an entry may wait.
func (p *Policy) wait(overload bool) time.Duration {
	if overload && p.Target > 0 {
		return min(p.Target, p.MaxWait)
	}
	return p.MaxWait
}

// after is now + d, or the last instant there is.
func after(now int64, d time.Duration) int64 {
	if now > math.MaxInt64-int64(d) {
		return math.MaxInt64
	}
	return now + int64(d)
}
