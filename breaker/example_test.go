package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

var errDown = errors.New("connection refused")

// A breaker around a call that fails: it trips at the fifth failure and from then
// on refuses without calling.
func Example() {
	b := sluice.Must(breaker.New("payments", breaker.WithConsecutiveFailures(5)))
	calls := 0
	for range 8 {
		err := b.Do(context.Background(), func(context.Context) error {
			calls++
			return errDown
		})
		if errors.Is(err, breaker.ErrOpen) {
			fmt.Println("refused:", err)
		}
	}
	fmt.Println(calls, "calls,", b.State())
	// Output:
	// refused: breaker "payments": open (5 of 5 errors in a row)
	// refused: breaker "payments": open (5 of 5 errors in a row)
	// refused: breaker "payments": open (5 of 5 errors in a row)
	// 5 calls, open
}

// Call adds a result, CallOr a fallback for refusals and failures alike.
func Example_fallback() {
	b := sluice.Must(breaker.New("prices", breaker.WithErrorRatio(0.5), breaker.WithMinRequests(1)))
	price := func(context.Context) (int, error) { return 0, errDown }
	cached := func(_ context.Context, cause error) (int, error) {
		fmt.Println("cached, because:", cause)
		return 42, nil
	}
	for range 2 {
		p, _ := sluice.CallOr(context.Background(), b, price, cached)
		fmt.Println(p)
	}
	// Output:
	// cached, because: connection refused
	// 42
	// cached, because: breaker "prices": open (errors 100 % of 50 %, 1 of 1 calls)
	// 42
}

// Testing a fallback needs no failing dependency: trip the breaker.
func Example_testingAFallback() {
	b := sluice.Must(breaker.New("prices"))
	_ = b.Trip(time.Minute)
	err := b.Do(context.Background(), func(context.Context) error {
		fmt.Println("not reached")
		return nil
	})
	fmt.Println(errors.Is(err, sluice.ErrRejected), b.State())
	b.Reset()
	fmt.Println(b.State())
	// Output:
	// true open
	// closed
}

// Allow and Done are for code that begins and ends a call in different places.
func ExampleBreaker_Allow() {
	b := sluice.Must(breaker.New("queue"))
	send := func(ctx context.Context) error {
		p, err := b.Allow(ctx)
		if err != nil {
			return err
		}
		defer p.Close() // a panic is a failure
		err = errDown   // … the call
		p.Done(err)
		return err
	}
	fmt.Println(send(context.Background()))
	fmt.Println(b.Snapshot().Reason)
	// Output:
	// connection refused
	// errors 100 % of 50 %, 1 of 1 calls, below min requests (1/20)
}

// The refusal says who refused, why, and when it is worth while to ask again.
func ExampleOpenError() {
	b := sluice.Must(breaker.New("payments"))
	_ = b.Trip(time.Hour)
	_, err := b.Allow(context.Background())
	if refused, ok := errors.AsType[*breaker.OpenError](err); ok {
		fmt.Println(refused.Resource(), refused.Policy(), refused.Reason(), refused.Cause())
		fmt.Println(refused.RetryAfter().Round(time.Second))
	}
	// Output:
	// payments breaker open on request
	// 1h0m0s
}

// A listener gets every change of state, in order, and may use the breaker.
func ExampleWithOnChange() {
	b := sluice.Must(breaker.New("payments", breaker.WithErrorCount(3),
		breaker.WithOnChange(func(e breaker.Event) {
			fmt.Printf("%s: %v to %v, %v\n", e.Name, e.From, e.To, e.Cause)
		})))
	for range 3 {
		_ = b.Do(context.Background(), func(context.Context) error { return errDown })
	}
	b.Reset()
	// Output:
	// payments: closed to open, 3 of 3 errors in 3 calls
	// payments: open to closed, reset
}

// A classifier knows what the errors of this dependency mean.
func ExampleWithClassifier() {
	errNotFound, errBusy := errors.New("not found"), errors.New("busy, come back in ten minutes")
	b := sluice.Must(breaker.New("orders", breaker.WithErrorCount(1),
		breaker.WithClassifier(func(_ context.Context, err error) breaker.Verdict {
			switch {
			case errors.Is(err, errNotFound):
				return breaker.Verdict{Outcome: sluice.Success}
			case errors.Is(err, errBusy):
				return breaker.Verdict{Outcome: sluice.Throttled, TripFor: 10 * time.Minute}
			}
			return breaker.Verdict{} // the default decides
		})))
	for _, err := range []error{errNotFound, errBusy} {
		_ = b.Do(context.Background(), func(context.Context) error { return err })
		fmt.Println(b.State(), b.Snapshot().OpenFor)
	}
	// Output:
	// closed 0s
	// open 10m0s
}

// A group keeps one breaker for each key.
func ExampleGroup() {
	hosts := sluice.Must(breaker.NewGroup("upstream", breaker.WithErrorRatio(0.5),
		breaker.WithOverride("legacy", breaker.WithConsecutiveFailures(2))))
	for range 2 {
		_ = hosts.Get("legacy").Do(context.Background(), func(context.Context) error { return errDown })
	}
	fmt.Println(hosts.Get("legacy").State(), hosts.Get("orders").State(), hosts.Len())
	// Output: open closed 2
}

// Update changes a live breaker and keeps what it knows.
func ExampleBreaker_Update() {
	b := sluice.Must(breaker.New("payments", breaker.WithErrorCount(1), breaker.WithOpenFor(time.Hour), breaker.WithJitter(0)))
	_ = b.Do(context.Background(), func(context.Context) error { return errDown })
	c := b.Config()
	c.OpenFor = 10 * time.Minute
	fmt.Println(b.Update(c), b.State(), b.Snapshot().OpenFor)
	c.MinRequests = 0
	fmt.Println(b.Update(c))
	// Output:
	// <nil> open 10m0s
	// breaker: MinRequests 0 is not positive
}

// A rule can be tried out on real traffic before it refuses anything.
func ExampleBreaker_Force_shadow() {
	b := sluice.Must(breaker.New("payments", breaker.WithErrorCount(1)))
	_ = b.Force(breaker.Shadow, 0)
	for range 3 {
		_ = b.Do(context.Background(), func(context.Context) error { return errDown })
	}
	s := b.Snapshot()
	fmt.Println(s.State, s.Forced, "would have refused", s.Shadowed)
	// Output: open shadow would have refused 2
}
