package ratelimit

import (
	"testing"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// What a limiter costs beyond the clock. The comparison with other libraries is in
// bench.
func BenchmarkClock(b *testing.B) {
	for b.Loop() {
		clock.Now()
	}
}

func plenty(opts ...Option) *Limiter {
	return sluice.Must(New("bench", PerSecond(1_000_000_000), opts...))
}

func empty(opts ...Option) *Limiter {
	return sluice.Must(New("bench", Every(maxPer), append(opts, WithInitial(0))...))
}

func BenchmarkAllow(b *testing.B) {
	b.Run("counted", func(b *testing.B) { allow(b, plenty()) })
	b.Run("uncounted", func(b *testing.B) { allow(b, plenty(WithoutTotals())) })
}

func allow(b *testing.B, l *Limiter) {
	b.ReportAllocs()
	for b.Loop() {
		if !l.Allow() {
			b.Fatal("refused")
		}
	}
}

func BenchmarkDeny(b *testing.B) {
	b.Run("counted", func(b *testing.B) { deny(b, empty()) })
	b.Run("uncounted", func(b *testing.B) { deny(b, empty(WithoutTotals())) })
}

func deny(b *testing.B, l *Limiter) {
	b.ReportAllocs()
	for b.Loop() {
		if l.Allow() {
			b.Fatal("admitted")
		}
	}
}

func BenchmarkTakeRemaining(b *testing.B) {
	l := plenty()
	b.ReportAllocs()
	for b.Loop() {
		if l.Take(1).Remaining() < 0 {
			b.Fatal("refused")
		}
	}
}

func BenchmarkLayers(b *testing.B) {
	b.Run("admitted", func(b *testing.B) {
		one, two, three := plenty(WithoutTotals()), plenty(WithoutTotals()), plenty(WithoutTotals())
		b.ReportAllocs()
		for b.Loop() {
			if !TakeAll(1, one.Layer(), two.Layer(), three.Layer()).OK() {
				b.Fatal("refused")
			}
		}
	})
	b.Run("refused", func(b *testing.B) {
		one, two, three := plenty(), plenty(), empty(WithoutTotals())
		b.ReportAllocs()
		for b.Loop() {
			if TakeAll(1, one.Layer(), two.Layer(), three.Layer()).OK() {
				b.Fatal("admitted")
			}
		}
	})
}

func BenchmarkDo(b *testing.B) {
	l, ctx := plenty(), b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if l.Do(ctx, nothing) != nil {
			b.Fatal("refused")
		}
	}
}
