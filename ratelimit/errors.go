package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

var (
	// ErrLimited is what every refusal of this package matches with errors.Is,
	// whatever its reason. It matches sluice.ErrRejected as well.
	ErrLimited = errors.New("ratelimit: limited")
	// ErrExceedsCapacity is what the refusal of more tokens than the limiter can ever
	// hold matches too. Waiting does not help.
	ErrExceedsCapacity = errors.New("ratelimit: exceeds capacity")
	// ErrStore is what a refusal matches too that was given because a shared store
	// did not answer.
	ErrStore = errors.New("ratelimit: store failed")
)

// The reasons of a refusal, as LimitError.Reason returns them.
const (
	ReasonLimited         = "limited"          // not enough tokens yet
	ReasonExceedsCapacity = "exceeds_capacity" // more than there can ever be
	ReasonBlocked         = "blocked"          // the rate is Blocked()
	ReasonInvalid         = "invalid"          // a negative number of tokens
	ReasonMaxWait         = "max_wait"         // it would have to wait longer than it may
	ReasonDeadline        = "deadline"         // it would have to wait beyond its ctx's deadline
	ReasonMaxWaiters      = "max_waiters"      // too many wait already
	ReasonStore           = "store"            // the shared store did not answer
)

// LimitError is the refusal of a limiter, found with errors.As; it implements
// sluice.Rejection. It matches ErrLimited and sluice.ErrRejected, and
// context.DeadlineExceeded if, and only if, the ctx's deadline was the reason.
// It may be kept.
type LimitError struct {
	decision Decision
	reason   string
	until    int64 // when the answer may be another one
	cause    error
}

// refusal makes the error of d, a refusal that was decided just now, for a reason
// that may be another than d's own. cause is why a store failed, or nil.
func (d Decision) refusal(reason string, cause error) *LimitError {
	return &LimitError{decision: d, reason: reason, until: clock.After(clock.Now(), d.RetryAfter()), cause: cause}
}

// Error names the limiter, the reason, and the numbers.
func (e *LimitError) Error() string {
	d := e.decision
	text := fmt.Sprintf("ratelimit %q: %s: %d of %v, %d left", d.Resource(), e.reason, d.n, d.Limit(), d.Remaining())
	switch {
	case e.reason == ReasonExceedsCapacity:
		text += fmt.Sprintf(", at most %d at once", d.Capacity())
	case !d.Never():
		text += fmt.Sprintf(", retry after %v", d.RetryAfter())
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Is makes the refusal match the sentinel errors that its documentation names.
func (e *LimitError) Is(target error) bool {
	switch target {
	case ErrLimited, sluice.ErrRejected:
		return true
	case ErrExceedsCapacity:
		return e.reason == ReasonExceedsCapacity
	case ErrStore:
		return e.reason == ReasonStore
	case context.DeadlineExceeded:
		return e.reason == ReasonDeadline
	}
	return false
}

// Unwrap returns why the store failed, or nil.
func (e *LimitError) Unwrap() error { return e.cause }

// Resource returns the name of the limiter that refused.
func (e *LimitError) Resource() string { return e.decision.Resource() }

// Policy returns the kind of that limiter, such as "token_bucket".
func (e *LimitError) Policy() string { return e.decision.Policy() }

// Reason returns one of the Reason constants.
func (e *LimitError) Reason() string { return e.reason }

// Decision returns what the limiter answered, for the numbers.
func (e *LimitError) Decision() Decision { return e.decision }

// RetryAfter returns how long from now it is useless to ask again: it goes down
// while one waits, to 0. It is negative if asking again will never help. For how
// long it was at first, see Decision.
func (e *LimitError) RetryAfter() time.Duration {
	if e.decision.Never() {
		return -1
	}
	return time.Duration(max(0, e.until-clock.Now()))
}

// lastRefusal keeps the error of a refusal for as long as the next refusal would be
// the same: until somebody takes a token or gives one back. So under overload, when
// nearly all calls are refused, refusing allocates nothing.
type lastRefusal struct {
	kept atomic.Pointer[keptRefusal]
}

type keptRefusal struct {
	LimitError
	key int64
}

// of returns the error of d, a refusal. key tells the end of its wait from that of
// another refusal by the same layer.
func (r *lastRefusal) of(d Decision, key int64) *LimitError { return r.because("", d, key) }

// because is of for a reason that is not d's own, and is the same each time.
func (r *lastRefusal) because(reason string, d Decision, key int64) *LimitError {
	k := r.kept.Load()
	if k == nil || k.key != key || k.decision.by != d.by || k.decision.n != d.n {
		if reason == "" {
			reason = d.reason()
		}
		k = &keptRefusal{*d.refusal(reason, nil), key}
		r.kept.Store(k)
	}
	return &k.LimitError
}
