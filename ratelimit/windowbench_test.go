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
