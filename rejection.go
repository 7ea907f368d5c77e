package sluice

import (
	"context"
	"errors"
	"time"
)

// ErrRejected is what every local refusal of every package matches with
// errors.Is: the call was not made. It is not a sign that the dependency is sick,
// so no guard counts it against one, and retrying it at once is useless.
var ErrRejected = errors.New("sluice: rejected")

// ErrTimeout is the cause (see context.Cause) of a context that a time limit of
// ours has ended. It matches context.DeadlineExceeded with errors.Is, and its
// Timeout method returns true, as a net.Error's does.
var ErrTimeout error = timeoutError{}

type timeoutError struct{}

func (timeoutError) Error() string   { return "sluice: time limit exceeded" }
func (timeoutError) Unwrap() error   { return context.DeadlineExceeded }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

// Rejection is the error of a local refusal, found with errors.As. It always
// matches ErrRejected.
type Rejection interface {
	error
	// Resource is the name of the object that refused.
	Resource() string
	// Policy is the kind of object, such as "breaker".
	Policy() string
	// Reason is why, from a small fixed set, such as "open".
	Reason() string
	// RetryAfter is how long from now it is useless to ask again: 0 if that is not
	// known, negative if asking again will never help. It does not grow while one
	// waits.
	RetryAfter() time.Duration
}

// WithRetryAfter returns err with the wish of the dependency to be left alone for
// d attached, found by RetryAfter through any wrapping. A nil err stays nil; a d
// below 0 counts as 0, which means at once.
//
// It does not change what err says: use Mark(err, Throttled) as well for a
// dependency that answered and wants less.
func WithRetryAfter(err error, d time.Duration) error {
	if err == nil {
		return nil
	}
	return &retryAfter{err, max(d, 0)}
}

// RetryAfter returns how long err asks to wait: as attached by WithRetryAfter, or
// as a Rejection in err's tree tells. ok is false if err asks for nothing.
func RetryAfter(err error) (d time.Duration, ok bool) {
	if asked, ok := errors.AsType[*retryAfter](err); ok {
		return asked.wait, true
	}
	if refused, ok := errors.AsType[Rejection](err); ok {
		d = refused.RetryAfter()
		return d, d != 0
	}
	return 0, false
}

// retryAfter is transparent: it prints and unwraps as the error within.
type retryAfter struct {
	error
	wait time.Duration
}

func (r *retryAfter) Unwrap() error { return r.error }
