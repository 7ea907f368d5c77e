package breaker

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice"
)

// A breaker that had just closed still had the old errors in its window, and
// tripped at the first new one.
func TestS09_EachClosedStayHasItsOwnWindow(t *testing.T) {
	for _, c := range []struct {
		name string
		rule Option
	}{
		{"count", WithErrorCount(2)},
		{"consecutive", WithConsecutiveFailures(2)},
		{"ratio", WithErrorRatio(0.5, MinRequests(2))},
		{"last calls", WithConfig(func() Config {
			c := DefaultConfig()
			c.CountWindow, c.MinRequests, c.Jitter, c.OpenFor = 10, 2, 0, 100*time.Millisecond
			return c
		}())},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t, WithOpenFor(100*time.Millisecond), c.rule).tell(
				step{0, times(2, F), Open},
				step{0.1, S, Closed},
			)
			assert.Zero(t, s.snap().Window.Total)
			s.tell(step{0.1, F, Closed}, step{0.1, F, Open}, step{0.2, reset, Closed}, step{0.2, F, Closed})
		})
	}
}

// The gate looks at calls with a verdict in the rule's own window.
func TestS11_GateCountsOnlyCallsWithAVerdict(t *testing.T) {
	t.Run("neutral and refused calls are none", func(t *testing.T) {
		newStory(t, WithErrorRatio(0.5), WithMinRequests(3)).tell(
			step{0, times(2, F), Closed},
			step{0, times(50, X), Closed},
			step{0, func(s *story) { s.admit(t.Context()).cancel(s.now) }, Closed},
			step{0, forced(ForcedOpen), Closed},
			step{0, times(50, R), Closed},
			step{0, unforced, Closed},
			step{0, F, Open},
		)
	})
	t.Run("a throttled one is, and is not bad", func(t *testing.T) {
		throttled := func(s *story) { s.admit(t.Context()).settle(s.now, sluice.Throttled) }
		s := newStory(t, WithErrorRatio(0.5), WithMinRequests(3)).tell(
			step{0, F, Closed},
			step{0, times(2, throttled), Closed},
		)
		assert.EqualValues(t, 3, s.snap().Window.Total)
		assert.EqualValues(t, 1, s.snap().Window.Failures)
		assert.EqualValues(t, 2, s.snap().Totals.Throttled)
		s.tell(step{1, F, Open})
	})
	t.Run("each rule may have its own", func(t *testing.T) {
		slow := took(time.Second+1, nil)
		newStory(t, WithMinRequests(100), WithErrorRatio(0.5), WithSlowCallRatio(time.Second, 1, MinRequests(2))).tell(
			step{0, slow, Closed},
			step{2, slow, Open},
		)
	})
	t.Run("counts have none", func(t *testing.T) {
		newStory(t, WithMinRequests(100), WithErrorCount(3)).tell(step{0, times(2, F), Closed}, step{0, F, Open})
		newStory(t, WithMinRequests(100), WithConsecutiveFailures(3)).tell(step{0, times(2, F), Closed}, step{0, F, Open})
	})
}

// Where only the gate held a rule back, the call that meets it trips, even if it
// is a good one.
func TestS12_GoodCallThatMeetsTheGateTrips(t *testing.T) {
	newStory(t, WithErrorRatio(0.5), WithMinRequests(10)).tell(
		step{0, times(5, F), Closed},
		step{0, times(4, S), Closed},
		step{0, S, Open},
	)
	newStory(t, WithErrorRatio(0.5), WithMinRequests(10)).tell(
		step{0, times(4, F), Closed},
		step{0, times(6, S), Closed},
		step{0, F, Closed}, // 5 of 11
		step{0, F, Open},   // 6 of 12
	)
}

// A call without a verdict leaves no trace, so it is no occasion to trip either,
// even where time alone has made a ratio reach its threshold; the next call with a
// verdict is one, while a gate holds another rule back.
func TestS12_NeutralCallIsNoOccasionToTrip(t *testing.T) {
	newStory(t, WithErrorRatio(0.6, MinRequests(2)), WithErrorRatio(0.3, MinRequests(100))).tell(
		step{0, times(3, S), Closed},
		step{5, times(2, F), Closed}, // 2 of 5, and the gate of 100 holds the other rule back
		step{10.5, X, Closed},        // 2 of 2
		step{10.5, func(s *story) { s.admit(t.Context()).cancel(s.now) }, Closed},
		step{10.5, func(s *story) { s.admit(t.Context()).done(s.now, sluice.ErrRejected) }, Closed},
		step{10.6, S, Open}, // 2 of 3
	)
}

// Failures in a row may come as slowly as they like, and one success ends the row.
func TestConsecutiveFailuresOutliveAnyWindow(t *testing.T) {
	newStory(t, WithConsecutiveFailures(3)).tell(
		step{0, F, Closed},
		step{1000, F, Closed},
		step{1001, X, Closed}, // says nothing
		step{1002, S, Closed},
		step{2000, F, Closed},
		step{3000, F, Closed},
		step{3001, X, Closed},
		step{4000, F, Open},
	)
}

// The dependency says for how long it wants to be left alone.
func TestS18_ClassifierMayTripForATime(t *testing.T) {
	const leave = 10 * time.Minute
	verdict := Verdict{TripFor: leave}
	opts := []Option{WithJitter(0.5), WithClassifier(func(context.Context, error) Verdict { return verdict })}
	for _, outcome := range []sluice.Outcome{0, sluice.Success, sluice.Failure, sluice.Ignored, sluice.Throttled} {
		verdict.Outcome = outcome
		for _, rule := range []struct {
			name string
			n    int
		}{{"no rule trips", 100}, {"a rule trips as well", 1}} {
			t.Run(fmt.Sprintf("%v, %s", outcome, rule.name), func(t *testing.T) {
				s := newStory(t, append(opts, WithErrorCount(rule.n))...).tell(
					step{0, F, Open},
					step{599.9, R, Open},
					step{600, A("probe"), HalfOpen},
				)
				assert.Equal(t, leave, s.events[0].OpenFor)
				assert.Equal(t, TripRequested, s.events[0].Cause.Reason)
				s.tell(
					step{601, done("probe", errDown), Open},
					step{1200.9, R, Open},
					step{1201, S, Closed},
				)
			})
		}
	}
}

// Nothing runs behind a breaker's back.
func TestS19_NoGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 1000 {
		newStory(t, WithErrorCount(1), WithInFlightSlow(), WithSlowCallRatio(time.Second, 0.5)).tell(
			step{0, A("out"), Closed},
			step{0, F, Open},
			step{5, A("probe"), HalfOpen},
		)
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
}

// State stayed open until the next call came, and counters kept what had long left
// the window.
func TestS22_StateIsPureAndEffective(t *testing.T) {
	s := newStory(t, WithErrorCount(3)).tell(
		step{0, times(2, F), Closed},
		step{9.999, look, Closed},
	)
	assert.EqualValues(t, 2, s.snap().Window.Failures)
	s.tell(step{10, look, Closed})
	assert.Zero(t, s.snap().Window.Total, "expired without traffic")
	s.tell(step{20, times(3, F), Open})
	events := len(s.events)
	for range 10 {
		s.tell(step{24.999, look, Open}, step{25, look, HalfOpen}, step{24.999, look, Open})
		s.now = at(25)
		assert.Equal(t, HalfOpen, s.snap().State)
	}
	assert.Len(t, s.events, events, "looking is no event")
	s.tell(step{25, A("probe"), HalfOpen})
	assert.Len(t, s.events, events+1, "it comes with the call")
	s.tell(step{26, done("probe", nil), Closed})
}
