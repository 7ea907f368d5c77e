package ratelimit

import (
	"math"
	"time"
)

// Decision is a limiter's answer to somebody who wants n tokens: OK says whether
// they are his. All else is worked out when it is asked for, so a caller who only
// wants to know whether he may go on pays for nothing more. What it tells is of the
// moment of the decision, and does not change.
//
// A Decision is a small value that may be copied and kept; its methods allocate
// nothing, except Err. The zero Decision admits and took no tokens; that of a nil limiter
// admits as many as were asked for.
type Decision struct {
	// by is the layer that decided; nil if nothing limits.
	by *origin
	n  int64 // how many tokens were asked for
	// lack is at most 0 if they were given, and above if not. The rest of it, and
	// all of mark, mean what by says: only by reads them.
	lack, mark int64
}

// unlimited is the decision where nothing limits: n tokens, of nobody.
func unlimited(n int64) Decision { return Decision{n: max(0, n)} }

// tookSome reports whether d took tokens that somebody can give back.
func (d Decision) tookSome() bool { return d.by != nil && d.n > 0 && d.OK() }

// origin is what a limiter is to its decisions. It is complete before the first
// decision points at it and never changes; a limiter whose rule changes makes
// another one.
type origin struct {
	judge
	resource string // the limiter's name
	policy   string // the kind of limiter
	limit    Rate   // the quota: so many tokens in so long a time
	capacity int64  // the largest n that it ever admits; 0 if it is blocked
	reason   string // why it refuses what it may admit later
}

// A judge works out what a limiter's decisions say, from the decision and from what
// never changes. It is asked only about decisions of its own, for n of at least 0.
type judge interface {
	// remaining is how many tokens were left after the decision, at least 0.
	remaining(d Decision) int64
	// retryAfter is how long after d, a refusal of an n within the capacity, the
	// same n would be admitted if nobody else asked: not a nanosecond more or less.
	retryAfter(d Decision) time.Duration
	// resetAfter is how long after d all tokens would be there again.
	resetAfter(d Decision) time.Duration
}

// OK reports whether the tokens were given.
func (d Decision) OK() bool { return d.lack <= 0 }

// Tokens returns how many tokens were asked for, and given if OK.
func (d Decision) Tokens() int64 { return d.n }

// Remaining returns how many whole tokens were left after the decision: at least
// 0, math.MaxInt64 if nothing limits.
func (d Decision) Remaining() int64 {
	if d.by == nil {
		return math.MaxInt64
	}
	if d.n < 0 {
		return 0
	}
	return d.by.remaining(d)
}

// RetryAfter returns how long after the decision the same question would be
// answered with yes, if nobody else asked in between: exactly, and no sooner. It is
// 0 if OK, and negative if Never.
func (d Decision) RetryAfter() time.Duration {
	switch {
	case d.OK():
		return 0
	case d.Never():
		return -1
	}
	return d.by.retryAfter(d)
}

// ResetAfter returns how long after the decision all tokens would be back, if
// nobody asked in between; 0 if they were there or nothing limits.
func (d Decision) ResetAfter() time.Duration {
	if d.by == nil || d.n < 0 {
		return 0
	}
	return d.by.resetAfter(d)
}

// Never reports whether no waiting would help: more tokens were asked for than the
// limiter can ever hold, or fewer than none, or it is blocked.
func (d Decision) Never() bool {
	return d.lack > 0 && (d.n < 0 || d.n > d.by.capacity)
}

// Err returns nil if OK, and else the refusal: a *LimitError, which is allocated
// for this caller.
func (d Decision) Err() error {
	if d.OK() {
		return nil
	}
	return d.refusal(d.reason(), nil)
}

// Resource returns the name of the limiter that decided; of several, the one that
// refused. It is "" if nothing limits.
func (d Decision) Resource() string {
	if d.by == nil {
		return ""
	}
	return d.by.resource
}

// Policy returns the kind of that limiter, such as "token_bucket".
func (d Decision) Policy() string {
	if d.by == nil {
		return ""
	}
	return d.by.policy
}

// Limit returns the quota of that limiter: so many tokens in so long a time.
func (d Decision) Limit() Rate {
	if d.by == nil {
		return Unlimited()
	}
	return d.by.limit
}

// Capacity returns the largest n that the limiter ever admits at once.
func (d Decision) Capacity() int64 {
	if d.by == nil {
		return math.MaxInt64
	}
	return d.by.capacity
}

// reason says why d, a refusal, is one.
func (d Decision) reason() string {
	switch {
	case d.n < 0:
		return ReasonInvalid
	case d.by.limit.IsBlocked():
		return ReasonBlocked
	case d.n > d.by.capacity:
		return ReasonExceedsCapacity
	}
	return d.by.reason
}
