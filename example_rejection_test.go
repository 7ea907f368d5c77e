package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
)

// Every refusal of every guard matches ErrRejected, and most say more.
func ExampleRejection() {
	guard := newSlots("warehouse", 0) // no slots: it refuses all calls
	err := guard.Do(context.Background(), func(context.Context) error { return nil })
	err = fmt.Errorf("order 17: %w", err)

	fmt.Println(errors.Is(err, sluice.ErrRejected))
	if r, ok := errors.AsType[sluice.Rejection](err); ok {
		fmt.Println(r.Policy(), r.Resource(), r.Reason())
	}
	// Output:
	// true
	// slots warehouse full
}

// A dependency that answers "too many requests, come back in a minute" is told
// apart from one that is down, and its wish is kept with the error.
func ExampleWithRetryAfter() {
	err := errors.New("too many requests")
	err = sluice.Mark(err, sluice.Throttled)
	err = sluice.WithRetryAfter(err, time.Minute)
	err = fmt.Errorf("get user: %w", err)

	fmt.Println(err)
	fmt.Println(sluice.Classify(context.Background(), err))
	fmt.Println(sluice.RetryAfter(err))
	// Output:
	// get user: too many requests
	// throttled
	// 1m0s true
}

// RetryAfter finds what a dependency asked for and what a refusal tells. Most
// errors ask for nothing.
func ExampleRetryAfter() {
	for _, err := range []error{
		errors.New("connection refused"),
		sluice.WithRetryAfter(errors.New("overloaded"), 30*time.Second),
		newSlots("warehouse", 0).Do(context.Background(), nil),
	} {
		if d, ok := sluice.RetryAfter(err); ok {
			fmt.Printf("%v: again in %v\n", err, d)
		} else {
			fmt.Printf("%v: does not say\n", err)
		}
	}
	// Output:
	// connection refused: does not say
	// overloaded: again in 30s
	// warehouse: all slots are taken: does not say
}
