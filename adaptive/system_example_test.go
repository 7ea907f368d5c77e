package adaptive_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/adaptive"
)

func ExampleSystem() {
	system := sluice.Must(adaptive.NewSystem("gateway",
		adaptive.WithCPU(0.8),
		adaptive.WithEntryQPS(5000),
		adaptive.WithConcurrency(300),
	))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go system.Run(ctx) // for as long as the process serves

	err := system.Do(ctx, func(context.Context) error {
		fmt.Println("served")
		return nil
	})
	if errors.Is(err, adaptive.ErrOverload) {
		fmt.Println("503:", err)
	}
	// Output: served
}

// The least important calls are refused first: mark them where they come in.
func ExampleSystem_Allow() {
	system := sluice.Must(adaptive.NewSystem("gateway"))
	ctx := sluice.WithPriority(context.Background(), sluice.P2)

	p, err := system.Allow(ctx)
	if err != nil {
		fmt.Println("come back later:", err)
		return
	}
	defer p.Close()
	fmt.Println("report built")
	p.Done(nil)
	// Output: report built
}

// Tell the System how long calls wait in a queue of your own; that is the earliest sign
// of an overload.
func ExampleSystem_ObserveDelay() {
	system := sluice.Must(adaptive.NewSystem("workers", adaptive.WithQueueDelay(20*time.Millisecond)))
	queue := make(chan time.Time, 100)
	queue <- time.Now()

	came := <-queue
	system.ObserveDelay(time.Since(came))
	fmt.Println(system.Snapshot().Probability)
	// Output: 0
}

// How to test what a handler does in overload, without making one: a rule that a single
// call exceeds. There must be no other, for the machine that tests may itself be busy.
func ExampleSystem_fallback() {
	rule := adaptive.SystemConfig{Mode: adaptive.Hard, Concurrency: 1}
	system := sluice.Must(adaptive.NewSystem("test", adaptive.WithSystemConfig(rule)))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go system.Run(ctx)
	for !system.Snapshot().Running || len(system.Snapshot().Signals) == 0 {
		time.Sleep(10 * time.Millisecond) // Run looks in real time
	}

	_ = system.Do(ctx, func(ctx context.Context) error { // is under way
		err := system.Do(ctx, func(context.Context) error { return nil })
		var refusal *adaptive.OverloadError
		fmt.Println(errors.As(err, &refusal), refusal.Signal(), refusal.Threshold())
		return nil
	})
	// Output: true concurrency 1
}
