package bench

import (
	"runtime"
	"testing"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/slidingwindow"
)

// What 10 000 breakers cost that nobody calls: MiB of heap and goroutines. Ours
// have three rules.
func BenchmarkIdleBreakers(b *testing.B) {
	idle(b, "sluice", "MiB", 1<<20, func() any { return newThreeRules(ratio) })
	idle(b, "gobreaker", "MiB", 1<<20, func() any { return newGobreaker(ratio) })
	idle(b, "failsafe", "MiB", 1<<20, func() any { return newFailsafe(ratio) })
	idle(b, "go-zero", "MiB", 1<<20, func() any { return newGoZero() })
	idle(b, "aegis", "MiB", 1<<20, func() any { return newAegis(ratio) })
}

// What a window of ten buckets costs that holds nothing, in bytes.
func BenchmarkIdleWindow(b *testing.B) {
	idle(b, "sluice-counts", "B/window", many, func() any { return sluice.Must(slidingwindow.NewCounts(span, buckets)) })
}

// many is how many objects idle makes.
const many = 10_000

// idle reports the heap that many objects take, in units of so many bytes, and
// how many goroutines they started. The time it took means nothing.
func idle(b *testing.B, name, unit string, bytes float64, build func() any) {
	b.Run(name, func(b *testing.B) {
		objects := make([]any, many)
		var heap, goroutines float64
		for b.Loop() {
			clear(objects)
			heapBefore, goroutinesBefore := inUse(), runtime.NumGoroutine()
			for i := range objects {
				objects[i] = build()
			}
			heap = (inUse() - heapBefore) / bytes
			goroutines = float64(runtime.NumGoroutine() - goroutinesBefore)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(heap, unit)
		b.ReportMetric(goroutines, "goroutines")
		runtime.KeepAlive(objects)
	})
}

// inUse is the heap in bytes after a collection.
func inUse() float64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
