package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A long outage does not take equally long to be forgotten: the level stops where
// the period does.
func TestS16_BackoffStopsAtItsCap(t *testing.T) {
	s := newStory(t, WithErrorCount(1)).tell(step{0, F, Open})
	for range 100 {
		s.now += int64(s.last().OpenFor)
		F(s)
	}
	assert.Equal(t, time.Minute, s.last().OpenFor)
	s.now += int64(time.Minute)
	S(s)
	closedAt := float64(s.now-t0) / 1e9
	s.tell(step{closedAt + 121, F, Open}) // two minutes in health: from 5·2⁴ two steps down
	assert.Equal(t, 20*time.Second, s.last().OpenFor)
	s.tell(step{closedAt + 122, reset, Closed}, step{closedAt + 123, F, Open})
	assert.Equal(t, 5*time.Second, s.last().OpenFor, "Reset forgets all")
}

// An open time of a rule is what grows, up to a cap that is never below it.
func TestS16_RuleWithItsOwnOpenTime(t *testing.T) {
	s := newStory(t, WithErrorCount(1, OpenFor(40*time.Second))).tell(
		step{0, F, Open},
		step{40, F, Open},
	)
	assert.Equal(t, time.Minute, s.last().OpenFor)
	s = newStory(t, WithErrorCount(1, OpenFor(90*time.Second))).tell(
		step{0, F, Open},
		step{90, F, Open},
	)
	assert.Equal(t, 90*time.Second, s.last().OpenFor)
}

// In recovery the admitted share is judged with the same gate, what is shed is in
// no window, and who must get through does.
func TestS17_RecoveryStepsAndPriorities(t *testing.T) {
	recovering := func(t *testing.T, opts ...Option) *story {
		return newStory(t, append(opts, WithRecovery(Step{0.1, 10 * time.Second}, Step{0.5, 20 * time.Second}))...).
			tell(step{0, times(2, F), Open}, step{5, S, Closed})
	}
	t.Run("step by step", func(t *testing.T) {
		s := recovering(t, WithErrorCount(2))
		assert.Equal(t, 0.1, s.snap().Share)
		assert.InDelta(t, 10, admitted(s, 5, 14.999, 100), 1)
		assert.InDelta(t, 50, admitted(s, 15, 34.999, 100), 1)
		assert.Equal(t, 0.5, s.snap().Share)
		assert.EqualValues(t, 100-10+100-50, s.snap().Refused.Recovering, "give or take one")
		assert.Equal(t, 100, admitted(s, 35, 36, 100))
		assert.Equal(t, 1.0, s.snap().Share)
		assert.Equal(t, []State{Closed, Open, HalfOpen, Closed}, s.path(), "the end of a step is no change of state")
	})
	t.Run("what is shed is in no window", func(t *testing.T) {
		s := recovering(t, WithErrorRatio(0.5, MinRequests(2)))
		passed := admitted(s, 5, 6, 100)
		assert.EqualValues(t, passed, s.snap().Window.Total)
	})
	t.Run("the gate is as ever", func(t *testing.T) {
		s := recovering(t, WithErrorRatio(0.5, MinRequests(2)))
		s.now = at(6)
		for failures := 0; failures < 2; {
			require.Equal(t, Closed, s.b.state(s.now))
			if p, err := s.b.allow(t.Context(), s.now); err == nil {
				p.done(s.now, errDown)
				failures++
			}
		}
		assert.Equal(t, Open, s.b.state(s.now))
	})
	t.Run("P0 passes", func(t *testing.T) {
		s := recovering(t, WithErrorCount(2))
		s.now = at(6)
		for _, c := range []struct {
			priority sluice.Priority
			all      bool
		}{{sluice.P0, true}, {sluice.P1, false}, {sluice.P2, false}} {
			passed := 0
			for range 100 {
				if p, err := s.b.allow(sluice.WithPriority(t.Context(), c.priority), s.now); err == nil {
					p.done(s.now, nil)
					passed++
				}
			}
			if c.all {
				assert.Equal(t, 100, passed)
			} else {
				assert.InDelta(t, 10, passed, 1)
			}
		}
	})
	t.Run("half-open lets nobody jump the queue", func(t *testing.T) {
		s := newStory(t, WithErrorCount(1)).tell(step{0, F, Open})
		_, err := s.b.allow(sluice.WithPriority(t.Context(), sluice.P0), at(1))
		assert.ErrorIs(t, err, ErrOpen)
		s.tell(step{5, A("probe"), HalfOpen})
		_, err = s.b.allow(sluice.WithPriority(t.Context(), sluice.P0), at(5))
		assert.ErrorIs(t, err, ErrOpen)
	})
}

// A trip by hand, or one that the dependency asks for, finds the backoff where
// health has left it, and is no failed recovery itself.
func TestS16_TripByHandFindsTheBackoffThatIsLeft(t *testing.T) {
	grown := func(t *testing.T) *story {
		return newStory(t, WithErrorCount(1)).tell(
			step{0, F, Open},
			step{5, F, Open},
			step{15, F, Open},
			step{35, F, Open}, // for 40 s
			step{75, S, Closed},
		)
	}
	t.Run("after an hour of health, for the configured period", func(t *testing.T) {
		s := grown(t).tell(step{3600, tripped(0), Open})
		assert.Equal(t, 5*time.Second, s.last().OpenFor)
	})
	t.Run("and the recovery that fails then is the first", func(t *testing.T) {
		s := grown(t).tell(step{3600, tripped(time.Second), Open}, step{3601, F, Open})
		assert.Equal(t, 10*time.Second, s.last().OpenFor)
	})
	t.Run("in the middle of an outage nothing is forgotten", func(t *testing.T) {
		s := newStory(t, WithErrorCount(1)).tell(
			step{0, F, Open},
			step{5, F, Open},
			step{6, tripped(time.Second), Open},
			step{7, F, Open},
		)
		assert.Equal(t, 20*time.Second, s.last().OpenFor)
	})
}
