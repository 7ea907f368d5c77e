package bench

import (
	"context"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/budget"
	"github.com/failsafe-go/failsafe-go/hedgepolicy"
	"github.com/failsafe-go/failsafe-go/retrypolicy"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/retry"
)

// newRetry makes three attempts and waits for none of them.
func newRetry(b *retry.Budget) *retry.Policy {
	return sluice.Must(retry.New("bench", retry.WithBackoff(0, 0), retry.WithBudget(b)))
}

// newRetryBudget allows more than a benchmark asks for.
func newRetryBudget() *retry.Budget {
	return sluice.Must(retry.NewBudget("bench", retry.WithRatio(1), retry.WithMinPerSecond(1_000_000), retry.WithWindow(time.Minute)))
}

// newFailsafeRetry is the same; its budget, if any, bounds what is in flight, so it
// keeps no time. It is measured through its executor, for it has no other way.
func newFailsafeRetry(ctx context.Context, budgeted bool) failsafe.Executor[int] {
	policy := retrypolicy.NewBuilder[int]().WithMaxAttempts(3)
	if budgeted {
		policy = policy.WithBudget(budget.NewBuilder().WithMaxRate(1).WithMinConcurrency(100).Build())
	}
	return failsafe.With[int](policy.Build()).WithContext(ctx)
}

// policies are the loops around a call that is made inside a policy.
func policies(p *retry.Policy, ctx context.Context, call func() func(context.Context) error) loops {
	return loops{
		serial: func(b *testing.B) {
			call := call()
			for b.Loop() {
				if err := p.Do(ctx, call); err != nil {
					b.Fatal(err)
				}
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			call := call()
			for pb.Next() {
				if err := p.Do(ctx, call); err != nil {
					b.Error(err)
					return
				}
			}
		},
	}
}

// executors are the same around an executor.
func executors(e failsafe.Executor[int], call func() func() (int, error)) loops {
	return loops{
		serial: func(b *testing.B) {
			call := call()
			for b.Loop() {
				if _, err := e.Get(call); err != nil {
					b.Fatal(err)
				}
			}
		},
		parallel: func(b *testing.B, pb *testing.PB) {
			call := call()
			for pb.Next() {
				if _, err := e.Get(call); err != nil {
					b.Error(err)
					return
				}
			}
		},
	}
}

// A call that succeeds at once: what a policy costs when nothing is wrong. sluice-call
// is a result through a Guard, sluice-steps the way without a function, sluice-limited
// an attempt with a limit of time, which takes a context.
func BenchmarkRetry(b *testing.B) {
	ctx := requestContext(b)
	succeed := func() func(context.Context) error { return succeedWith }
	run(b, "sluice", func(*testing.B) loops { return policies(newRetry(nil), ctx, succeed) })
	run(b, "sluice-budget", func(*testing.B) loops { return policies(newRetry(newRetryBudget()), ctx, succeed) })
	run(b, "sluice-limited", func(*testing.B) loops {
		return policies(sluice.Must(retry.New("bench", retry.WithAttemptTimeout(time.Hour))), ctx, succeed)
	})
	run(b, "sluice-call", func(*testing.B) loops {
		var g sluice.Guard = newRetry(newRetryBudget())
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := sluice.Call(ctx, g, answerWith); err != nil {
						b.Fatal(err)
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := sluice.Call(ctx, g, answerWith); err != nil {
						b.Error(err)
						return
					}
				}
			},
		}
	})
	run(b, "sluice-steps", func(*testing.B) loops {
		p := newRetry(newRetryBudget())
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					a, err := p.Begin(ctx)
					if err != nil {
						b.Fatal(err)
					}
					if _, again := a.Next(ctx, succeedWith(ctx)); again {
						b.Fatal("again")
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					a, err := p.Begin(ctx)
					if err != nil {
						b.Error(err)
						return
					}
					if _, again := a.Next(ctx, succeedWith(ctx)); again {
						b.Error("again")
						return
					}
				}
			},
		}
	})
	answers := func() func() (int, error) { return answer }
	run(b, "failsafe", func(*testing.B) loops { return executors(newFailsafeRetry(ctx, false), answers) })
	run(b, "failsafe-budget", func(*testing.B) loops { return executors(newFailsafeRetry(ctx, true), answers) })
}

// A call that fails once and is repeated without a wait: finding out what the error
// means, asking the budget, and marking the ctx of the second attempt.
func BenchmarkRetryOnce(b *testing.B) {
	ctx := requestContext(b)
	everyOther := func() func(context.Context) error {
		n := 0
		return func(context.Context) error {
			if n++; n%2 == 1 {
				return errDown
			}
			return nil
		}
	}
	run(b, "sluice", func(*testing.B) loops { return policies(newRetry(nil), ctx, everyOther) })
	run(b, "sluice-budget", func(*testing.B) loops { return policies(newRetry(newRetryBudget()), ctx, everyOther) })
	answers := func() func() (int, error) {
		call := everyOther()
		return func() (int, error) { return 42, call(ctx) }
	}
	run(b, "failsafe", func(*testing.B) loops { return executors(newFailsafeRetry(ctx, false), answers) })
	run(b, "failsafe-budget", func(*testing.B) loops { return executors(newFailsafeRetry(ctx, true), answers) })
}

// The budget alone: counting a call, and asking for a repetition.
func BenchmarkRetryBudget(b *testing.B) {
	run(b, "sluice-deposit", func(*testing.B) loops {
		bu := newRetryBudget()
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					bu.Deposit()
				}
			},
			parallel: func(_ *testing.B, pb *testing.PB) {
				for pb.Next() {
					bu.Deposit()
				}
			},
		}
	})
	run(b, "sluice-withdraw", func(*testing.B) loops {
		bu := newRetryBudget()
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					bu.Withdraw()
				}
			},
			parallel: func(_ *testing.B, pb *testing.PB) {
				for pb.Next() {
					bu.Withdraw()
				}
			},
		}
	})
}

// A call that is over before there is a hedge, as nineteen of twenty are.
func BenchmarkHedge(b *testing.B) {
	ctx := requestContext(b)
	run(b, "sluice", func(*testing.B) loops {
		h := sluice.Must(retry.NewHedger("bench", time.Hour))
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := retry.Hedge(ctx, h, answerWith, nil); err != nil {
						b.Fatal(err)
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := retry.Hedge(ctx, h, answerWith, nil); err != nil {
						b.Error(err)
						return
					}
				}
			},
		}
	})
	run(b, "failsafe", func(*testing.B) loops {
		return executors(failsafe.With[int](hedgepolicy.NewWithDelay[int](time.Hour)).WithContext(ctx), func() func() (int, error) { return answer })
	})
}
