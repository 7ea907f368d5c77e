package bench

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// loops is one operation in two loops: alone, and with another goroutine. The
// operation is written out in both, because calling it through a function value
// would be measured too.
type loops struct {
	serial   func(b *testing.B)
	parallel func(b *testing.B, pb *testing.PB)
}

// run measures both loops of name, each on an object of its own that build makes.
func run(b *testing.B, name string, build func(b *testing.B) loops) {
	b.Run(name, func(b *testing.B) {
		b.Run("serial", func(b *testing.B) {
			b.ReportAllocs()
			build(b).serial(b)
		})
		b.Run("parallel", func(b *testing.B) {
			b.ReportAllocs()
			l := build(b)
			before, _ := pingpong()
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) { l.parallel(b, pb) })
			b.StopTimer()
			if after, ok := pingpong(); ok {
				b.ReportMetric(float64(before+after)/2, "pingpong-ns")
			}
		})
	})
}

// contextKey is a key of requestContext.
type contextKey int

// requestContext is a ctx such as a request has: one cancel and three values.
func requestContext(b *testing.B) context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	b.Cleanup(cancel)
	for key := range contextKey(3) {
		ctx = context.WithValue(ctx, key, key)
	}
	return ctx
}

const (
	pong = iota
	ping
	over
)

// rally is a cache line that two goroutines hand to and fro.
type rally struct {
	_ [128]byte // the line before, which prefetchers fetch along with the next
	// turn is ping, written by serve, until answer writes pong; over ends it.
	turn atomic.Uint32
	_    [124]byte
}

// serve sends the line once and waits for it to come back.
func (r *rally) serve() {
	r.turn.Store(ping)
	for r.turn.Load() == ping {
	}
}

// answer sends the line back each time, until it is over.
func (r *rally) answer() {
	for {
		switch r.turn.Load() {
		case ping:
			r.turn.Store(pong)
		case over:
			return
		}
	}
}

// pingpong is how long a cache line takes from one core to another and back, in
// the best of many short tries: a try during which the system ran something else
// says nothing about the line. It is false if there is only one core to use.
func pingpong() (roundTrip time.Duration, ok bool) {
	if runtime.GOMAXPROCS(0) < 2 {
		return 0, false
	}
	const (
		rounds = 20
		enough = 2 * time.Millisecond
	)
	var r rally
	go r.answer()
	defer r.turn.Store(over)
	r.serve() // the other goroutine has started
	best := time.Hour
	for begin := time.Now(); time.Since(begin) < enough; {
		start := time.Now()
		for range rounds {
			r.serve()
		}
		best = min(best, time.Since(start))
	}
	return best / rounds, true
}
