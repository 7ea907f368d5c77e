package breaker

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A probe that never returns kept breakers half-open for days:
// https://github.com/resilience4j/resilience4j/issues/935,
// https://github.com/resilience4j/resilience4j/issues/903,
// https://github.com/App-vNext/Polly/issues/216,
// https://github.com/diegosouzapw/OmniRoute/issues/13836 (six days, 49 607
// refusals). Every probe has a lease; the first caller after it finds the probe
// lost, and that is a failed one.
func TestT03_ProbeThatNeverCompletesIsWrittenOff(t *testing.T) {
	s := newStory(t, WithErrorCount(1), WithProbeLease(10*time.Second)).tell(
		step{0, F, Open},
		step{5.1, A("hung"), HalfOpen},
		step{6, R, HalfOpen},
		step{15, R, HalfOpen},
		step{15.2, R, Open}, // found lost: open for twice as long
		step{25.1, R, Open},
		step{25.3, A("probe"), HalfOpen},
		step{25.3, done("probe", nil), Closed},
		step{30, done("hung", nil), Closed},
	)
	assert.Equal(t, []State{Closed, Open, HalfOpen, Open, HalfOpen, Closed}, s.path())
	assert.Equal(t, ProbeLost, s.events[2].Cause.Reason)
	assert.Equal(t, 10*time.Second, s.events[2].OpenFor)
	totals := s.snap().Totals
	assert.EqualValues(t, 1, totals.Lost)
	assert.EqualValues(t, 1, totals.Stale, "its late result decides nothing")
	assert.EqualValues(t, 0, s.snap().Window.Total, "and is in no window")
}

// An error that nobody caught leaked the probe's permit:
// https://github.com/resilience4j/resilience4j/issues/1389. A probe that panics, or
// whose goroutine ends, has failed.
func TestT04_ProbeThatPanicsHasFailed(t *testing.T) {
	half := func(t *testing.T) *story {
		return newStory(t, WithErrorCount(1)).tell(step{0, F, Open}, step{5.1, A("probe"), HalfOpen})
	}
	t.Run("Close finds no verdict", func(t *testing.T) {
		s := half(t).tell(
			step{5.1, unsettled("probe"), Open},
			step{15, R, Open}, // twice as long as before
			step{15.2, S, Closed},
		)
		assert.Equal(t, ProbeFailed, s.events[2].Cause.Reason)
	})
	t.Run("Goexit with a deferred Close", func(t *testing.T) {
		s := half(t)
		p := s.out["probe"]
		wait(func() {
			defer p.close(s.now)
			runtime.Goexit()
		})
		s.tell(step{5.1, look, Open}, step{15, R, Open}, step{15.2, S, Closed})
	})
}

// The panic goes on to the caller, with the stack of where it happened: nothing
// recovers it on the way, and raises one that stands for it.
func TestT04_PanicPassesThroughDo(t *testing.T) {
	b := build(t, WithErrorCount(3))
	for i := range 3 {
		require.Equalf(t, Closed, b.State(), "after %d", i)
		var stack string
		var value any
		wait(func() {
			defer func() {
				buf := make([]byte, 64<<10)
				stack = string(buf[:runtime.Stack(buf, false)])
				value = recover()
			}()
			_ = b.Do(t.Context(), func(context.Context) error { return explode() })
		})
		assert.Equal(t, "boom", value)
		assert.Contains(t, stack, "breaker.explode")
		assert.Equal(t, 1, strings.Count(stack, "panic("))
	}
	assert.Equal(t, Open, b.State(), "each was a failure")
}

func TestT04_GoexitInDoIsAFailure(t *testing.T) {
	b := build(t, WithErrorCount(3))
	for i := range 3 {
		require.Equalf(t, Closed, b.State(), "after %d", i)
		wait(func() {
			_ = b.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
		})
	}
	assert.Equal(t, Open, b.State())
}

func explode() error { panic("boom") }

// wait runs f on a goroutine of its own, which may end as it likes.
func wait(f func()) {
	var wg sync.WaitGroup
	wg.Go(f)
	wg.Wait()
}

// One unlucky probe sent a recovered backend back to open:
// https://github.com/App-vNext/Polly/issues/2381,
// https://github.com/Netflix/Hystrix/issues/1739,
// https://github.com/rubyist/circuitbreaker/issues/63.
func TestT20_ToleranceForgivesAFlakyProbe(t *testing.T) {
	half := func(t *testing.T, tolerance float64) *story {
		return newStory(t, WithErrorCount(1), WithProbes(1, 5, 20), WithProbeTolerance(tolerance)).
			tell(step{0, F, Open}, step{5.1, S, HalfOpen})
	}
	t.Run("one of five is a fifth", func(t *testing.T) {
		s := half(t, 0.2).tell(
			step{5.2, S, HalfOpen},
			step{5.3, S, HalfOpen},
			step{5.4, F, HalfOpen},
			step{5.5, S, HalfOpen},
			step{5.6, S, HalfOpen},
		)
		assert.Equal(t, 3, s.snap().Probe.Stage)
		s.tell(
			step{5.7, times(10, S), HalfOpen},
			step{5.8, times(4, F), HalfOpen},
			step{5.9, F, Open}, // the fifth of twenty, with five not yet sent
		)
		assert.Equal(t, ProbeFailed, s.last().Cause.Reason)
	})
	t.Run("to the end", func(t *testing.T) {
		half(t, 0.2).tell(
			step{5.2, times(5, S), HalfOpen},
			step{5.3, times(4, F), HalfOpen},
			step{5.4, times(15, S), HalfOpen},
			step{5.5, S, Closed},
		)
	})
	t.Run("two of five are too many", func(t *testing.T) {
		half(t, 0.2).tell(step{5.2, F, HalfOpen}, step{5.3, F, Open})
	})
	t.Run("without tolerance the first one reopens", func(t *testing.T) {
		half(t, 0).tell(step{5.2, times(4, S), HalfOpen}, step{5.3, F, Open})
	})
}
