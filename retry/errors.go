package retry

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
)

// ErrGaveUp is what every *Error matches with errors.Is, whatever its reason.
var ErrGaveUp = errors.New("retry: gave up")

// The reasons why there was no further attempt, as Error.Reason returns them and as
// Snapshot and metrics count them.
const (
	ReasonAttempts   = "attempts"    // that was the last
	ReasonBudget     = "budget"      // the budget is used up
	ReasonDeadline   = "deadline"    // the wait would not end before the deadline of the ctx
	ReasonRetryAfter = "retry_after" // the dependency asks for a longer wait than MaxRetryAfter
	ReasonEnded      = "ended"       // the ctx ended during a wait or a further attempt
	ReasonRefused    = "refused"     // a further attempt was refused locally
	// The following are counted, but the error is returned as it is.
	ReasonNested = "nested" // somebody further in has given up, or somebody further out repeats
	ReasonProbe  = "probe"  // the call is the probe of a half-open breaker, which is to be one call
)

// givenUp is a reason as a number, for counting.
type givenUp uint8

const (
	gaveUpAttempts givenUp = iota
	gaveUpBudget
	gaveUpDeadline
	gaveUpRetryAfter
	gaveUpEnded
	gaveUpRefused
	gaveUpNested
	gaveUpProbe
	reasons = 8
)

var reasonNames = [reasons]string{
	ReasonAttempts, ReasonBudget, ReasonDeadline, ReasonRetryAfter, ReasonEnded, ReasonRefused, ReasonNested, ReasonProbe,
}

// Error is the error of a call that was worth another attempt and did not get one,
// found with errors.As. It unwraps to the last error that an attempt returned in
// earnest: errors.Is and errors.As find that one, sluice.Classify judges by it, and a
// breaker further out does too.
//
// It is no refusal: a call was made, so it matches sluice.ErrRejected in no case, not
// even if a further attempt was refused. When the ctx has ended, it matches the ctx's
// error and cause too.
type Error struct {
	name     string
	why      givenUp
	attempts int
	last     error
	refusal  error // of a further attempt
	ctxErr   error // of a ctx that has ended
	cause    error // of its end
}

// Error tells how many attempts there were, why there was no other, and the last
// error.
func (e *Error) Error() string {
	attempts := "1 attempt"
	if e.attempts != 1 {
		attempts = fmt.Sprintf("%d attempts", e.attempts)
	}
	return fmt.Sprintf("retry %q: gave up after %s%s: %v", e.name, attempts, e.because(), e.last)
}

func (e *Error) because() string {
	switch e.why {
	case gaveUpBudget:
		return ", the budget is used up"
	case gaveUpDeadline:
		return ", no time for another"
	case gaveUpRetryAfter:
		if d, _ := sluice.RetryAfter(e.last); d > 0 {
			return fmt.Sprintf(", asked to wait for %v", d)
		}
		return ", asked not to come again"
	case gaveUpEnded:
		end, cause := fmt.Sprint(e.ctxErr), fmt.Sprint(e.cause)
		if e.cause == nil || cause == end { // the errors themselves may be of a kind that cannot be compared
			return fmt.Sprintf(" (%s)", end)
		}
		return fmt.Sprintf(" (%s: %s)", end, cause)
	case gaveUpRefused:
		return fmt.Sprintf(" (%v)", e.refusal)
	}
	return ""
}

// Unwrap returns the last error of an attempt.
func (e *Error) Unwrap() error { return e.last }

// Is makes it match ErrGaveUp, and the error and cause of a ctx that has ended.
//
// A cause is not unwrapped to, because what it says about another call (a mark, a
// refusal) does not hold for this one.
func (e *Error) Is(target error) bool {
	return target == ErrGaveUp ||
		e.ctxErr != nil && target != sluice.ErrRejected && (errors.Is(e.ctxErr, target) || errors.Is(e.cause, target))
}

// Name returns the name of the policy.
func (e *Error) Name() string { return e.name }

// Attempts returns how many attempts were made, at least 1.
func (e *Error) Attempts() int { return e.attempts }

// Reason returns one of the Reason constants.
func (e *Error) Reason() string { return reasonNames[e.why] }

// Refusal returns the local refusal of a further attempt, nil if the reason is
// another.
func (e *Error) Refusal() error { return e.refusal }

// repeatedFurtherIn reports whether a policy further in has given err up.
func repeatedFurtherIn(err error) bool {
	_, ok := errors.AsType[*Error](err)
	return ok
}

// limitError is the cause of a ctx that a policy's limit for an attempt has ended.
type limitError struct {
	name    string
	attempt int
	limit   time.Duration
}

func (e *limitError) Error() string {
	return fmt.Sprintf("retry %q: attempt %d was not over within %v", e.name, e.attempt, e.limit)
}

// Unwrap makes it match sluice.ErrTimeout and context.DeadlineExceeded.
func (e *limitError) Unwrap() error { return sluice.ErrTimeout }

// Timeout and Temporary make it a net.Error.
func (e *limitError) Timeout() bool   { return true }
func (e *limitError) Temporary() bool { return true }

// tally is what a policy counts. Written by the calls that fail.
type tally struct {
	retries, recovered atomic.Int64
	givenUp            [reasons]atomic.Int64
}
