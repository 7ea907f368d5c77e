package slidingwindow_test

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/slidingwindow"
)

func ExampleCounts() {
	window, err := slidingwindow.NewCounts(10*time.Second, 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := slidingwindow.Now()
	for range 7 {
		window.RecordAt(now, 0) // a fast success
	}
	window.RecordAt(now, slidingwindow.Failed)
	window.RecordAt(now, slidingwindow.Slow)
	window.RecordAt(now, slidingwindow.Failed|slidingwindow.Slow)

	s := window.SumAt(now)
	fmt.Printf("%d of %d calls failed, %d were slow\n", s.Failures, s.Total, s.Slow)
	later := now + int64(10*time.Second)
	fmt.Printf("ten seconds later: %d calls\n", window.SumAt(later).Total)
	// Output:
	// 2 of 10 calls failed, 2 were slow
	// ten seconds later: 0 calls
}

// Counters of one's own: how many bytes went out, and in how many responses.
func ExampleLeapArray() {
	type traffic struct{ responses, bytes atomic.Int64 }
	window, err := slidingwindow.New[traffic](time.Minute, 6)
	if err != nil {
		fmt.Println(err)
		return
	}
	sent := func(now, size int64) {
		t := window.At(now) // Current() reads the clock itself
		t.responses.Add(1)
		t.bytes.Add(size)
	}
	const second = int64(time.Second)
	sent(3*second, 100)
	sent(7*second, 200)
	sent(31*second, 400)

	for _, now := range []int64{31 * second, 60 * second, 90 * second} {
		var responses, bytes int64
		for _, t := range window.AllAt(now) {
			responses += t.responses.Load()
			bytes += t.bytes.Load()
		}
		fmt.Printf("at %v: %d responses, %d bytes\n", time.Duration(now), responses, bytes)
	}
	// Output:
	// at 31s: 3 responses, 700 bytes
	// at 1m0s: 1 responses, 400 bytes
	// at 1m30s: 0 responses, 0 bytes
}

func ExampleRing() {
	window, err := slidingwindow.NewRing(4)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range []slidingwindow.Event{
		slidingwindow.Failed,
		slidingwindow.Failed,
		0,
		slidingwindow.Slow,
		0, // the first failure leaves for this one
	} {
		window.Record(e)
	}
	s := window.Sum()
	fmt.Printf("of the last %d calls %d failed and %d were slow\n", s.Total, s.Failures, s.Slow)
	// Output:
	// of the last 4 calls 1 failed and 1 were slow
}

func ExampleHistogram() {
	latency, err := slidingwindow.NewHistogram(16)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i := range 100 {
		latency.Record(time.Duration(i+1) * time.Millisecond)
	}
	fmt.Println("median:", latency.Quantile(0.5))
	fmt.Println("p99:", latency.Quantile(0.99))
	// Output:
	// median: 50.331648ms
	// p99: 100.663296ms
}

// Calls that a time limit cut off belong in the answer: it grows past the
// limit as soon as one of them is let run.
func ExampleHistogram_RecordCensored() {
	latency, err := slidingwindow.NewHistogram(8)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 90 {
		latency.Record(10 * time.Millisecond)
	}
	for range 10 {
		latency.RecordCensored(20 * time.Millisecond)
	}
	fmt.Println("p90:", latency.Quantile(0.90))
	fmt.Println("p99 is known:", latency.Quantile(0.99) < 1<<63-1)
	latency.Record(300 * time.Millisecond)
	fmt.Println("p99:", latency.Quantile(0.99))
	// Output:
	// p90: 10.48576ms
	// p99 is known: false
	// p99: 301.989888ms
}
