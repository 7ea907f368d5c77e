package adaptive

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
)

// ErrDeadlineTooShort is what a refusal of Timeout.Begin matches with errors.Is: the
// caller's deadline leaves less time than the median call takes. The refusal matches
// sluice.ErrRejected as well.
var ErrDeadlineTooShort = errors.New("adaptive: deadline too short")

// ReasonDeadline is the reason of such a refusal, as DeadlineError.Reason returns it.
const ReasonDeadline = "deadline_too_short"

// DeadlineError is the refusal of a Timeout, found with errors.As; it implements
// sluice.Rejection. It is built once for each Timeout, so refusing allocates nothing.
// It keeps no context and may be kept.
type DeadlineError struct{ t *Timeout }

// Error names the Timeout and what the median call takes as of now.
func (e *DeadlineError) Error() string {
	return fmt.Sprintf("timeout %q: the deadline leaves less time than the median call takes (%v)", e.t.name, e.t.cur.Load().median)
}

// Is makes the refusal match ErrDeadlineTooShort and sluice.ErrRejected.
func (e *DeadlineError) Is(target error) bool {
	return target == ErrDeadlineTooShort || target == sluice.ErrRejected
}

// Resource returns the name of the Timeout.
func (e *DeadlineError) Resource() string { return e.t.name }

// Policy returns "timeout".
func (e *DeadlineError) Policy() string { return "timeout" }

// Reason returns ReasonDeadline.
func (e *DeadlineError) Reason() string { return ReasonDeadline }

// RetryAfter returns -1: time does not come back to a deadline.
func (e *DeadlineError) RetryAfter() time.Duration { return -1 }

// TimeoutError is the cause (see context.Cause) of a context that the limit of a
// Timeout has ended. It matches sluice.ErrTimeout and context.DeadlineExceeded with
// errors.Is.
type TimeoutError struct {
	name  string
	limit time.Duration
}

// Error names the Timeout and the limit.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("timeout %q: not answered within %v", e.name, e.limit)
}

// Resource returns the name of the Timeout.
func (e *TimeoutError) Resource() string { return e.name }

// Limit returns how long the call was allowed to take.
func (e *TimeoutError) Limit() time.Duration { return e.limit }

// Unwrap returns sluice.ErrTimeout.
func (e *TimeoutError) Unwrap() error { return sluice.ErrTimeout }

// Timeout returns true, as a net.Error's does that is one.
func (e *TimeoutError) Timeout() bool { return true }

// Temporary returns true, as that of context.DeadlineExceeded does.
func (e *TimeoutError) Temporary() bool { return true }
