package bench

import (
	"testing"

	"github.com/failsafe-go/failsafe-go"

	"github.com/sluicego/sluice"
)

// A call that succeeds and returns a value, through an interface: a Guard here,
// an executor of one policy there. sluice-chain3 is three guards in one chain.
//
// The executor gets its ctx once, before the loop. A program with a ctx for each
// call makes a copy of the executor each time, which is not measured here.
func BenchmarkCall(b *testing.B) {
	ctx := requestContext(b)
	call := func(g sluice.Guard) loops {
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
	}
	run(b, "sluice-call", func(*testing.B) loops { return call(newThreeRules(ratio)) })
	run(b, "sluice-chain3", func(*testing.B) loops {
		return call(sluice.Chain(newThreeRules(ratio), newErrorsOnly(ratio), newErrorsOnly(ratio)))
	})
	run(b, "failsafe", func(*testing.B) loops {
		e := failsafe.With[int](newFailsafe(ratio)).WithContext(ctx)
		return loops{
			serial: func(b *testing.B) {
				for b.Loop() {
					if _, err := e.Get(answer); err != nil {
						b.Fatal(err)
					}
				}
			},
			parallel: func(b *testing.B, pb *testing.PB) {
				for pb.Next() {
					if _, err := e.Get(answer); err != nil {
						b.Error(err)
						return
					}
				}
			},
		}
	})
}
