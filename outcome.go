package sluice

import (
	"context"
	"errors"
	"fmt"
)

// Outcome is what a finished call says about the dependency it went to. The zero
// Outcome is no opinion: whoever asked goes on with its default.
type Outcome uint8

const (
	// Success: the dependency answered as it should.
	Success Outcome = iota + 1
	// Failure: the dependency is at fault.
	Failure
	// Ignored: the call says nothing about the dependency. It leaves no trace, and
	// what it took is given back.
	Ignored
	// Throttled: the dependency answered, and wants less. A breaker counts the call
	// but not as a failure; a throttled probe gives its place back.
	Throttled
)

// String returns the outcome in lower case, "none" for the zero Outcome.
func (o Outcome) String() string {
	switch o {
	case 0:
		return "none"
	case Success:
		return "success"
	case Failure:
		return "failure"
	case Ignored:
		return "ignored"
	case Throttled:
		return "throttled"
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// MarshalText returns the text of String, for JSON and logs.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// Classify tells what err, returned by a call that was given ctx, says about the
// dependency. The first of these that holds decides:
//
//   - no error: Success
//   - an error marked by Mark or Ignore: as marked
//   - a local refusal (it matches ErrRejected): Ignored
//   - ctx is alive: Failure, so a time limit further in is one
//   - ctx was ended by a time limit of ours (its cause is ErrTimeout): Failure
//   - ctx was cancelled: Ignored, whatever the error says
//   - ctx is past the caller's own deadline: Failure
//
// ctx is the one that was given to the guard, not one derived further in. It
// allocates nothing for a nil error.
func Classify(ctx context.Context, err error) Outcome {
	if err == nil {
		return Success
	}
	if o := marked(err); o != 0 {
		return o
	}
	if errors.Is(err, ErrRejected) {
		return Ignored
	}
	if ctx.Err() == nil {
		return Failure
	}
	if errors.Is(context.Cause(ctx), ErrTimeout) {
		return Failure
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return Ignored
	}
	return Failure
}

// Mark returns err with the given outcome attached, which Classify then returns.
// The outcome is found through any wrapping, and errors.Is and errors.As see err
// as before. A nil err stays nil, and an Outcome of zero attaches nothing. If an
// error is marked more than once, the outermost mark counts; of errors that were
// joined, the first that has one.
func Mark(err error, o Outcome) error {
	if err == nil || o == 0 {
		return err
	}
	return &mark{err, o}
}

// Ignore is shorthand for Mark(err, Ignored).
func Ignore(err error) error { return Mark(err, Ignored) }

// mark is transparent: it prints and unwraps as the error within.
type mark struct {
	error
	outcome Outcome
}

func (m *mark) Unwrap() error { return m.error }

// marked returns the outermost mark in err's tree, or 0.
func marked(err error) Outcome {
	if m, ok := errors.AsType[*mark](err); ok {
		return m.outcome
	}
	return 0
}
