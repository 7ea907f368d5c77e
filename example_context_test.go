package sluice_test

import (
	"context"
	"fmt"

	"github.com/sluicego/sluice"
)

// A priority set at the front door reaches every guard behind it.
func ExampleWithPriority() {
	serve := func(ctx context.Context) {
		if sluice.PriorityOf(ctx) > sluice.P1 {
			fmt.Println(sluice.PriorityOf(ctx), "is shed first")
			return
		}
		fmt.Println(sluice.PriorityOf(ctx), "is served")
	}
	request := context.Background()
	serve(request)
	serve(sluice.WithPriority(request, sluice.P0))
	serve(sluice.WithPriority(request, sluice.P2))
	// Output:
	// P1 is served
	// P0 is served
	// P2 is shed first
}

// A health check wants to know how the dependency is, not how the guards are.
func ExampleBypass() {
	guard := sluice.Chain(&door{shut: true})
	ping := func(context.Context) (string, error) { return "pong", nil }

	answer, err := sluice.Call(context.Background(), guard, ping)
	fmt.Printf("%q %v\n", answer, err)

	answer, err = sluice.Call(sluice.Bypass(context.Background()), guard, ping)
	fmt.Printf("%q %v\n", answer, err)
	// Output:
	// "" door: sluice: rejected
	// "pong" <nil>
}
