package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice"
)

// A dependency that answers and wants less is not at fault, but has not passed the
// probe either: the seat is free again, and the next probe waits for as long as it
// asks, or for an open period.
func TestThrottledProbeKeepsTheNextOneWaiting(t *testing.T) {
	less := sluice.Mark(errDown, sluice.Throttled)
	for _, c := range []struct {
		name string
		end  act
		wait float64
	}{
		{"for an open period", done("probe", less), 5},
		{"settled", settled("probe", sluice.Throttled), 5},
		{"for as long as it asks", done("probe", sluice.WithRetryAfter(less, 30*time.Second)), 30},
		{"not at all", done("probe", sluice.WithRetryAfter(less, 0)), 0},
		{"before now", done("probe", sluice.WithRetryAfter(less, -time.Hour)), 0},
		{"but no longer than the longest open period", done("probe", sluice.WithRetryAfter(less, time.Hour)), 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t, WithErrorCount(1)).tell(
				step{0, F, Open},
				step{5, A("probe"), HalfOpen},
				step{6, c.end, HalfOpen},
			)
			assert.Zero(t, s.snap().Probe.Issued)
			assert.EqualValues(t, 1, s.snap().Totals.Throttled)
			if c.wait > 0 {
				s.tell(step{6, R, HalfOpen}, step{6 + c.wait - 0.001, R, HalfOpen})
			}
			s.tell(step{6 + c.wait, S, Closed})
			assert.Equal(t, []State{Closed, Open, HalfOpen, Closed}, s.path())
		})
	}
	t.Run("for an open period as it is after backoff", func(t *testing.T) {
		newStory(t, WithErrorCount(1)).tell(
			step{0, F, Open},
			step{5, F, Open},
			step{15, A("probe"), HalfOpen},
			step{15, done("probe", less), HalfOpen},
			step{24.9, R, HalfOpen},
			step{25, S, Closed},
		)
	})
	t.Run("the longest wish holds", func(t *testing.T) {
		newStory(t, WithErrorCount(1), WithProbes(2)).tell(
			step{0, F, Open},
			step{5, A("first"), HalfOpen},
			step{5, A("second"), HalfOpen},
			step{6, done("first", sluice.WithRetryAfter(less, 30*time.Second)), HalfOpen},
			step{7, done("second", sluice.WithRetryAfter(less, time.Second)), HalfOpen},
			step{35.9, R, HalfOpen},
			step{36, times(2, S), Closed},
		)
	})
	t.Run("what else is out decides meanwhile", func(t *testing.T) {
		newStory(t, WithErrorCount(1), WithProbes(2)).tell(
			step{0, F, Open},
			step{5, A("first"), HalfOpen},
			step{5, A("second"), HalfOpen},
			step{6, settled("first", sluice.Throttled), HalfOpen},
			step{7, done("second", errDown), Open},
		)
	})
	t.Run("and is found lost meanwhile", func(t *testing.T) {
		newStory(t, WithErrorCount(1), WithProbes(3), WithProbeLease(20*time.Second)).tell(
			step{0, F, Open},
			step{5, A("hung"), HalfOpen},
			step{5, updated(func(c *Config) { c.ProbeLease = 3 * time.Second }), HalfOpen},
			step{5, A("hung too, for a shorter lease"), HalfOpen},
			step{5, A("third"), HalfOpen},
			step{6, done("third", sluice.WithRetryAfter(less, time.Minute)), HalfOpen},
			step{7.9, R, HalfOpen},
			step{8, R, Open},
		)
	})
}

// A throttled call is in the total of a closed breaker, and nothing else: it is no
// failure and no success.
func TestThrottledCallIsCountedAndNotBad(t *testing.T) {
	throttled := func(s *story) { s.admit(t.Context()).settle(s.now, sluice.Throttled) }
	newStory(t, WithErrorCount(2), WithErrorRatio(0.5, MinRequests(4))).tell(
		step{0, times(10, throttled), Closed},
		step{0, F, Closed},
		step{0, F, Open},
	)
	newStory(t, WithConsecutiveFailures(3)).tell(
		step{0, times(2, F), Closed},
		step{0, throttled, Closed},
		step{0, F, Open}, // three with no success between
	)
}
