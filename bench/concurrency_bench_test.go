package bench

import (
	"testing"

	failsafe "github.com/failsafe-go/failsafe-go/adaptivelimiter"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/adaptive"
)

// A call under a limit that follows how long calls take: leave to begin it, and telling
// how it ended. Both measure the time of the call. Only sluice looks at the ctx, counts
// admissions and ends, and gives a permit that can be settled but once.
func BenchmarkConcurrencyLimit(b *testing.B) {
	ctx := requestContext(b)
	run(b, "sluice", func(*testing.B) loops {
		l := sluice.Must(adaptive.NewLimiter("bench", adaptive.WithLimits(places, places), adaptive.WithInitialLimit(places)))
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					p, err := l.Acquire(ctx)
					if err != nil {
						b.Fatal(err)
					}
					p.Done(nil)
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					p, err := l.Acquire(ctx)
					if err != nil {
						b.Error(err)
						return
					}
					p.Done(nil)
				}
			},
		}
	})
	run(b, "sluice-do", func(*testing.B) loops {
		l := sluice.Must(adaptive.NewLimiter("bench", adaptive.WithLimits(places, places), adaptive.WithInitialLimit(places)))
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if err := l.Do(ctx, succeedWith); err != nil {
						b.Fatal(err)
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if err := l.Do(ctx, succeedWith); err != nil {
						b.Error(err)
						return
					}
				}
			},
		}
	})
	run(b, "failsafe", func(*testing.B) loops {
		l := failsafe.NewBuilder[int]().WithLimits(places, places, places).Build()
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					p, err := l.AcquirePermit(ctx)
					if err != nil {
						b.Fatal(err)
					}
					p.Record()
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					p, err := l.AcquirePermit(ctx)
					if err != nil {
						b.Error(err)
						return
					}
					p.Record()
				}
			},
		}
	})
}

// A call that is refused at once because as many are under way as may.
func BenchmarkConcurrencyLimitFull(b *testing.B) {
	ctx := requestContext(b)
	run(b, "sluice", func(b *testing.B) loops {
		l := sluice.Must(adaptive.NewLimiter("bench", adaptive.WithLimits(1, 1), adaptive.WithInitialLimit(1)))
		p, err := l.Acquire(ctx)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(p.Close)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := l.Acquire(ctx); err == nil {
						b.Fatal("admitted")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := l.Acquire(ctx); err == nil {
						b.Error("admitted")
						return
					}
				}
			},
		}
	})
	run(b, "failsafe", func(b *testing.B) loops {
		l := failsafe.NewBuilder[int]().WithLimits(1, 1, 1).Build()
		if _, ok := l.TryAcquirePermit(); !ok {
			b.Fatal("refused")
		}
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, ok := l.TryAcquirePermit(); ok {
						b.Fatal("admitted")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, ok := l.TryAcquirePermit(); ok {
						b.Error("admitted")
						return
					}
				}
			},
		}
	})
}
