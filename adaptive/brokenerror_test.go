package adaptive

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice"
)

// brokenError panics when it is looked into: the typed nil that a func returns as an
// error.
type brokenError struct{ inner error }

func (e *brokenError) Error() string { return "broken" }
func (e *brokenError) Unwrap() error { return e.inner }

// brokenTimeout panics when it is asked whether it is one.
type brokenTimeout struct{}

func (brokenTimeout) Error() string { return "broken" }
func (brokenTimeout) Timeout() bool { panic("who knows") }

// exitingError ends its goroutine when it is looked into.
type exitingError struct{}

func (exitingError) Error() string { return "exiting" }
func (exitingError) Unwrap() error { runtime.Goexit(); return nil }

// An error whose methods panic once left a call unsettled: the place of a Limiter was
// taken for ever, and so was one of a System's Concurrency.
func TestAnErrorThatPanicsIsAFailure(t *testing.T) {
	type guard interface {
		sluice.Guard
		inFlight() int64
		failed() int64
	}
	for name, err := range map[string]error{
		"a typed nil":          (*brokenError)(nil),
		"asked for a timeout":  brokenTimeout{},
		"ends its goroutine":   exitingError{},
		"deep within":          sluice.Mark(brokenTimeout{}, sluice.Failure),
		"a typed nil, wrapped": wrapped{(*brokenError)(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			call := func(context.Context) error { return err }
			for name, g := range map[string]guard{
				"Limiter": limiterEnds{sluice.Must(NewLimiter("l"))},
				"System":  systemEnds{newSystem(t)},
				"Timeout": timeoutEnds{build(t)},
				"Meter":   meterEnds{build(t).Meter()},
			} {
				for _, do := range []func(context.Context, func(context.Context) error) error{g.Do, sluice.Chain(g).Do} {
					var w sync.WaitGroup
					w.Go(func() {
						defer func() { _ = recover() }()
						_ = do(t.Context(), call)
					})
					w.Wait()
				}
				assert.Zero(t, g.inFlight(), name)
				assert.EqualValues(t, 2, g.failed(), name)
			}
		})
	}
}

type wrapped struct{ error }

func (w wrapped) Unwrap() error { return w.error }

type limiterEnds struct{ *Limiter }

func (g limiterEnds) inFlight() int64 { return int64(g.InFlight()) }
func (g limiterEnds) failed() int64   { return g.Snapshot().Totals.Failed }

type systemEnds struct{ *System }

func (g systemEnds) inFlight() int64 { return g.Snapshot().InFlight }
func (g systemEnds) failed() int64   { return g.Snapshot().Totals.Failure }

type timeoutEnds struct{ *Timeout }

func (g timeoutEnds) inFlight() int64 { return 0 }
func (g timeoutEnds) failed() int64   { return g.Snapshot().Totals.Failed }

type meterEnds struct{ *Meter }

func (g meterEnds) inFlight() int64 { return 0 }
func (g meterEnds) failed() int64   { return g.t.Snapshot().Totals.Failed }

// hollow is a ctx whose Done is closed although its Err is nil.
type hollow struct{ context.Context }

func (hollow) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// To whom such a ctx says that he need not wait any more, he has not got a place: he once
// had leave without one, and gave back that of another.
func TestLimiter_AContextThatIsDoneWithoutAnError(t *testing.T) {
	l := few(t, 1, WithQueue(5, time.Hour))
	p, err := l.Acquire(t.Context())
	assert.NoError(t, err)
	for name, do := range map[string]func(context.Context, func(context.Context) error) error{"Do": l.Do, "Chain": sluice.Chain(l).Do} {
		err := do(hollow{t.Context()}, func(context.Context) error {
			t.Error("was called: ", name)
			return nil
		})
		assert.ErrorIs(t, err, context.Canceled, name)
		assert.Equal(t, 1, l.InFlight(), name)
	}
	p.Done(nil)
	assert.Zero(t, l.InFlight())
	assert.EqualValues(t, 2, l.Snapshot().Totals.GaveUp)
}
