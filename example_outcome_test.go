package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
)

// Who ended the call decides what its error says about the dependency.
func ExampleClassify() {
	alive := context.Background()
	cancelled, cancel := context.WithCancel(alive)
	cancel()
	limited, cancel := context.WithTimeoutCause(alive, -time.Second, sluice.ErrTimeout)
	defer cancel()
	late, cancel := context.WithTimeout(alive, -time.Second)
	defer cancel()

	errDown := errors.New("connection refused")
	for _, c := range []struct {
		what string
		ctx  context.Context
		err  error
	}{
		{"it answered", alive, nil},
		{"it answered, too late for us", cancelled, nil},
		{"it failed", alive, errDown},
		{"the caller went away", cancelled, context.Canceled},
		{"our time limit was over", limited, context.DeadlineExceeded},
		{"the caller's deadline passed", late, context.DeadlineExceeded},
		{"we did not even ask", alive, sluice.ErrRejected},
		{"the code that asked knows better", cancelled, sluice.Mark(errDown, sluice.Failure)},
	} {
		fmt.Printf("%-33s %v\n", c.what, sluice.Classify(c.ctx, c.err))
	}
	// Output:
	// it answered                       success
	// it answered, too late for us      success
	// it failed                         failure
	// the caller went away              ignored
	// our time limit was over           failure
	// the caller's deadline passed      failure
	// we did not even ask               ignored
	// the code that asked knows better  failure
}

// The code that makes the call knows which errors are answers, and says so where
// it returns them. Nothing else changes about the error.
func ExampleMark() {
	errNoSuchUser := errors.New("no such user")
	errQuota := errors.New("quota exceeded")
	get := func(status int) error {
		switch status {
		case 404:
			return sluice.Mark(errNoSuchUser, sluice.Success)
		case 429:
			return sluice.Mark(errQuota, sluice.Throttled)
		}
		return fmt.Errorf("status %d", status)
	}
	for _, status := range []int{404, 429, 500} {
		err := fmt.Errorf("get user: %w", get(status))
		fmt.Println(sluice.Classify(context.Background(), err), "|", err, "|", errors.Is(err, errNoSuchUser))
	}
	// Output:
	// success | get user: no such user | true
	// throttled | get user: quota exceeded | false
	// failure | get user: status 500 | false
}

// An error that is nobody's fault over there must not trip a breaker.
func ExampleIgnore() {
	err := sluice.Ignore(errors.New("request has no body"))
	fmt.Println(sluice.Classify(context.Background(), err), "|", err)
	// Output:
	// ignored | request has no body
}
