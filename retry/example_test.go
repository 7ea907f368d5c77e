package retry_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/retry"
)

var errReset = errors.New("connection reset")

// failing returns a call that fails so many times before it succeeds.
func failing(times int) func(context.Context) error {
	return func(context.Context) error {
		if times > 0 {
			times--
			return errReset
		}
		return nil
	}
}

// A policy around a call that fails twice.
func Example() {
	policy := sluice.Must(retry.New("payments", retry.WithAttempts(3), retry.WithBackoff(time.Millisecond, time.Second)))
	attempts := 0
	call := failing(2)
	err := policy.Do(context.Background(), func(ctx context.Context) error {
		attempts++
		return call(ctx)
	})
	fmt.Println(attempts, err)
	// Output: 3 <nil>
}

// Call adds a result, CallOr a fallback.
func Example_fallback() {
	policy := sluice.Must(retry.New("prices", retry.WithBackoff(time.Millisecond, time.Millisecond)))
	price, err := sluice.CallOr(context.Background(), policy,
		func(context.Context) (int, error) { return 0, errReset },
		func(_ context.Context, cause error) (int, error) {
			fmt.Println(cause)
			return 42, nil
		})
	fmt.Println(price, err)
	// Output:
	// retry "prices": gave up after 3 attempts: connection reset
	// 42 <nil>
}

// Testing what happens when a call is given up needs no patience: a policy that never
// waits, and a call that always fails.
func Example_testingWhatIsGivenUp() {
	policy := sluice.Must(retry.New("payments", retry.WithBackoff(0, 0)))
	err := policy.Do(context.Background(), func(context.Context) error { return errReset })
	fmt.Println(errors.Is(err, retry.ErrGaveUp), errors.Is(err, errReset))
	// Output: true true
}

// The error tells how often the call was made and why not once more. It unwraps to the
// last error of the dependency.
func ExampleError() {
	policy := sluice.Must(retry.New("payments", retry.WithBackoff(time.Hour, time.Hour), retry.WithJitter(0)))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	err := policy.Do(ctx, failing(1)) // an hour is more than there is, so it does not wait at all
	if gaveUp, ok := errors.AsType[*retry.Error](err); ok {
		fmt.Println(gaveUp.Attempts(), gaveUp.Reason(), errors.Unwrap(err))
	}
	fmt.Println(err)
	// Output:
	// 1 deadline connection reset
	// retry "payments": gave up after 1 attempt, no time for another: connection reset
}

// One budget for all that repeats calls to one dependency. It is used up after a while
// when everything fails, and then calls are made once.
func ExampleBudget() {
	budget := sluice.Must(retry.NewBudget("payments", retry.WithRatio(0.1), retry.WithMinPerSecond(0.5)))
	read := sluice.Must(retry.New("payments read", retry.WithBudget(budget), retry.WithBackoff(0, 0)))
	write := sluice.Must(retry.New("payments write", retry.WithBudget(budget), retry.WithBackoff(0, 0)))
	for range 10 {
		_ = read.Do(context.Background(), failing(3))
		_ = write.Do(context.Background(), failing(3))
	}
	s := budget.Snapshot()
	fmt.Println(s.Deposits, "calls,", s.Withdrawals, "repeated,", s.Available, "left")
	// Output: 20 calls, 7 repeated, 0 left
}

// A dependency that asks for a wait gets it, if it is no longer than MaxRetryAfter.
func ExampleWithMaxRetryAfter() {
	policy := sluice.Must(retry.New("orders", retry.WithMaxRetryAfter(time.Second)))
	busy := sluice.WithRetryAfter(sluice.Mark(errors.New("too many requests"), sluice.Throttled), time.Hour)
	fmt.Println(policy.Do(context.Background(), func(context.Context) error { return busy }))
	// Output: retry "orders": gave up after 1 attempt, asked to wait for 1h0m0s: too many requests
}

// A classifier knows which errors another attempt can cure.
func ExampleWithClassifier() {
	errConflict := errors.New("version conflict")
	policy := sluice.Must(retry.New("documents", retry.WithClassifier(
		func(_ context.Context, err error) sluice.Outcome {
			if errors.Is(err, errConflict) {
				return sluice.Ignored // it would be the same again
			}
			return 0 // the default decides
		})))
	fmt.Println(policy.Do(context.Background(), func(context.Context) error { return errConflict }))
	// Output: version conflict
}

// Step by step, for code that has something to do between two attempts.
func ExampleAttempts() {
	policy := sluice.Must(retry.New("payments", retry.WithBackoff(time.Millisecond, time.Second), retry.WithJitter(0)))
	ctx, call := context.Background(), failing(1)
	err := func() error {
		a, err := policy.Begin(ctx)
		if err != nil {
			return err
		}
		for {
			wait, again := a.Next(ctx, call(ctx))
			if !again {
				return a.Err()
			}
			fmt.Println("again in", wait)
			if !a.Wait(ctx, wait) {
				return a.Err()
			}
		}
	}()
	fmt.Println(err)
	// Output:
	// again in 1ms
	// <nil>
}

// The first replica hangs. After the delay the second one is asked too, and wins.
func ExampleHedge() {
	hedger := sluice.Must(retry.NewHedger("search", 5*time.Millisecond))
	answer, err := retry.Hedge(context.Background(), hedger, func(ctx context.Context) (string, error) {
		if retry.AttemptOf(ctx) == 1 {
			<-ctx.Done() // until it has lost
			return "", ctx.Err()
		}
		return "from the second replica", nil
	}, nil)
	fmt.Println(answer, err)
	// Output: from the second replica <nil>
}

// Retries inside retries do not multiply: the inner policy repeats, the outer one takes
// its word.
func ExampleWithoutRetries() {
	inner := sluice.Must(retry.New("inner", retry.WithBackoff(0, 0)))
	outer := sluice.Must(retry.New("outer", retry.WithBackoff(0, 0)))
	calls := 0
	call := func(context.Context) error { calls++; return errReset }
	_ = sluice.Chain(outer, inner).Do(context.Background(), call)
	fmt.Println(calls)

	calls = 0
	_ = sluice.Chain(outer, inner).Do(retry.WithoutRetries(context.Background()), call)
	fmt.Println(calls)
	// Output:
	// 3
	// 1
}
