package bench

import (
	"sync/atomic"
	"testing"

	"github.com/zeromicro/go-zero/core/collection"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/slidingwindow"
)

// One success, written into 10 s in ten buckets. All but sluice-ring, which knows
// no time, read the clock for it.
//
// The window of aegis cannot be imported, but MarkSuccess of its breaker is just
// one record in it. Those of gobreaker and failsafe-go cannot be had apart.
func BenchmarkWindowRecord(b *testing.B) {
	run(b, "sluice-counts", func(b *testing.B) loops {
		w := sluice.Must(slidingwindow.NewCounts(span, buckets))
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					w.Record(0)
				}
			},
			parallel: func(_ *testing.B, pb *testing.PB) {
				for pb.Next() {
					w.Record(0)
				}
			},
		}
	})
	run(b, "sluice-leaparray", func(b *testing.B) loops {
		w := sluice.Must(slidingwindow.New[atomic.Int64](span, buckets))
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					w.Current().Add(1)
				}
			},
			parallel: func(_ *testing.B, pb *testing.PB) {
				for pb.Next() {
					w.Current().Add(1)
				}
			},
		}
	})
	run(b, "sluice-ring", func(b *testing.B) loops {
		w := sluice.Must(slidingwindow.NewRing(100))
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					w.Record(0)
				}
			},
			parallel: func(_ *testing.B, pb *testing.PB) {
				for pb.Next() {
					w.Record(0)
				}
			},
		}
	})
	run(b, "go-zero", func(b *testing.B) loops {
		w := collection.NewRollingWindow(func() *collection.Bucket[int64] { return new(collection.Bucket[int64]) }, buckets, span/buckets)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					w.Add(1)
				}
			},
			parallel: func(_ *testing.B, pb *testing.PB) {
				for pb.Next() {
					w.Add(1)
				}
			},
		}
	})
	run(b, "aegis", func(b *testing.B) loops {
		w := newAegis(ratio)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					w.MarkSuccess()
				}
			},
			parallel: func(_ *testing.B, pb *testing.PB) {
				for pb.Next() {
					w.MarkSuccess()
				}
			},
		}
	})
}
