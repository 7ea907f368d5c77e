package breaker

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A step of the wall clock kept breakers open for an hour and dropped every
// sample meanwhile: https://github.com/alibaba/sentinel-golang/pull/327,
// https://github.com/alibaba/sentinel-golang/issues/533. Time here is monotonic;
// what a goroutine that read the clock early and came late brings along is the
// only way back, and it neither prolongs a deadline nor loses a sample.
func TestT15_TimeThatStepsBackChangesNoDeadline(t *testing.T) {
	s := newStory(t, WithErrorCount(3)).tell(
		step{5, F, Closed},
		step{4, F, Closed}, // counted all the same
		step{5, F, Open},
		step{4.5, R, Open},
		step{3, R, Open},
		step{9.9, R, Open},
		step{8, R, Open},
		step{10, S, Closed},
	)
	assert.EqualValues(t, 3, s.events[0].Cause.Bad)
}

// By the clock that Allow reads itself: not early, and not late.
func TestT15_OpenEndsByTheMonotonicClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, WithErrorCount(1))
		p, err := b.Allow(t.Context())
		require.NoError(t, err)
		p.Done(errDown)
		time.Sleep(5*time.Second - 1)
		_, err = b.Allow(t.Context())
		require.ErrorIs(t, err, ErrOpen)
		time.Sleep(time.Nanosecond)
		_, err = b.Allow(t.Context())
		require.NoError(t, err)
	})
}

// Open was visible before its deadline was, and the first caller after a trip
// went through as the probe: 62 of 100 000 rounds. Here time stands still, so
// nothing that comes is ever a probe.
func TestT17_OpenIsNeverVisibleBeforeItsDeadline(t *testing.T) {
	var half atomic.Int64
	b := build(t, WithErrorCount(1), WithOpenFor(time.Minute), WithBackoff(1, Auto), WithOnChange(func(e Event) {
		if e.To == HalfOpen {
			half.Add(1)
		}
	}))
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			if p, err := b.allow(t.Context(), t0); err == nil {
				p.cancel(t0)
			}
		}
	})
	for range rounds(40_000) {
		p, err := b.allow(t.Context(), t0)
		require.NoError(t, err)
		p.done(t0, errDown)
		require.Equal(t, Open, b.state(t0))
		b.reset(t0)
	}
	stop.Store(true)
	wg.Wait()
	assert.Zero(t, half.Load(), "probes before the deadline")
}

// Users kept the attempt counter outside, because each trip began anew:
// https://github.com/App-vNext/Polly/issues/653,
// https://github.com/App-vNext/Polly/issues/1895. The open period grows while
// recoveries fail, and comes down a step for each of its own length in health.
func TestT21_OpenPeriodGrowsAndDecays(t *testing.T) {
	opened := func(s *story) (periods []time.Duration) {
		for _, e := range s.events {
			if e.To == Open {
				periods = append(periods, e.OpenFor/time.Second)
			}
		}
		return periods
	}
	grown := func(t *testing.T) *story {
		return newStory(t, WithErrorCount(1), WithOpenFor(time.Second), WithBackoff(2, 8*time.Second)).tell(
			step{0, F, Open},
			step{1, F, Open},
			step{3, F, Open},
			step{7, F, Open},
			step{15, F, Open},
			step{23, S, Closed},
		)
	}
	t.Run("it grows to its cap", func(t *testing.T) {
		assert.Equal(t, []time.Duration{1, 2, 4, 8, 8}, opened(grown(t)))
	})
	t.Run("a trip soon after closing", func(t *testing.T) {
		s := grown(t).tell(step{23.5, F, Open})
		assert.Equal(t, []time.Duration{1, 2, 4, 8, 8, 8}, opened(s), "not one second")
	})
	for _, c := range []struct {
		healthy float64
		want    time.Duration
	}{{7.9, 8}, {8.1, 4}, {15.9, 4}, {16.1, 2}, {24.1, 1}, {1000, 1}} {
		t.Run(fmt.Sprintf("healthy for %v s", c.healthy), func(t *testing.T) {
			s := grown(t).tell(step{23 + c.healthy, F, Open})
			assert.Equal(t, c.want, s.last().OpenFor/time.Second)
		})
	}
	t.Run("a late success lowers nothing", func(t *testing.T) {
		s := newStory(t, WithErrorCount(1), WithOpenFor(time.Second)).tell(
			step{0, times(9, func(s *story) { A(fmt.Sprint(len(s.out)))(s) }), Closed},
			step{0, F, Open},
			step{1, F, Open},
			step{1.5, done("0", nil), Open},
			step{3, F, Open},
			step{3.5, done("1", nil), Open},
			step{7, F, Open},
		)
		assert.Equal(t, []time.Duration{1, 2, 4, 8}, opened(s))
	})
}

// A fleet that tripped together probed together:
// https://github.com/failsafe-go/failsafe-go/pull/142.
func TestT22_JitterSpreadsTheProbes(t *testing.T) {
	slots := map[int64]int{}
	for range 1000 {
		s := newStory(t, WithErrorCount(1), WithOpenFor(10*time.Second), WithJitter(0.1)).tell(step{0, F, Open})
		period := s.last().OpenFor
		require.GreaterOrEqual(t, period, 9*time.Second)
		require.LessOrEqual(t, period, 11*time.Second)
		require.Equal(t, Open, s.b.state(t0+int64(period)-1))
		require.Equal(t, HalfOpen, s.b.state(t0+int64(period)), "the deadline is the one that was told")
		slots[int64(period/(100*time.Millisecond))]++
	}
	for slot, n := range slots {
		assert.LessOrEqualf(t, n, 150, "slot %d", slot)
	}
	assert.Greater(t, len(slots), 15)
}

// A backend that had just come back got all traffic at once and went down again:
// https://github.com/alibaba/Sentinel/issues/2370.
func TestT33_RecoveryAdmitsAShare(t *testing.T) {
	recovering := func(t *testing.T) *story {
		return newStory(t, WithErrorCount(1), WithRecovery(Step{0.10, 30 * time.Second})).
			tell(step{0, F, Open}, step{5, S, Closed})
	}
	t.Run("a tenth for 30 s, then all", func(t *testing.T) {
		s := recovering(t)
		first := admitted(s, 5.001, 34.999, 1000)
		assert.InDelta(t, 100, first, 1)
		assert.Equal(t, 1000, admitted(s, 35, 40, 1000))
	})
	t.Run("a re-trip within it raises the backoff", func(t *testing.T) {
		s := recovering(t)
		s.now = at(30)
		var p Permit
		for err := error(ErrOpen); err != nil; s.now += int64(time.Millisecond) {
			p, err = s.b.allow(t.Context(), s.now)
		}
		p.done(s.now, errDown) // 25 s after closing: five open periods, but still recovering
		assert.Equal(t, 10*time.Second, s.last().OpenFor)
	})
	t.Run("so does one right after it", func(t *testing.T) {
		s := recovering(t).tell(step{38, F, Open}) // 3 s after the recovery: it proves nothing by itself
		assert.Equal(t, 10*time.Second, s.last().OpenFor)
	})
	t.Run("health counts from its end", func(t *testing.T) {
		s := recovering(t).tell(step{40, F, Open})
		assert.Equal(t, 5*time.Second, s.last().OpenFor)
	})
	// A backend that carries half the load, and dies of more: without backoff
	// it would be killed again as soon as each recovery ends.
	t.Run("a backend that dies of full load is not hit faster and faster", func(t *testing.T) {
		s := newStory(t, WithErrorCount(10), WithRecovery(Step{0.10, 10 * time.Second}, Step{0.60, 10 * time.Second}))
		for s.now < at(1200) {
			passed := []*Permit(nil)
			for range 100 { // 100 calls in a tenth of a second
				if p, err := s.b.allow(t.Context(), s.now); err == nil {
					passed = append(passed, &p)
				}
			}
			for _, p := range passed {
				var err error
				if len(passed) > 50 {
					err = errDown
				}
				p.done(s.now, err)
			}
			s.now += int64(100 * time.Millisecond)
		}
		var opens []time.Duration
		for _, e := range s.events {
			if e.To == Open {
				opens = append(opens, e.OpenFor/time.Second)
			}
		}
		require.GreaterOrEqual(t, len(opens), 6)
		assert.Equal(t, []time.Duration{5, 10, 20, 40, 60, 60}, opens[:6])
		assert.LessOrEqual(t, len(opens), 20, "70 s and more apart, after the first four")
	})
}

// admitted is how many of n calls, spread evenly over [from, to] seconds, pass.
func admitted(s *story, from, to float64, n int) (passed int) {
	for i := range n {
		s.now = at(from + (to-from)*float64(i)/float64(n))
		if p, err := s.b.allow(s.t.Context(), s.now); err == nil {
			p.done(s.now, nil)
			passed++
		}
	}
	return passed
}
