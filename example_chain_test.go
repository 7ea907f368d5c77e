package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
)

// slots is a Guard: it lets as many calls run at once as it has places.
type slots struct {
	name  string
	taken chan struct{}
}

func newSlots(name string, n int) *slots { return &slots{name, make(chan struct{}, n)} }

func (s *slots) Do(ctx context.Context, call func(context.Context) error) error {
	select {
	case s.taken <- struct{}{}:
		defer func() { <-s.taken }() // also when call panics
		return call(ctx)
	default:
		return &full{s.name}
	}
}

// full is the refusal of slots. It is a Rejection, and matches ErrRejected.
type full struct{ name string }

func (f *full) Error() string             { return f.name + ": all slots are taken" }
func (f *full) Unwrap() error             { return sluice.ErrRejected }
func (f *full) Resource() string          { return f.name }
func (f *full) Policy() string            { return "slots" }
func (f *full) Reason() string            { return "full" }
func (f *full) RetryAfter() time.Duration { return 0 } // nobody knows

// printed is a Guard that refuses nothing and tells how calls ended.
type printed struct{}

func (printed) Do(ctx context.Context, call func(context.Context) error) error {
	err := call(ctx)
	switch {
	case err == nil:
		fmt.Println("fine")
	case errors.Is(err, sluice.ErrRejected):
		fmt.Println("not called:", err)
	default:
		fmt.Println("failed:", err)
	}
	return err
}

// Guards of your own stand in a chain beside those of this module. What is first
// sees everything, also what those further in refuse.
func ExampleChain() {
	guard := sluice.Chain(printed{}, newSlots("warehouse", 1))
	ctx := context.Background()

	_ = guard.Do(ctx, func(ctx context.Context) error {
		// The only slot is taken while this call runs.
		_ = guard.Do(ctx, func(context.Context) error { return nil })
		return nil
	})
	_ = guard.Do(ctx, func(context.Context) error { return errors.New("no spoons left") })
	// Output:
	// not called: warehouse: all slots are taken
	// fine
	// failed: no spoons left
}
