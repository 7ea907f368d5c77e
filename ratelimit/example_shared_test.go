package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/ratelimit"
)

// patient lets no example depend on how fast a machine is: a store in memory answers in
// a microsecond, but who asks it may be held up for longer than 20 ms.
var patient = ratelimit.WithStoreTimeout(time.Minute)

// Two nodes share a limit of three calls a day. In a fleet the store is one that
// all processes reach, and each runs Run for as long as it serves.
func ExampleShared() {
	store := sluice.Must(ratelimit.NewMemoryStore(1000))
	a := sluice.Must(ratelimit.NewShared("api", store, ratelimit.Global(ratelimit.PerDay(3)), patient))
	b := sluice.Must(ratelimit.NewShared("api", store, ratelimit.Global(ratelimit.PerDay(3)), patient))

	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go a.Run(ctx)
	go b.Run(ctx)

	admitted := 0
	for range 10 {
		for _, node := range []*ratelimit.Shared{a, b} {
			if node.Allow() {
				admitted++
			}
		}
	}
	fmt.Println("admitted by both together:", admitted)
	// Output: admitted by both together: 3
}

// Each user has a limit of his own, whichever node he comes to; one tenant has more.
func ExampleSharedGroup() {
	store := sluice.Must(ratelimit.NewMemoryStore(1000))
	users := sluice.Must(ratelimit.NewSharedGroup("users", store, ratelimit.Global(ratelimit.PerDay(2)),
		ratelimit.WithStrict(), patient,
		ratelimit.WithSharedOverride("gold", ratelimit.WithSharedThreshold(ratelimit.Global(ratelimit.PerDay(4))))))

	for _, user := range []string{"ann", "bob", "gold"} {
		admitted := 0
		for users.Get(user).Allow() {
			admitted++
		}
		fmt.Println(user, admitted)
	}
	// Output:
	// ann 2
	// bob 2
	// gold 4
}

// unreachable is a store that cannot be reached, for a test of what happens then.
type unreachable struct{ ratelimit.Store }

func (unreachable) Take(context.Context, ratelimit.StoreKey, ratelimit.Quota, ratelimit.Ask) (ratelimit.Grant, error) {
	return ratelimit.Grant{}, errors.New("connection refused")
}

// How to test a fallback: one node of ten, whose store is gone, keeps to its share.
func ExampleWithFailure() {
	for _, policy := range []ratelimit.FailurePolicy{ratelimit.FailLocal, ratelimit.FailOpen, ratelimit.FailClosed} {
		s := sluice.Must(ratelimit.NewShared("api", unreachable{}, ratelimit.Global(ratelimit.PerHour(100)),
			ratelimit.WithNodes(10), ratelimit.WithFailure(policy)))
		admitted := 0
		for range 50 {
			if s.Allow() {
				admitted++
			}
		}
		fmt.Printf("%-6v %2d of 50, %v\n", policy, admitted, s.Snapshot().Node.Mode)
	}
	// Output:
	// local  10 of 50, fallback
	// open   50 of 50, fallback
	// closed  0 of 50, fallback
}

// A user's own limit, and one that all users share in the whole fleet. What the store
// is asked about comes last, so that a user who is over his own limit costs nothing.
func ExampleShared_Layer() {
	store := sluice.Must(ratelimit.NewMemoryStore(1000))
	user := sluice.Must(ratelimit.New("user", ratelimit.PerDay(2)))
	everybody := sluice.Must(ratelimit.NewShared("everybody", store, ratelimit.Global(ratelimit.PerDay(100)), ratelimit.WithStrict(), patient))
	for range 3 {
		d := ratelimit.TakeAll(1, user.Layer(), everybody.Layer())
		fmt.Println(d.OK(), d.Resource())
	}
	fmt.Println(everybody.Snapshot().Remaining, "left for everybody")
	// Output:
	// true user
	// true user
	// false user
	// 98 left for everybody
}

// Who would rather be late than refused waits, in the order in which all callers of
// all nodes came.
func ExampleShared_Wait() {
	store := sluice.Must(ratelimit.NewMemoryStore(1000))
	s := sluice.Must(ratelimit.NewShared("mail", store, ratelimit.Global(ratelimit.Every(20*time.Millisecond)), ratelimit.WithBurst(1), patient))
	began := time.Now()
	for range 3 {
		if err := s.Wait(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(time.Since(began) >= 40*time.Millisecond)

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	daily := sluice.Must(ratelimit.NewShared("report", store, ratelimit.Global(ratelimit.PerDay(1)), patient))
	fmt.Println(daily.Wait(ctx))
	fmt.Println(errors.Is(daily.Wait(ctx), context.DeadlineExceeded), "at once")
	// Output:
	// true
	// <nil>
	// true at once
}
