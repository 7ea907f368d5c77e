package adaptive_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/adaptive"
)

// A dependency whose answer does not come: the limit ends the call.
func Example() {
	t := sluice.Must(adaptive.NewTimeout("payments", time.Millisecond, 20*time.Millisecond))
	err := t.Do(context.Background(), func(ctx context.Context) error {
		<-ctx.Done() // as a client does
		fmt.Println("ended by:", context.Cause(ctx))
		return ctx.Err()
	})
	fmt.Println(errors.Is(err, context.DeadlineExceeded), t.Snapshot().Totals.TimedOut)
	// Output:
	// ended by: timeout "payments": not answered within 20ms
	// true 1
}

// Call adds a result.
func ExampleTimeout_Do() {
	t := sluice.Must(adaptive.NewTimeout("prices", 10*time.Millisecond, 5*time.Second))
	price, err := sluice.Call(context.Background(), t, func(context.Context) (int, error) { return 42, nil })
	fmt.Println(price, err)
	// Output: 42 <nil>
}

// Begin and Done are for code that begins and ends a call in different places.
func ExampleTimeout_Begin() {
	t := sluice.Must(adaptive.NewTimeout("search", 10*time.Millisecond, 5*time.Second))
	search := func(ctx context.Context) error {
		a, err := t.Begin(ctx)
		if err != nil {
			return err // no time left
		}
		defer a.Close() // nothing is learnt from a panic
		ctx, cancel := a.Context(ctx)
		defer cancel()
		err = ctx.Err() // … the call
		a.Done(err)
		return err
	}
	fmt.Println(search(context.Background()), t.Snapshot().Totals.Finished)
	// Output: <nil> 1
}

// The limit follows what calls take: it begins at max, and comes down once there have
// been enough.
func ExampleTimeout_Value() {
	t := sluice.Must(adaptive.NewTimeout("cache", time.Second, 5*time.Second))
	fmt.Println(t.Value(), t.Snapshot().State)
	for t.Snapshot().State == adaptive.Cold {
		_ = t.Do(context.Background(), func(context.Context) error { return nil })
	}
	fmt.Println(t.Value(), t.Snapshot().State)
	// Output:
	// 5s cold
	// 1s resolved
}

// A Meter learns from calls that have a time limit of their own.
func ExampleTimeout_Meter() {
	t := sluice.Must(adaptive.NewTimeout("db", 10*time.Millisecond, 5*time.Second))
	read := func(context.Context) error {
		deadline := time.Now().Add(t.Value()) // conn.SetReadDeadline(deadline)
		_ = deadline
		return nil
	}
	fmt.Println(t.Meter().Do(context.Background(), read), t.Snapshot().Totals.Finished)
	// Output: <nil> 1
}

// The rule that many services have at home, made safe, and others.
func ExampleWithRule() {
	for _, rule := range []adaptive.Rule{
		adaptive.FalseTimeouts(0.001), // the default
		adaptive.MeanMultiple(3),
		adaptive.Quantile(0.99, 2),
		adaptive.RFC6298(),
		adaptive.Fixed(time.Second),
	} {
		t := sluice.Must(adaptive.NewTimeout("orders", 10*time.Millisecond, 5*time.Second, adaptive.WithRule(rule)))
		fmt.Println(t.Snapshot().Rule)
	}
	// Output:
	// FalseTimeouts(0.001)
	// MeanMultiple(3) of 100 calls
	// Quantile(0.99, 2)
	// RFC6298()
	// Fixed(1s)
}

// slowest is an Estimator that allows twice what the slowest call has taken.
type slowest struct{ seen chan time.Duration } // holds one

func (s slowest) Observe(c adaptive.Sample) { s.seen <- max(c.Took, <-s.seen) }

func (s slowest) Estimate(int64, adaptive.Bounds) adaptive.Estimate {
	d := <-s.seen
	s.seen <- d
	return adaptive.Estimate{Limit: 2 * d}
}

// An Estimator of one's own needs two methods.
func ExampleWithEstimator() {
	t := sluice.Must(adaptive.NewTimeout("orders", time.Second, 5*time.Second,
		adaptive.WithEstimator(func() adaptive.Estimator {
			s := slowest{make(chan time.Duration, 1)}
			s.seen <- 0
			return s
		})))
	_ = t.Do(context.Background(), func(context.Context) error { return nil })
	fmt.Println(t.Value())
	// Output: 1s
}

// An error that is an answer counts with the time that it took.
func ExampleWithClassifier() {
	errNotFound := errors.New("not found")
	t := sluice.Must(adaptive.NewTimeout("orders", 10*time.Millisecond, 5*time.Second,
		adaptive.WithClassifier(func(_ context.Context, err error) sluice.Outcome {
			if errors.Is(err, errNotFound) {
				return sluice.Success
			}
			return 0 // the default decides
		})))
	_ = t.Do(context.Background(), func(context.Context) error { return errNotFound })
	fmt.Println(t.Snapshot().Totals.Finished)
	// Output: 1
}

// Testing what a caller does when time is up needs no slow dependency: wait for the
// end of the context.
func Example_testingTheCaller() {
	t := sluice.Must(adaptive.NewTimeout("prices", time.Millisecond, time.Millisecond))
	price := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	cached := func(_ context.Context, cause error) (int, error) {
		fmt.Println("cached, because:", cause)
		return 42, nil
	}
	fmt.Println(sluice.CallOr(context.Background(), t, price, cached))
	// Output:
	// cached, because: context deadline exceeded
	// 42 <nil>
}
