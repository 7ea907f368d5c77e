package ratelimit

import (
	"testing"
	"time"

	"github.com/sluicego/sluice"
)

func BenchmarkSlidingWindow(b *testing.B) {
	wide := sluice.Must(NewSlidingWindow("bench", Rate{10_000_000, time.Millisecond}))
	full := sluice.Must(NewSlidingWindow("bench", PerDay(1)))
	full.Take(1)
	benchTake(b, wide, full)
}

func BenchmarkSlidingLog(b *testing.B) {
	wide := sluice.Must(NewSlidingLog("bench", Rate{10, time.Nanosecond}))
	full := sluice.Must(NewSlidingLog("bench", Rate{1000, day}))
	full.Take(1000)
	benchTake(b, wide, full)
}

func BenchmarkStrictWindow(b *testing.B) {
	wide := sluice.Must(NewStrictWindow("bench", Rate{10, time.Nanosecond}))
	full := sluice.Must(NewStrictWindow("bench", PerDay(1)))
	full.Take(1)
	benchTake(b, wide, full)
}

func BenchmarkPacer(b *testing.B) {
	wide := sluice.Must(NewPacer("bench", Rate{10, time.Nanosecond}))
	full := sluice.Must(NewPacer("bench", PerDay(1)))
	full.Take(1)
	benchTake(b, wide, full)
}

func BenchmarkWarmUp(b *testing.B) {
	// It gets what it can while it is cold, and warm, and never runs out.
	wide := sluice.Must(NewWarmUp("bench", PerSecond(1_000_000), day, WithBurst(80_000_000_000)))
	full := sluice.Must(NewWarmUp("bench", PerDay(1), time.Minute))
	full.Take(1)
	benchTake(b, wide, full)
}

func benchTake(b *testing.B, wide, full interface{ Take(n int64) Decision }) {
	b.Run("take", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !wide.Take(1).OK() {
				b.Fatal("refused")
			}
		}
	})
	b.Run("refuse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if full.Take(1).OK() {
				b.Fatal("admitted")
			}
		}
	})
	b.Run("refuse in parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				full.Take(1)
			}
		})
	})
}
