package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/ratelimit"
)

// All of a limit may be used at once, but not again before the window has slid on.
func ExampleSlidingWindow() {
	limit := sluice.Must(ratelimit.NewSlidingWindow("search", ratelimit.PerHour(1000)))
	fmt.Println(limit.AllowN(999), limit.Allow(), limit.Allow())
	d := limit.Peek(1)
	fmt.Println(d.Remaining(), "left, again within two hours:", d.RetryAfter() < 2*time.Hour)
	// Output:
	// true true false
	// 0 left, again within two hours: true
}

// Five attempts in ten minutes; who goes on guessing keeps the door shut.
func ExampleSlidingLog() {
	attempts := sluice.Must(ratelimit.NewSlidingLog("login",
		ratelimit.Rate{Tokens: 5, Per: 10 * time.Minute}, ratelimit.WithRejectedCounted()))
	for range 5 {
		attempts.Allow()
	}
	d := attempts.Take(1)
	fmt.Println(d.OK(), "again in", d.RetryAfter().Round(time.Minute))
	// Output: false again in 10m0s
}

// A partner cuts off at 100 a minute, however he counts. A quarter of that may go at
// once, and the rest comes evenly.
func ExampleStrictWindow() {
	limit := sluice.Must(ratelimit.NewStrictWindow("partner", ratelimit.PerMinute(100), ratelimit.WithShare(0.25)))
	n := 0
	for limit.Allow() {
		n++
	}
	d := limit.Peek(1)
	fmt.Println(n, "at once, the next in", d.RetryAfter().Round(time.Millisecond))
	fmt.Println("never more than", d.Limit())
	// Output:
	// 25 at once, the next in 789ms
	// never more than 100/m
}

// Calls go one after the other, however they come; who would have to wait for too long
// is told so at once.
func ExamplePacer() {
	mail := sluice.Must(ratelimit.NewPacer("mail", ratelimit.Every(20*time.Millisecond), ratelimit.WithMaxWait(time.Second)))
	began := time.Now()
	for range 3 {
		if err := mail.Wait(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println("at least 40 ms:", time.Since(began) >= 40*time.Millisecond)

	report := sluice.Must(ratelimit.NewPacer("report", ratelimit.PerDay(1), ratelimit.WithMaxWait(48*time.Hour)))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	fmt.Println(report.Wait(ctx))
	err := report.Wait(ctx)
	fmt.Println(errors.Is(err, ratelimit.ErrLimited), errors.Is(err, context.DeadlineExceeded))
	// Output:
	// at least 40 ms: true
	// <nil>
	// true true
}

// A database that was just started gets a third of the calls, and all of them when it
// has been in use for a minute.
func ExampleWarmUp() {
	limit := sluice.Must(ratelimit.NewWarmUp("db", ratelimit.PerSecond(900), time.Minute))
	s := limit.Snapshot()
	fmt.Printf("%.0f %% of %v\n", 100*s.Share, s.Rate)
	err := limit.Do(context.Background(), func(context.Context) error { return nil })
	fmt.Println(err)
	// Output:
	// 33 % of 900/s
	// <nil>
}
