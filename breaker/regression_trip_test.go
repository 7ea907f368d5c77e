package breaker

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A threshold of 100 % was compared with > and never tripped, for years:
// https://github.com/alibaba/Sentinel/issues/1769,
// https://github.com/alibaba/Sentinel/issues/1856,
// https://github.com/alibaba/Sentinel/issues/2155,
// https://github.com/alibaba/Sentinel/issues/2554.
func TestT08_ThresholdOfOneTripsAtHundredPercent(t *testing.T) {
	slow := took(101*time.Millisecond, nil)
	for _, c := range []struct {
		name string
		rule Option
		bad  act
	}{
		{"errors", WithErrorRatio(1, MinRequests(5)), F},
		{"slow calls", WithSlowCallRatio(100*time.Millisecond, 1, MinRequests(5)), slow},
	} {
		t.Run(c.name, func(t *testing.T) {
			newStory(t, c.rule).tell(
				step{0, c.bad, Closed},
				step{1, c.bad, Closed},
				step{2, c.bad, Closed},
				step{3, c.bad, Closed},
				step{4, c.bad, Open},
			)
			newStory(t, c.rule).tell(
				step{0, times(4, c.bad), Closed},
				step{2, S, Closed},
				step{3, c.bad, Closed},
			)
		})
	}
}

// Exactly at the threshold is at it: 57 of 100 missed a rule of 57 %
// (https://github.com/cep21/circuit/pull/159), and ratios rounded to two places
// tripped at 495 of 1 000.
func TestT09_ExactlyOnTheThreshold(t *testing.T) {
	for _, c := range []struct {
		ratio     float64
		good, bad int
		want      State
	}{
		{0.57, 43, 57, Open},
		{0.57, 44, 56, Closed},
		{0.5, 505, 495, Closed},
		{0.5, 501, 499, Closed},
		{0.5, 500, 500, Open},
		{0.000001, 99, 1, Open},
		{0.333333, 2, 1, Open},
		{0.333334, 2, 1, Closed},
		{0.29, 71, 29, Open}, // 0.29 · 100 is 28.999999999999996 in floating point
		{0.999999, 1, 99, Closed},
	} {
		n := c.good + c.bad
		t.Run(fmt.Sprintf("%d of %d at %v", c.bad, n, c.ratio), func(t *testing.T) {
			newStory(t, WithErrorRatio(c.ratio), WithMinRequests(n)).tell(
				step{0, times(c.good, S), Closed},
				step{0, times(c.bad-1, F), Closed},
				step{0, F, c.want},
			)
			newStory(t, WithSlowCallRatio(time.Millisecond, c.ratio), WithMinRequests(n)).tell(
				step{0, times(c.good, took(time.Millisecond, errDown)), Closed}, // at the limit is not slow
				step{2, times(c.bad-1, took(time.Millisecond+1, nil)), Closed},
				step{4, took(time.Millisecond+1, nil), c.want},
			)
		})
	}
}

// A gate that no window could ever meet was clamped in silence, or the defaults
// kept a breaker from tripping and nothing said so:
// https://github.com/resilience4j/resilience4j/issues/1349,
// https://github.com/resilience4j/resilience4j/issues/966,
// https://github.com/resilience4j/resilience4j/issues/747,
// https://github.com/resilience4j/resilience4j/issues/2382.
func TestT10_GateIsNeverRepairedInSilence(t *testing.T) {
	t.Run("larger than the count window", func(t *testing.T) {
		_, err := New("payments", WithCountWindow(5), WithMinRequests(10))
		require.Error(t, err)
		assert.Contains(t, err.Error(), "MinRequests")
		assert.Contains(t, err.Error(), "10")
		assert.Contains(t, err.Error(), "5")
	})
	t.Run("never met, and the snapshot says so", func(t *testing.T) {
		s := newStory(t, WithErrorRatio(0.5), WithWindow(2*time.Second, 10), WithMinRequests(100))
		for i := range 400 {
			s.tell(step{float64(i) / 40, F, Closed})
		}
		assert.Contains(t, s.snap().Reason, "below min requests (80/100)")
	})
	// https://github.com/resilience4j/resilience4j/issues/842
	t.Run("the window need not be full", func(t *testing.T) {
		newStory(t, WithErrorRatio(0.5), WithMinRequests(5)).tell(
			step{0, F, Closed},
			step{0.5, F, Closed},
			step{1, F, Closed},
			step{1.5, F, Closed},
			step{2, F, Open},
		)
	})
}

// A window that is emptied at its end misses what happens around the edge, and
// takes the end of a busy span for the whole of it:
// https://github.com/sony/gobreaker/issues/21,
// https://github.com/sony/gobreaker/issues/64.
func TestT11_WindowSlides(t *testing.T) {
	t.Run("failures around an edge", func(t *testing.T) {
		newStory(t, WithErrorCount(10)).tell(
			step{9.5, times(9, F), Closed},
			step{10.5, F, Open},
		)
	})
	t.Run("a bad moment after a good while", func(t *testing.T) {
		s := newStory(t, WithErrorRatio(0.5))
		for i := range 11_000 {
			a, ms := act(S), float64(i)/1000
			if i >= 10_100 {
				a = F
			}
			s.tell(step{ms, a, Closed})
		}
		w := s.snap().Window
		assert.EqualValues(t, 10_000, w.Total)
		assert.EqualValues(t, 900, w.Failures)
	})
	t.Run("the last calls, however old", func(t *testing.T) {
		s := newStory(t, WithErrorRatio(0.5), WithCountWindow(4), WithMinRequests(4)).tell(
			step{0, times(3, S), Closed},
			step{100, F, Closed},
			step{9000, F, Open},
		)
		assert.EqualValues(t, 2, s.events[0].Cause.Bad)
		assert.EqualValues(t, 4, s.events[0].Cause.Total)
	})
}

// Slow calls were judged only when they returned, so a backend that hangs was
// called on and on: https://github.com/resilience4j/resilience4j/issues/1597.
func TestT26_OverdueCallsCountBeforeTheyReturn(t *testing.T) {
	opts := []Option{WithSlowCallRatio(2*time.Second, 0.5), WithMinRequests(10)}
	many := func(s *story) {
		for i := range 20 {
			A(fmt.Sprint(i))(s)
		}
	}
	back := func(s *story) {
		for i := range 20 {
			done(fmt.Sprint(i), nil)(s)
		}
	}
	t.Run("on", func(t *testing.T) {
		s := newStory(t, append(opts, WithInFlightSlow())...).tell(
			step{0, many, Closed},
			step{1.9, A("one more"), Closed},
			step{2.1, R, Open},
			step{2.2, back, Open},
		)
		assert.Equal(t, RuleTripped, s.events[0].Cause.Reason)
		assert.EqualValues(t, 20, s.snap().Totals.Stale)
	})
	t.Run("off", func(t *testing.T) {
		newStory(t, opts...).tell(
			step{0, many, Closed},
			step{2.1, S, Closed},
			step{2.2, back, Open},
		)
	})
}

// Few calls prove little: https://github.com/resilience4j/resilience4j/issues/1731.
func TestT35_FewCallsProveLittle(t *testing.T) {
	newStory(t, WithErrorRatio(0.5), WithMinRequests(10), WithConfidence(1.645)).tell(
		step{0, times(4, S), Closed},
		step{0, times(6, F), Closed},
	)
	newStory(t, WithErrorRatio(0.5), WithMinRequests(10), WithConfidence(1.645)).tell(
		step{0, times(2, S), Closed},
		step{0, times(7, F), Closed},
		step{0, F, Open},
	)
}

// How many failures of n trip a rule of one half, at a one-sided 95 % and at a
// two-sided one.
func TestS13_WilsonGate(t *testing.T) {
	for _, c := range []struct {
		z          float64
		n, failing int
	}{
		{1.645, 5, 5}, {1.645, 10, 8}, {1.645, 20, 14}, {1.645, 50, 31}, {1.645, 100, 59}, {1.645, 1000, 527},
		{1.96, 5, 5}, {1.96, 10, 9}, {1.96, 20, 15}, {1.96, 50, 32}, {1.96, 100, 60}, {1.96, 1000, 531},
	} {
		for k, want := range map[int]State{c.failing - 1: Closed, c.failing: Open} {
			newStory(t, WithErrorRatio(0.5), WithMinRequests(c.n), WithConfidence(c.z)).tell(
				step{0, times(c.n-k, S), Closed},
				step{0, times(k-1, F), Closed},
				step{0, F, want},
			)
		}
	}
}
