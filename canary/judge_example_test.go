package canary_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/canary"
)

// A Judge compares the two versions of a rollout. Here the canary fails for every fifth of
// its users.
func ExampleJudge() {
	picker := sluice.Must(canary.New("checkout", "v1", canary.WithVersion("v2", 0, canary.Percent(10))))
	judge := sluice.Must(canary.NewJudge("checkout", canary.WithWarmUp(0)))
	err := judge.Begin(canary.Trial{
		Canary: "v2", CanaryWeight: canary.Percent(10),
		Stable: "v1", StableWeight: canary.Percent(90), Generation: picker.Generation(),
	})
	if err != nil {
		fmt.Println(err)
	}

	ofCanary := 0
	for i := range 1000 {
		d := picker.Decide(canary.Input{ID: fmt.Sprint("user-", i)})
		_ = judge.Do(context.Background(), d, func(context.Context) error {
			if d.Version.Name() == "v2" {
				if ofCanary++; ofCanary%5 == 0 {
					return errors.New("500")
				}
			}
			return nil
		})
	}
	v := judge.Verdict()
	fmt.Println(v.Result, "for", v.Metric)
	fmt.Println(v.CanarySeen.Failures, "of", v.CanarySeen.Requests, "calls failed")
	// Output:
	// fail for errors
	// 21 of 108 calls failed
}

// A Controller takes a version up its ladder while the Judge agrees. Run looks every
// second; Tick is one look, for this example.
func ExampleController() {
	picker := sluice.Must(canary.New("checkout", "v1", canary.WithVersion("v2", 0, 0)))
	judge := sluice.Must(canary.NewJudge("checkout", canary.WithWarmUp(0)))
	controller := sluice.Must(canary.NewController(picker, judge,
		canary.WithSteps(canary.Percent(5), canary.Percent(50), canary.All),
		canary.WithMinHold(0), // minutes, where there is no reader who waits
		canary.WithOnRamp(func(e canary.ControllerEvent) {
			fmt.Printf("%v: %v to %v, %v\n", e.Kind, e.From, e.To, e.Moved)
		})))

	if err := controller.Start("v2"); err != nil {
		fmt.Println(err)
	}
	for id := 0; controller.Status().State == canary.ControllerRamping; {
		for range 1000 {
			d := picker.Decide(canary.Input{ID: fmt.Sprint("user-", id)})
			failed := d.Version.Name() == "v2" && id > 1500 // it breaks in the second step
			judge.Observe(d, outcomeOf(failed), 10*time.Millisecond)
			id++
		}
		controller.Tick()
	}
	// Output:
	// started: 0% to 5%, v1→v2 5%
	// stepped: 5% to 50%, v1→v2 45%
	// reverted: 50% to 0%, v2→v1 50%
}

func outcomeOf(failed bool) sluice.Outcome {
	if failed {
		return sluice.Failure
	}
	return sluice.Success
}

// A Schedule raises a weight by the clock: the same on every replica.
func ExampleSchedule() {
	noon := time.Date(2026, time.September, 1, 12, 0, 0, 0, time.UTC)
	s := sluice.Must(canary.ExponentialSchedule(noon, time.Hour, canary.Percent(1), canary.All))
	for _, minutes := range []int{0, 15, 30, 45, 60} {
		fmt.Println(minutes, s.At(noon.Add(time.Duration(minutes)*time.Minute)))
	}
	// Output:
	// 0 1%
	// 15 3.1622%
	// 30 10%
	// 45 31.6227%
	// 60 100%
}

// An id has its instance on every replica, and another one only while that is too busy.
func ExampleUpstreams() {
	upstreams := sluice.Must(canary.NewUpstreams("checkout-v2",
		canary.WithUpstreams("10.0.0.1:8080", "10.0.0.2:8080", "10.0.0.3:8080")))

	where := map[string]bool{}
	for range 3 {
		lease, err := upstreams.Acquire("user-42")
		if err != nil {
			fmt.Println(err) // no instance is up
			return
		}
		where[lease.Upstream().Name()] = true
		lease.Done()
	}
	fmt.Println(len(where), "instance for one user")

	first, _ := upstreams.Acquire("user-42")
	second, _ := upstreams.Acquire("user-42") // two of two would be more than its share
	fmt.Println("the same while it is busy:", first.Upstream() == second.Upstream())
	first.Done()
	second.Done()
	// Output:
	// 1 instance for one user
	// the same while it is busy: false
}
