package breaker_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// requestContext is a ctx as a request has one: it can be cancelled, and carries
// three values.
func requestContext(tb testing.TB) context.Context {
	type key int
	ctx, cancel := context.WithCancel(context.Background())
	tb.Cleanup(cancel)
	for k := range key(3) {
		ctx = context.WithValue(ctx, k, k)
	}
	return ctx
}

func threeRules(tb testing.TB) *breaker.Breaker {
	b, err := breaker.New("b", breaker.WithSlowCallRatio(time.Second, 0.5), breaker.WithErrorRatio(0.5), breaker.WithErrorCount(1000))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func errorRules(tb testing.TB) *breaker.Breaker {
	b, err := breaker.New("b", breaker.WithErrorRatio(0.5), breaker.WithErrorCount(1000))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func succeed(context.Context) error { return nil }

func both(b *testing.B, name string, f func(ctx context.Context)) {
	ctx := requestContext(b)
	b.Run(name+"/serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f(ctx)
		}
	})
	b.Run(name+"/parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				f(ctx)
			}
		})
	})
}

func BenchmarkClosed(b *testing.B) {
	for name, br := range map[string]*breaker.Breaker{"latency": threeRules(b), "errors": errorRules(b)} {
		both(b, name, func(ctx context.Context) {
			p, err := br.Allow(ctx)
			if err != nil {
				b.Fatal(err)
			}
			p.Done(nil)
		})
		both(b, name+"-do", func(ctx context.Context) { _ = br.Do(ctx, succeed) })
		both(b, name+"-call", func(ctx context.Context) {
			_, _ = sluice.Call(ctx, sluice.Guard(br), func(context.Context) (int, error) { return 1, nil })
		})
	}
}

func BenchmarkChain(b *testing.B) {
	chain := sluice.Chain(errorRules(b), errorRules(b), threeRules(b))
	both(b, "call", func(ctx context.Context) {
		_, _ = sluice.Call(ctx, chain, func(context.Context) (int, error) { return 1, nil })
	})
	both(b, "do", func(ctx context.Context) { _ = chain.Do(ctx, succeed) })
}

func BenchmarkOpen(b *testing.B) {
	br := threeRules(b)
	_ = br.Trip(time.Hour)
	both(b, "refuse", func(ctx context.Context) {
		if _, err := br.Allow(ctx); err == nil {
			b.Fatal("admitted")
		}
	})
}

func BenchmarkFailing(b *testing.B) {
	br, err := breaker.New("b", breaker.WithSlowCallRatio(time.Second, 1), breaker.WithErrorRatio(1), breaker.WithErrorCount(1<<30))
	if err != nil {
		b.Fatal(err)
	}
	_ = br.Do(context.Background(), succeed) // so that the error ratio stays below 1
	down := errors.New("down")
	both(b, "judged", func(ctx context.Context) {
		p, err := br.Allow(ctx)
		if err != nil {
			b.Fatal(err)
		}
		p.Done(down)
	})
}

func BenchmarkClock(b *testing.B) {
	base := time.Now()
	both(b, "since", func(context.Context) { _ = time.Since(base) })
	both(b, "err", func(ctx context.Context) { _ = ctx.Err() })
}
