package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/ratelimit"
)

// A limiter sheds what is too much.
func ExampleLimiter_Allow() {
	limit, err := ratelimit.New("search", ratelimit.PerMinute(60), ratelimit.WithBurst(3))
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 5 {
		fmt.Print(limit.Allow(), " ")
	}
	// Output: true true true false false
}

// What there is to say about a decision is worked out when it is asked for.
func ExampleLimiter_Take() {
	limit := sluice.Must(ratelimit.New("export", ratelimit.PerHour(4)))
	for _, n := range []int64{3, 3, 5} {
		switch d := limit.Take(n); {
		case d.OK():
			fmt.Println(n, "taken,", d.Remaining(), "left")
		case d.Never():
			fmt.Println(n, "are more than there can ever be:", d.Capacity())
		default:
			fmt.Println(n, "again in", d.RetryAfter().Round(time.Minute))
		}
	}
	// Output:
	// 3 taken, 1 left
	// 3 again in 30m0s
	// 5 are more than there can ever be: 4
}

// Wait slows down, and knows when waiting is in vain.
func ExampleLimiter_Wait() {
	limit := sluice.Must(ratelimit.New("mail", ratelimit.Every(50*time.Millisecond)))
	began := time.Now()
	for range 3 {
		if err := limit.Wait(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(time.Since(began) >= 100*time.Millisecond)

	report := sluice.Must(ratelimit.New("report", ratelimit.PerDay(1)))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(report.Wait(ctx))
	err := report.Wait(ctx) // returns at once
	var limited *ratelimit.LimitError
	if errors.As(err, &limited) {
		fmt.Println(limited.Reason(), errors.Is(err, context.DeadlineExceeded))
	}
	// Output:
	// true
	// <nil>
	// deadline true
}

// A limiter is a Guard. What a guard further in refuses is not paid for.
func ExampleLimiter_Do() {
	limit := sluice.Must(ratelimit.New("orders", ratelimit.PerHour(2)))
	full := errors.Join(errors.New("the queue is full"), sluice.ErrRejected)
	for _, end := range []error{full, full, full, nil, errors.New("no such order"), nil} {
		err := limit.Do(context.Background(), func(context.Context) error { return end })
		switch {
		case errors.Is(err, ratelimit.ErrLimited):
			fmt.Println("limited")
		case errors.Is(err, sluice.ErrRejected):
			fmt.Println("refused further in")
		default:
			fmt.Println("made:", err)
		}
	}
	// Output:
	// refused further in
	// refused further in
	// refused further in
	// made: <nil>
	// made: no such order
	// limited
}

// What a call costs is often known only afterwards.
func ExampleLimiter_Debit() {
	bytes := sluice.Must(ratelimit.New("egress", ratelimit.PerHour(1000)))
	if bytes.Allow() { // there is something left
		sent := int64(1200)
		bytes.Debit(sent - 1)
	}
	d := bytes.Take(1)
	fmt.Println(d.OK(), d.RetryAfter().Round(time.Minute))
	// Output: false 12m0s
}

// A user who is over his own limit uses nothing up that others share.
func ExampleTakeAll() {
	everybody := sluice.Must(ratelimit.New("everybody", ratelimit.PerHour(3)))
	users := map[string]*ratelimit.Limiter{}
	for _, name := range []string{"ann", "bob", "eve"} {
		users[name] = sluice.Must(ratelimit.New(name, ratelimit.PerHour(2)))
	}
	for _, name := range []string{"ann", "ann", "ann", "ann", "bob", "eve"} {
		d := ratelimit.TakeAll(1, users[name].Layer(), everybody.Layer())
		if d.OK() {
			fmt.Println(name, "may go")
		} else {
			fmt.Println(name, "is refused by", d.Resource())
		}
	}
	// Output:
	// ann may go
	// ann may go
	// ann is refused by ann
	// ann is refused by ann
	// bob may go
	// eve is refused by everybody
}

// A handler that has to give back, or to tell all its limits, keeps their decisions.
func ExampleTakeEach() {
	user := sluice.Must(ratelimit.New("user", ratelimit.PerMinute(100)))
	all := sluice.Must(ratelimit.New("all", ratelimit.PerSecond(50)))
	layers := [...]ratelimit.Layer{user.Layer(), all.Layer()}
	var taken [len(layers)]ratelimit.Decision
	if d := ratelimit.TakeEach(taken[:], 10, layers[:]...); !d.OK() {
		fmt.Println(d.Err())
		return
	}
	for _, d := range taken {
		fmt.Println(d.Resource(), d.Limit(), d.Remaining())
	}
	for i, l := range layers { // the call was not made after all
		l.Refund(taken[i])
	}
	fmt.Println(user.Peek(0).Remaining(), all.Peek(0).Remaining())
	// Output:
	// user 100/m 90
	// all 50/s 40
	// 100 50
}

// The more important calls go first.
func ExamplePriorities() {
	limit := sluice.Must(ratelimit.NewPriorities("api", ratelimit.PerHour(10),
		ratelimit.WithClass(sluice.P0, 0.2, 0),
		ratelimit.WithClass(sluice.P1, 0, 0.25),
		ratelimit.WithClass(sluice.P2, 0, 0.5)))
	for _, p := range []sluice.Priority{sluice.P2, sluice.P1, sluice.P0} {
		n := 0
		for limit.Allow(p) {
			n++
		}
		fmt.Println(p, n)
	}
	// Output:
	// P2 5
	// P1 2
	// P0 3
}

// A new rate keeps what is there.
func ExampleLimiter_Update() {
	limit := sluice.Must(ratelimit.New("api", ratelimit.PerHour(100)))
	limit.Take(60)
	config := limit.Config()
	config.Rate = ratelimit.PerHour(1000)
	if err := limit.Update(config); err != nil {
		fmt.Println(err)
	}
	fmt.Println(limit.Peek(0).Remaining(), limit.Peek(0).Capacity())
	// Output: 40 1000
}

// A limiter that is blocked tries a fallback without a load test.
func ExampleBlocked() {
	limit := sluice.Must(ratelimit.New("prices", ratelimit.Blocked()))
	price, err := sluice.CallOr(context.Background(), limit,
		func(context.Context) (string, error) { return "fresh", nil },
		func(_ context.Context, cause error) (string, error) {
			if errors.Is(cause, ratelimit.ErrLimited) {
				return "of yesterday", nil
			}
			return "", cause
		})
	fmt.Println(price, err)
	// Output: of yesterday <nil>
}
