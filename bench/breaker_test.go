package bench

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// newThreeRules looks at errors and at how long calls take, which needs the clock
// twice. The ratio is that of the error rule.
func newThreeRules(ratio float64) *breaker.Breaker {
	return sluice.Must(breaker.New("bench", threeRules(ratio)...))
}

func threeRules(ratio float64) []breaker.Option {
	return []breaker.Option{
		breaker.WithWindow(span, buckets),
		breaker.WithMinRequests(minRequests),
		breaker.WithSlowCallRatio(time.Second, 0.5),
		breaker.WithErrorRatio(ratio),
		breaker.WithErrorCount(math.MaxInt32),
	}
}

// newErrorsOnly does not care how long calls take.
func newErrorsOnly(ratio float64) *breaker.Breaker {
	return sluice.Must(breaker.New("bench",
		breaker.WithWindow(span, buckets),
		breaker.WithMinRequests(minRequests),
		breaker.WithErrorRatio(ratio),
		breaker.WithErrorCount(math.MaxInt32),
	))
}

// allowDone is a succeeding call in two steps.
func allowDone(ctx context.Context, br *breaker.Breaker) loops {
	return loops{
		serial: func(b *testing.B) {
			for b.Loop() {
				p, err := br.Allow(ctx)
				if err != nil {
					b.Fatal(err)
				}
				p.Done(nil)
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			for pb.Next() {
				p, err := br.Allow(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				p.Done(nil)
			}
		},
	}
}

// do is a succeeding call in one.
func do(ctx context.Context, br *breaker.Breaker) loops {
	return loops{
		serial: func(b *testing.B) {
			for b.Loop() {
				if err := br.Do(ctx, succeedWith); err != nil {
					b.Fatal(err)
				}
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			for pb.Next() {
				if err := br.Do(ctx, succeedWith); err != nil {
					b.Error(err)
					return
				}
			}
		},
	}
}

// A call that succeeds, through a closed breaker.
func BenchmarkBreakerClosed(b *testing.B) {
	ctx := requestContext(b)
	run(b, "sluice", func(*testing.B) loops { return allowDone(ctx, newThreeRules(ratio)) })
	run(b, "sluice-do", func(*testing.B) loops { return do(ctx, newThreeRules(ratio)) })
	run(b, "sluice-errors-only", func(*testing.B) loops { return allowDone(ctx, newErrorsOnly(ratio)) })
	run(b, "sluice-errors-only-do", func(*testing.B) loops { return do(ctx, newErrorsOnly(ratio)) })
	run(b, "gobreaker", func(*testing.B) loops {
		br := newGobreaker(ratio)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := br.Execute(answer); err != nil {
						b.Fatal(err)
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := br.Execute(answer); err != nil {
						b.Error(err)
						return
					}
				}
			},
		}
	})
	run(b, "failsafe", func(*testing.B) loops {
		br := newFailsafe(ratio)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if !br.TryAcquirePermit() {
						b.Fatal("refused")
					}
					br.RecordSuccess()
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if !br.TryAcquirePermit() {
						b.Error("refused")
						return
					}
					br.RecordSuccess()
				}
			},
		}
	})
	run(b, "go-zero", func(*testing.B) loops {
		br := newGoZero()
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					p, err := br.AllowCtx(ctx)
					if err != nil {
						b.Fatal(err)
					}
					p.Accept()
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					p, err := br.AllowCtx(ctx)
					if err != nil {
						b.Error(err)
						return
					}
					p.Accept()
				}
			},
		}
	})
	run(b, "aegis", func(*testing.B) loops {
		br := newAegis(ratio)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if err := br.Allow(); err != nil {
						b.Fatal(err)
					}
					br.MarkSuccess()
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if err := br.Allow(); err != nil {
						b.Error(err)
						return
					}
					br.MarkSuccess()
				}
			},
		}
	})
}

// A call that an open breaker refuses. go-zero and aegis refuse at random and
// have no such state.
func BenchmarkBreakerOpen(b *testing.B) {
	ctx := requestContext(b)
	run(b, "sluice", func(b *testing.B) loops {
		br := newThreeRules(ratio)
		if err := br.Trip(time.Hour); err != nil {
			b.Fatal(err)
		}
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := br.Allow(ctx); err == nil {
						b.Fatal("admitted")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := br.Allow(ctx); err == nil {
						b.Error("admitted")
						return
					}
				}
			},
		}
	})
	run(b, "gobreaker", func(b *testing.B) loops {
		br := newGobreaker(ratio)
		for br.State() != gobreaker.StateOpen {
			if _, err := br.Execute(fail); err == nil {
				b.Fatal("no error")
			}
		}
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := br.Execute(answer); err == nil {
						b.Fatal("admitted")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := br.Execute(answer); err == nil {
						b.Error("admitted")
						return
					}
				}
			},
		}
	})
	run(b, "failsafe", func(*testing.B) loops {
		br := newFailsafe(ratio)
		br.Open()
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if br.TryAcquirePermit() {
						b.Fatal("admitted")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if br.TryAcquirePermit() {
						b.Error("admitted")
						return
					}
				}
			},
		}
	})
}

// failing is a failing call in two steps.
func failing(ctx context.Context, br *breaker.Breaker) loops {
	return loops{
		serial: func(b *testing.B) {
			var down mostly
			for b.Loop() {
				p, err := br.Allow(ctx)
				if err != nil {
					b.Fatal(err)
				}
				p.Done(down.err())
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			var down mostly
			for pb.Next() {
				p, err := br.Allow(ctx)
				if err != nil {
					b.Error(err)
					return
				}
				p.Done(down.err())
			}
		},
	}
}

// A call that fails, is taken for a failure by the default classifier, and is
// judged by rules that would trip if all calls failed. go-zero is left out: its
// numbers are fixed, and it would refuse most of these calls.
func BenchmarkBreakerFailing(b *testing.B) {
	ctx := requestContext(b)
	run(b, "sluice", func(*testing.B) loops { return failing(ctx, newThreeRules(1)) })
	run(b, "sluice-errors-only", func(*testing.B) loops { return failing(ctx, newErrorsOnly(1)) })
	run(b, "gobreaker", func(*testing.B) loops {
		br := newGobreaker(1)
		return loops{
			serial: func(b *testing.B) {
				var down mostly
				for b.Loop() {
					_, _ = br.Execute(down.call())
				}
				if br.State() != gobreaker.StateClosed {
					b.Fatal("tripped")
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				var down mostly
				for pb.Next() {
					_, _ = br.Execute(down.call())
				}
				if br.State() != gobreaker.StateClosed {
					b.Error("tripped")
				}
			},
		}
	})
	run(b, "failsafe", func(*testing.B) loops {
		br := newFailsafe(1)
		return loops{
			serial: func(b *testing.B) {
				var down mostly
				for b.Loop() {
					if !br.TryAcquirePermit() {
						b.Fatal("refused")
					}
					br.RecordError(down.err())
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				var down mostly
				for pb.Next() {
					if !br.TryAcquirePermit() {
						b.Error("refused")
						return
					}
					br.RecordError(down.err())
				}
			},
		}
	})
	run(b, "aegis", func(*testing.B) loops {
		br := newAegis(0.01)
		return loops{
			serial: func(b *testing.B) {
				var down mostly
				for b.Loop() {
					if err := br.Allow(); err != nil {
						b.Fatal(err)
					}
					mark(br, down.err())
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				var down mostly
				for pb.Next() {
					if err := br.Allow(); err != nil {
						b.Error(err)
						return
					}
					mark(br, down.err())
				}
			},
		}
	})
}
