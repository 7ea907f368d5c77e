package breaker_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
)

// The exercises are the situations that the breaker's users describe, played in
// virtual time.

// scene is a breaker and a call whose behaviour can be changed.
type scene struct {
	t     *testing.T
	b     *breaker.Breaker
	takes time.Duration
	err   error
	calls int
}

func newScene(t *testing.T, opts ...breaker.Option) *scene {
	b, err := breaker.New("orders", append([]breaker.Option{breaker.WithJitter(0)}, opts...)...)
	require.NoError(t, err)
	return &scene{t: t, b: b}
}

// call makes one call and reports whether it was admitted.
func (s *scene) call() bool {
	err := s.b.Do(s.t.Context(), func(context.Context) error {
		s.calls++
		time.Sleep(s.takes)
		return s.err
	})
	return !errors.Is(err, breaker.ErrOpen)
}

// times makes n calls, one after another, and returns how many were admitted.
func (s *scene) times(n int) (admitted int) {
	for range n {
		if s.call() {
			admitted++
		}
	}
	return admitted
}

// fail and succeed make one call that must be admitted.
func (s *scene) fail()    { s.err = errDown; require.True(s.t, s.call(), "admitted") }
func (s *scene) succeed() { s.err = nil; require.True(s.t, s.call(), "admitted") }

func TestExerciseA_SlowCallRatio(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, breaker.WithSlowCallRatio(800*time.Millisecond, 0.5), breaker.WithMinRequests(5), breaker.WithOpenFor(15*time.Second))
		s.takes = time.Second
		assert.Equal(t, 5, s.times(5))
		require.Equal(t, breaker.Open, s.b.State(), "the fifth slow call fills the gate")
		assert.Equal(t, "slow 100 % of 50 %, 5 of 5 calls", s.b.Snapshot().Reason)
		assert.Zero(t, s.times(100), "nothing passes")

		time.Sleep(15 * time.Second)
		s.takes = 100 * time.Millisecond
		var probe sync.WaitGroup
		probe.Go(func() { s.succeed() })
		synctest.Wait()
		assert.Zero(t, s.times(10), "one probe, and only one")
		probe.Wait()
		assert.Equal(t, breaker.Closed, s.b.State())
		assert.Equal(t, 20, s.times(20))
	})
}

func TestExerciseB_ErrorRatioTripsExactlyAtItsThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, breaker.WithErrorRatio(0.4), breaker.WithMinRequests(10), breaker.WithOpenFor(30*time.Second))
		for range 12 {
			s.succeed()
		}
		for failures := range 7 { // 0/12, 1/13 … 7/19 = 36.8 %
			require.Equal(t, breaker.Closed, s.b.State())
			assert.InDelta(t, float64(failures)/float64(12+failures), s.b.Snapshot().Window.FailureRatio, 1e-9)
			s.fail()
		}
		require.Equal(t, breaker.Closed, s.b.State(), "7 of 19")
		s.fail()
		require.Equal(t, breaker.Open, s.b.State(), "8 of 20 is 40 %")
		assert.Equal(t, "errors 40 % of 40 %, 8 of 20 calls", s.b.Snapshot().Reason)
		time.Sleep(30*time.Second - time.Nanosecond)
		assert.Zero(t, s.times(1))
		time.Sleep(time.Nanosecond)
		s.succeed()
		assert.Equal(t, breaker.Closed, s.b.State())
	})
}

func TestExerciseC_TwentyErrorsInAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, breaker.WithErrorCount(20), breaker.WithWindow(time.Minute, 60))
		for range 19 {
			s.fail()
		}
		assert.Equal(t, 1000, func() int { s.err = nil; return s.times(1000) }(), "a count does not care about good calls")
		time.Sleep(time.Minute)
		for range 19 {
			s.fail()
			require.Equal(t, breaker.Closed, s.b.State(), "the first nineteen have left the window")
		}
		s.fail()
		assert.Equal(t, breaker.Open, s.b.State())
	})
}

// A hand-written gateway breaker never resets its count on success: five failures
// since it last closed open it. Beside it, the one that was probably meant.
func TestExerciseD_FiveFailuresSinceItClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gateway := newScene(t, breaker.WithErrorCount(5, breaker.Over(24*time.Hour)), breaker.WithOpenFor(30*time.Second), breaker.WithProbes(1, 1, 1))
		inARow := newScene(t, breaker.WithConsecutiveFailures(5))
		for range 4 {
			for _, s := range []*scene{gateway, inARow} {
				s.fail()
				s.succeed()
			}
			time.Sleep(time.Hour)
		}
		gateway.fail()
		inARow.fail()
		assert.Equal(t, breaker.Open, gateway.b.State())
		assert.Equal(t, breaker.Closed, inARow.b.State())

		time.Sleep(30 * time.Second)
		for range 3 { // three probes, one after another, not three at a time
			require.Equal(t, breaker.HalfOpen, gateway.b.State())
			gateway.succeed()
		}
		require.Equal(t, breaker.Closed, gateway.b.State())
		for range 4 {
			gateway.fail()
			require.Equal(t, breaker.Closed, gateway.b.State(), "a new stay in closed counts from zero")
		}
	})
}

func TestExerciseE_CountWindowWithTwoRulesAndGrowingProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		build := func() *scene {
			return newScene(t, breaker.WithCountWindow(100), breaker.WithMinRequests(20),
				breaker.WithErrorRatio(0.5), breaker.WithSlowCallRatio(3*time.Second, 0.8),
				breaker.WithOpenFor(time.Second), breaker.WithProbes(1, 2, 4, 8, 16, 20))
		}
		failing := build()
		for i := range 19 {
			if failing.err = nil; i%2 == 1 {
				failing.err = errDown
			}
			require.True(t, failing.call())
		}
		require.Equal(t, breaker.Closed, failing.b.State(), "9 of 19")
		failing.fail()
		require.Equal(t, breaker.Open, failing.b.State(), "10 of 20")

		slow := build()
		for i := range 100 {
			slow.takes = 4 * time.Second
			if i%5 == 0 {
				slow.takes = 0
			}
			if !slow.call() {
				assert.Equal(t, 20, i, "80 % of twenty, though the window holds a hundred")
				break
			}
		}
		assert.Equal(t, "slow 80 % of 80 %, 16 of 20 calls", slow.b.Snapshot().Reason)

		time.Sleep(time.Second)
		for _, stage := range []int{1, 2, 4, 8, 16, 20} {
			require.Equal(t, breaker.HalfOpen, failing.b.State())
			for range stage {
				failing.succeed()
			}
		}
		assert.Equal(t, breaker.Closed, failing.b.State())
	})
}

func TestExerciseF_AnyOfThreeRulesTrips(t *testing.T) {
	for name, hurt := range map[string]struct {
		call func(s *scene)
		rule breaker.Kind
		open time.Duration
	}{
		"slow":   {func(s *scene) { s.takes, s.err = time.Second, nil }, breaker.SlowCallRatio, 15 * time.Second},
		"errors": {func(s *scene) { s.takes, s.err = 0, errDown }, breaker.ErrorRatio, 30 * time.Second},
		"count": {func(s *scene) { // one in five fails: far from the ratio
			if s.takes, s.err = 0, nil; s.calls%5 == 0 {
				s.err = errDown
			}
		}, breaker.ErrorCount, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t,
					breaker.WithSlowCallRatio(800*time.Millisecond, 0.5, breaker.MinRequests(5), breaker.OpenFor(15*time.Second)),
					breaker.WithErrorRatio(0.4, breaker.MinRequests(10), breaker.OpenFor(30*time.Second)),
					breaker.WithErrorCount(20, breaker.Over(time.Minute), breaker.OpenFor(time.Minute)))
				for s.b.State() == breaker.Closed {
					hurt.call(s)
					s.call()
					require.Less(t, s.calls, 200)
				}
				snap := s.b.Snapshot()
				assert.Equal(t, hurt.rule, snap.Cause.Rule.Kind)
				assert.Equal(t, hurt.open, snap.OpenFor)
			})
		})
	}
}

// Ten instances guard one backend, which has just come back, is still slow, and
// dies again when more than twenty calls are in it. One probe each is ten calls:
// it recovers. Five probes each are fifty: it dies at every attempt.
func TestExerciseG_TenBreakersProbeAWeakBackend(t *testing.T) {
	run := func(probes ...int) (deaths, served int) {
		synctest.Test(t, func(t *testing.T) {
			backend := &weakBackend{}
			backend.die() // the outage that everything begins with
			var instances sync.WaitGroup
			for range 10 {
				b := sluice.Must(breaker.New("backend", breaker.WithErrorRatio(0.5), breaker.WithMinRequests(5),
					breaker.WithOpenFor(2*time.Second), breaker.WithBackoff(1, breaker.Auto), breaker.WithJitter(0), breaker.WithProbes(probes...)))
				instances.Go(func() {
					for range 600 { // ten calls a second for a minute
						instances.Go(func() { _ = b.Do(t.Context(), backend.call) })
						time.Sleep(100 * time.Millisecond)
					}
				})
			}
			instances.Wait()
			deaths, served = backend.deaths-1, backend.served
		})
		return deaths, served
	}
	oneDeaths, oneServed := run(1)
	fiveDeaths, fiveServed := run(5)
	t.Logf("of 6000 calls in a minute: {1} served %d and killed the backend %d times, {5} served %d and killed it %d times", oneServed, oneDeaths, fiveServed, fiveDeaths)
	assert.Zero(t, oneDeaths)
	assert.Greater(t, oneServed, 5000)
	assert.Greater(t, fiveDeaths, 5, "it oscillates")
	assert.Less(t, fiveServed, 1000)
}

// weakBackend answers in 80 ms when warm, and in a second while it is cold: for
// the first ten calls after a restart. Above twenty calls at a time it dies for a
// second, and fails whatever it had.
type weakBackend struct {
	mu     sync.Mutex
	inside int
	lives  int // how often it has started
	warm   int // calls answered in this life
	downTo time.Time
	deaths int
	served int
}

func (w *weakBackend) call(context.Context) error {
	w.mu.Lock()
	w.inside++
	if w.inside > 20 {
		w.die()
	}
	life, down, takes := w.lives, time.Now().Before(w.downTo), 80*time.Millisecond
	if w.warm < 10 {
		takes = time.Second
	}
	w.mu.Unlock()
	if !down {
		time.Sleep(takes)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside--
	if down || life != w.lives {
		return errDown
	}
	w.warm++
	w.served++
	return nil
}

func (w *weakBackend) die() {
	w.lives, w.warm, w.deaths = w.lives+1, 0, w.deaths+1
	w.downTo = time.Now().Add(time.Second)
}
