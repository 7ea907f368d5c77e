package httpguard

import (
	"context"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
)

// limits are the time limits of a Transport. Each is the error, and the cause of the
// context, of a call that it ends; nil where there is no such limit.
type limits struct {
	headers *limitError // from the admission to the response headers
	total   *limitError // from the admission to the end of the response body
	idle    *limitError // between two pieces of the response body
}

func newLimits(s *settings) (l limits) {
	if d := s.attemptTimeout; d != nil {
		l.headers = &limitError{"no response headers", *d}
	}
	if d := s.totalTimeout; d != nil {
		l.total = &limitError{"the call was not over", *d}
	}
	if d := s.bodyIdleTimeout; d != nil {
		l.idle = &limitError{"no more of the response body", *d}
	}
	return l
}

// any reports whether there are limits at all.
func (l *limits) any() bool { return l.headers != nil || l.total != nil || l.idle != nil }

// derive returns the context of one call, which total ends by itself, and the
// others by release.
func (l *limits) derive(ctx context.Context) (_ context.Context, release context.CancelCauseFunc) {
	if l.total == nil {
		return context.WithCancelCause(ctx)
	}
	// A deadline, so that those further in can see how much time there is.
	ctx, cancel := context.WithTimeoutCause(ctx, l.total.after, l.total)
	if l.headers == nil && l.idle == nil {
		return ctx, func(error) { cancel() }
	}
	ctx, end := context.WithCancelCause(ctx)
	return ctx, func(cause error) {
		end(cause)
		cancel()
	}
}

// ended returns which of these limits ended ctx, nil if none: the caller may have
// been faster, or a limit further out.
func (l *limits) ended(ctx context.Context) error {
	if cause := context.Cause(ctx); l.has(cause) {
		return cause
	}
	return nil
}

// has reports whether err is the end of a call by one of these limits.
func (l *limits) has(err error) bool {
	e, ok := err.(*limitError)
	return ok && e != nil && (e == l.headers || e == l.total || e == l.idle)
}

// limitError says that a time limit is over. There is one for each limit of a
// Transport.
type limitError struct {
	lacks string
	after time.Duration
}

func (e *limitError) Error() string {
	return fmt.Sprintf("httpguard: %s within %v", e.lacks, e.after)
}

// Unwrap makes it match sluice.ErrTimeout and context.DeadlineExceeded.
func (e *limitError) Unwrap() error { return sluice.ErrTimeout }

// Timeout and Temporary make it a net.Error, which url.Error.Timeout looks for.
func (e *limitError) Timeout() bool   { return true }
func (e *limitError) Temporary() bool { return true }
