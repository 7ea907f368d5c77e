package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Overrides were undone by the next change of state, let probes through, or came
// back by themselves: https://github.com/failsafe-go/failsafe-go/issues/52,
// https://github.com/cep21/circuit/pull/159.
func TestT30_OverridesStickAndKeepTheStateUnderneath(t *testing.T) {
	t.Run("forced open for an hour", func(t *testing.T) {
		s := newStory(t, WithErrorCount(1))
		require.NoError(t, s.b.force(t0, ForcedOpen, time.Hour))
		for minute := range 60 {
			s.tell(step{float64(minute) * 60, R, Closed})
		}
		assert.Equal(t, ForcedOpen, s.snap().Forced)
		assert.EqualValues(t, 60, s.snap().Refused.Forced)
		s.tell(step{3600, S, Closed})
		assert.Zero(t, s.snap().Forced)
		assert.Empty(t, s.events, "an override is no change of state")
	})
	t.Run("no probe under it either", func(t *testing.T) {
		newStory(t, WithErrorCount(1)).tell(
			step{0, F, Open},
			step{1, forced(ForcedOpen), Open},
			step{6, R, HalfOpen},
			step{60, R, HalfOpen},
			step{60, unforced, HalfOpen},
			step{60, S, Closed},
		)
	})
	t.Run("a trip under forced closed", func(t *testing.T) {
		s := newStory(t, WithErrorCount(1)).tell(
			step{0, forced(ForcedClosed), Closed},
			step{0, F, Open},
			step{1, S, Open}, // would have been refused, feeds nothing
			step{2, F, Open},
			step{3, unforced, Open},
			step{3, R, Open},
			step{4.9, R, Open},
			step{5, S, Closed},
		)
		assert.Equal(t, []State{Closed, Open, HalfOpen, Closed}, s.path())
		assert.EqualValues(t, 1, s.snap().Totals.Failure)
	})
	t.Run("reset under forced open does not spring back", func(t *testing.T) {
		newStory(t, WithErrorCount(1)).tell(
			step{0, F, Open},
			step{1, forced(ForcedOpen), Open},
			step{2, reset, Closed},
			step{3, R, Closed},
			step{4, unforced, Closed},
			step{4, S, Closed},
		)
	})
	t.Run("disabled counts nothing", func(t *testing.T) {
		s := newStory(t, WithErrorCount(1)).tell(
			step{0, forced(Disabled), Closed},
			step{0, times(10, F), Closed},
			step{1, unforced, Closed},
		)
		assert.Zero(t, s.snap().Totals.Failure)
		s.tell(step{2, F, Open}, step{3, forced(Disabled), Open}, step{3, S, Open}, step{7, look, HalfOpen})
	})
	t.Run("shadow counts what it would have refused", func(t *testing.T) {
		s := newStory(t, WithErrorCount(1)).tell(
			step{0, forced(Shadow), Closed},
			step{0, F, Open},
			step{1, times(7, S), Open},
			step{5, S, Closed}, // it is the probe
		)
		assert.EqualValues(t, 7, s.snap().Shadowed)
		assert.Equal(t, RefusedSnapshot{}, s.snap().Refused)
	})
	t.Run("a mode that there is not", func(t *testing.T) {
		s := newStory(t)
		for _, m := range []Mode{0, 5, 255} {
			assert.Error(t, s.b.force(t0, m, 0), m)
		}
		assert.Error(t, s.b.force(t0, ForcedOpen, -1))
		assert.Zero(t, s.snap().Forced)
	})
}
