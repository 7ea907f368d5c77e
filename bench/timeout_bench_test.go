package bench

import (
	"context"
	"testing"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/adaptive"
)

// newAdaptiveTimeout has seen enough calls to have a limit of its own.
func newAdaptiveTimeout(ctx context.Context, b *testing.B) *adaptive.Timeout {
	to := sluice.Must(adaptive.NewTimeout("bench", 10*time.Millisecond, 5*time.Second))
	for to.Snapshot().State == adaptive.Cold {
		if err := to.Do(ctx, succeedWith); err != nil {
			b.Fatal(err)
		}
	}
	return to
}

// A time limit that follows how long calls take: asked for, around a call that
// succeeds in no time, and as the deadline of a context for it.
func BenchmarkTimeout(b *testing.B) {
	ctx := requestContext(b)
	run(b, "value", func(b *testing.B) loops {
		to := newAdaptiveTimeout(ctx, b)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if to.Value() == 0 {
						b.Fatal("no limit")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if to.Value() == 0 {
						b.Error("no limit")
						return
					}
				}
			},
		}
	})
	run(b, "begin-done", func(b *testing.B) loops {
		to := newAdaptiveTimeout(ctx, b)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					a, err := to.Begin(ctx)
					if err != nil {
						b.Fatal(err)
					}
					a.Done(nil)
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					a, err := to.Begin(ctx)
					if err != nil {
						b.Error(err)
						return
					}
					a.Done(nil)
				}
			},
		}
	})
	run(b, "context", func(b *testing.B) loops {
		to := newAdaptiveTimeout(ctx, b)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					a, err := to.Begin(ctx)
					if err != nil {
						b.Fatal(err)
					}
					_, cancel := a.Context(ctx)
					cancel()
					a.Done(nil)
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					a, err := to.Begin(ctx)
					if err != nil {
						b.Error(err)
						return
					}
					_, cancel := a.Context(ctx)
					cancel()
					a.Done(nil)
				}
			},
		}
	})
}
