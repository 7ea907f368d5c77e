package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// Five failures in a row open the breaker: the sixth call is not made.
func Example_readme() {
	payments := sluice.Must(breaker.New("payments",
		breaker.WithConsecutiveFailures(5), breaker.WithSlowCallRatio(800*time.Millisecond, 0.5)))
	pay := func(context.Context) (string, error) { return "", errors.New("connection refused") }
	later := func(_ context.Context, cause error) (string, error) {
		return fmt.Sprint("we will charge you later: ", cause), nil
	}
	for range 6 {
		receipt, _ := sluice.CallOr(context.Background(), payments, pay, later)
		fmt.Println(receipt)
	}
	// Output:
	// we will charge you later: connection refused
	// we will charge you later: connection refused
	// we will charge you later: connection refused
	// we will charge you later: connection refused
	// we will charge you later: connection refused
	// we will charge you later: breaker "payments": open (5 of 5 errors in a row)
}
