package ratelimit_test

import (
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/ratelimit"
)

func ExampleKeyed() {
	perUser := sluice.Must(ratelimit.NewKeyed("users", ratelimit.PerHour(60), ratelimit.WithBurst(2)))
	for range 3 {
		fmt.Println(perUser.Allow("ann"))
	}
	fmt.Println(perUser.Allow("bob"))

	d := perUser.Take("ann", 1)
	fmt.Println(d.OK(), d.Remaining(), d.RetryAfter().Round(time.Minute))
	// Output:
	// true
	// true
	// false
	// true
	// false 0 1m0s
}

// A limit for each user and path, without building a string of them.
func ExampleKeyed_Take2() {
	perPath := sluice.Must(ratelimit.NewKeyed("users", ratelimit.PerHour(60), ratelimit.WithBurst(1)))
	fmt.Println(perPath.Take2("ann", "/orders", 1).OK())
	fmt.Println(perPath.Take2("ann", "/orders", 1).OK())
	fmt.Println(perPath.Take2("ann", "/search", 1).OK())
	// Output:
	// true
	// false
	// true
}

// Users have the limit of their plan.
func ExampleKeyed_Class() {
	perUser := sluice.Must(ratelimit.NewKeyed("users", ratelimit.PerMinute(60),
		ratelimit.WithKeyClass("gold", ratelimit.PerSecond(100), 200),
		ratelimit.WithKeyClass("staff", ratelimit.Unlimited(), ratelimit.Auto)))
	for _, plan := range []string{"free", "gold", "staff"} {
		d := perUser.Class(plan).Take("somebody on "+plan, 1)
		fmt.Println(d.Limit())
	}
	// Output:
	// 60/m
	// 100/s
	// unlimited
}

// From the most specific to the most general: all agree, or nothing is taken.
func ExampleTakeAll_keyed() {
	perUser := sluice.Must(ratelimit.NewKeyed("users", ratelimit.PerMinute(2)))
	perAPI := sluice.Must(ratelimit.NewKeyedExact("routes", ratelimit.PerMinute(100), ratelimit.WithKey("POST /pay", ratelimit.PerMinute(1))))
	global := sluice.Must(ratelimit.New("global", ratelimit.PerSecond(1000)))

	ask := func(user, route string) {
		d := ratelimit.TakeAll(1, perUser.By(user), perAPI.By(route), global.Layer())
		if err := d.Err(); err != nil {
			fmt.Println(user, "is refused by", d.Resource())
			return
		}
		fmt.Println(user, "may go")
	}
	ask("ann", "POST /pay")
	ask("bob", "POST /pay")
	ask("bob", "GET /orders")
	ask("bob", "GET /orders")
	ask("bob", "GET /orders")
	// Output:
	// ann may go
	// bob is refused by routes/POST /pay
	// bob may go
	// bob may go
	// bob is refused by users
}

func ExampleHotParameters() {
	products := sluice.Must(ratelimit.NewHotParameters("product", ratelimit.PerMinute(2),
		ratelimit.WithException("on sale", ratelimit.PerMinute(5), ratelimit.Auto)))
	for range 7 {
		products.Allow("on sale")
		products.Allow("shoe")
	}
	for _, hot := range products.TopRejected(3) {
		fmt.Println(hot.Key)
	}
	// Output:
	// shoe
	// on sale
}
