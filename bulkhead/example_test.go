package bulkhead_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/bulkhead"
)

// Two calls may be under way; a third is refused without being made.
func Example() {
	b := sluice.Must(bulkhead.New("payments", 2))
	ctx := context.Background()
	first, _ := b.Acquire(ctx)
	second, _ := b.Acquire(ctx)

	err := b.Do(ctx, func(context.Context) error {
		fmt.Println("not reached")
		return nil
	})
	fmt.Println(errors.Is(err, bulkhead.ErrFull), err)

	first.Close()
	err = b.Do(ctx, func(context.Context) error {
		fmt.Println("reached")
		return nil
	})
	fmt.Println(err)
	second.Close()
	// Output:
	// true bulkhead "payments": full
	// reached
	// <nil>
}

// Testing a fallback needs no load: close the bulkhead.
func Example_testingAFallback() {
	b := sluice.Must(bulkhead.New("prices", 64))
	price := func(context.Context) (int, error) { return 40, nil }
	cached := func(_ context.Context, cause error) (int, error) {
		fmt.Println("cached, because:", cause)
		return 42, nil
	}
	_ = b.SetLimit(0)
	p, _ := sluice.CallOr(context.Background(), b, price, cached)
	fmt.Println(p)
	// Output:
	// cached, because: bulkhead "prices": closed
	// 42
}

// The same bound for the same calls, twice. For calls that are waited for, a Bulkhead
// has their callers run them; a Pool hands them to workers and back, which takes about
// forty times as long as a place does. For work that nobody waits for, a Pool has a
// queue, futures and an orderly end.
func Example_bulkheadOrPool() {
	ctx := context.Background()
	callEight := func(guard sluice.Guard) {
		var running atomic.Int64
		var callers sync.WaitGroup
		for range 8 {
			callers.Go(func() {
				_ = guard.Do(ctx, func(context.Context) error {
					if running.Add(1) > 2 {
						fmt.Println("too many")
					}
					time.Sleep(time.Millisecond)
					running.Add(-1)
					return nil
				})
			})
		}
		callers.Wait()
	}

	b := sluice.Must(bulkhead.New("reports", 2, bulkhead.WithQueue(8, time.Minute)))
	callEight(b)
	fmt.Println("bulkhead:", b.Snapshot().Totals.Admitted)

	p := sluice.Must(bulkhead.NewPool("reports", 2, bulkhead.WithPoolQueue(8)))
	callEight(p)
	fmt.Println("pool:", p.Snapshot().Totals.Done)

	report, _ := bulkhead.Submit(ctx, p, func(context.Context) (string, error) { return "ready", nil })
	_ = p.Close(ctx) // lets what was submitted end, and waits for it
	fmt.Println(report.Wait(ctx))
	// Output:
	// bulkhead: 8
	// pool: 8
	// ready <nil>
}

// Acquire and Close are for code that begins and ends a call in different places.
func ExampleBulkhead_Acquire() {
	b := sluice.Must(bulkhead.New("downloads", 10))
	download := func(ctx context.Context) error {
		p, err := b.Acquire(ctx)
		if err != nil {
			return err
		}
		defer p.Close() // also after a panic
		fmt.Println(b.Snapshot().InFlight, "of", b.Snapshot().Limit)
		return nil
	}
	_ = download(context.Background())
	fmt.Println(b.Snapshot().InFlight, "of", b.Snapshot().Limit)
	// Output:
	// 1 of 10
	// 0 of 10
}

// Calls differ in size: here the places are megabytes.
func ExampleBulkhead_AcquireN() {
	memory := sluice.Must(bulkhead.New("memory", 1024))
	ctx := context.Background()
	large, err := memory.AcquireN(ctx, 800)
	fmt.Println(err)
	_, err = memory.AcquireN(ctx, 300)
	fmt.Println(err)
	large.Close()
	_, err = memory.AcquireN(ctx, 2048)
	fmt.Println(errors.Is(err, bulkhead.ErrExceedsCapacity), err)
	// Output:
	// <nil>
	// bulkhead "memory": full
	// true bulkhead "memory": more is asked for than there is
}

// Some may wait, for a while. A ctx that ends sooner ends the wait, with its own
// error.
func ExampleWithQueue() {
	b := sluice.Must(bulkhead.New("payments", 1, bulkhead.WithQueue(10, time.Millisecond)))
	p, _ := b.Acquire(context.Background())
	defer p.Close()
	_, err := b.Acquire(context.Background())
	fmt.Println(err)

	// With a longer wait, the ctx ends it.
	c := b.Config()
	c.MaxWait = math.MaxInt64
	_ = b.Update(c)
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	_, err = b.Acquire(ctx)
	fmt.Println(err)
	// Output:
	// bulkhead "payments": waited for too long
	// context deadline exceeded
}

// The limit changes while calls are under way, and nobody is made to wait for that.
func ExampleBulkhead_SetLimit() {
	b := sluice.Must(bulkhead.New("payments", 10))
	ctx := context.Background()
	first, _ := b.AcquireN(ctx, 5)
	_ = b.SetLimit(2)
	fmt.Println(b.Snapshot().InFlight, "of", b.Snapshot().Limit)
	_, err := b.Acquire(ctx)
	fmt.Println(err)
	first.Close()
	_, err = b.Acquire(ctx)
	fmt.Println(err)
	// Output:
	// 5 of 2
	// bulkhead "payments": full
	// <nil>
}

// The refusal says who refused, and why.
func ExampleFullError() {
	b := sluice.Must(bulkhead.New("payments", 0))
	_, err := b.Acquire(context.Background())
	if refused, ok := errors.AsType[*bulkhead.FullError](err); ok {
		fmt.Println(refused.Resource(), refused.Policy(), refused.Reason())
	}
	fmt.Println(errors.Is(err, sluice.ErrRejected))
	// Output:
	// payments bulkhead closed
	// true
}

// A bulkhead for each upstream, one of them smaller than the others.
func ExampleGroup() {
	hosts := sluice.Must(bulkhead.NewGroup("upstream", 100,
		bulkhead.WithOverride("legacy", bulkhead.WithLimit(5))))
	for _, host := range []string{"orders", "legacy"} {
		b := hosts.Get(host)
		fmt.Println(b.Name(), b.Config().Limit)
	}
	// Output:
	// upstream/orders 100
	// upstream/legacy 5
}

// Submit returns at once; the result comes when somebody waits for it.
func ExampleSubmit() {
	p := sluice.Must(bulkhead.NewPool("thumbnails", 4, bulkhead.WithPoolQueue(100)))
	ctx := context.Background()
	var futures []*bulkhead.Future[int]
	for i := range 5 {
		f, err := bulkhead.Submit(ctx, p, func(context.Context) (int, error) { return i * i, nil })
		if err != nil {
			fmt.Println(err) // the queue is full
			continue
		}
		futures = append(futures, f)
	}
	for _, f := range futures {
		fmt.Println(f.Wait(ctx))
	}
	fmt.Println(p.Close(ctx))
	// Output:
	// 0 <nil>
	// 1 <nil>
	// 4 <nil>
	// 9 <nil>
	// 16 <nil>
	// <nil>
}

// A panic ends its task, and nothing else.
func ExamplePanicError() {
	p := sluice.Must(bulkhead.NewPool("imports", 1))
	f, _ := bulkhead.Submit(context.Background(), p, func(context.Context) (int, error) {
		panic("no such column")
	})
	_, err := f.Wait(context.Background())
	if panicked, ok := errors.AsType[*bulkhead.PanicError](err); ok {
		fmt.Println(panicked.Value, len(panicked.Stack) > 0)
	}
	fmt.Println(p.Do(context.Background(), func(context.Context) error { return nil }))
	// Output:
	// no such column true
	// <nil>
}
