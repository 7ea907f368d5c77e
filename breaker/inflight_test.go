package breaker

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Calls that are out count as slow from when they are overdue until they return;
// then they count as what they were. Nobody counts twice.
func TestS24_OverdueCallCountsOnce(t *testing.T) {
	opts := []Option{WithSlowCallRatio(time.Second, 0.5), WithMinRequests(4), WithInFlightSlow()}
	t.Run("some return in time", func(t *testing.T) {
		s := newStory(t, opts...).tell(
			step{0, A("a"), Closed},
			step{0, A("b"), Closed},
			step{0.5, done("a", nil), Closed},
			step{0.5, times(3, S), Closed},
			step{1.5, S, Closed},              // 1 of 5
			step{1.6, done("b", nil), Closed}, // 1 of 6
		)
		w := s.snap().Window
		assert.EqualValues(t, 6, w.Total)
		assert.EqualValues(t, 1, w.Slow)
	})
	t.Run("one overdue is one", func(t *testing.T) {
		newStory(t, opts...).tell(
			step{0, A("a"), Closed},
			step{0, times(2, S), Closed},
			step{2, S, Closed}, // 1 of 4
			step{3, A("b"), Closed},
			step{3, done("a", nil), Closed}, // 1 of 4, still
			step{5, func(s *story) { s.admit(t.Context()).cancel(s.now) }, Closed}, // b is overdue: 2 of 5
			step{6, took(1001*time.Millisecond, nil), Open},                        // 3 of 6
		)
	})
	t.Run("given back is not overdue any more", func(t *testing.T) {
		newStory(t, opts...).tell(
			step{0, times(5, func(s *story) { s.admit(t.Context()).cancel(s.now) }), Closed},
			step{0, times(5, func(s *story) { s.admit(t.Context()).settle(s.now, sluice.Ignored) }), Closed},
			step{0, times(5, func(s *story) { s.admit(t.Context()).done(s.now, sluice.ErrRejected) }), Closed},
			step{3, S, Closed},
		)
	})
	t.Run("hung for longer than the window is forgotten", func(t *testing.T) {
		newStory(t, opts...).tell(
			step{0, A("a"), Closed},
			step{0, A("b"), Closed},
			step{30, S, Closed},
			step{31, times(3, S), Closed},
		)
	})
	t.Run("turned on, off and on again", func(t *testing.T) {
		s := newStory(t, WithSlowCallRatio(time.Second, 0.5), WithMinRequests(2))
		s.tell(
			step{0, A("before"), Closed},
			step{0, updated(func(c *Config) { c.InFlightSlow = true }), Closed},
			step{0, A("within"), Closed},
			step{0, updated(func(c *Config) { c.InFlightSlow = false }), Closed},
			step{0, A("after"), Closed},
			step{0.5, done("before", nil), Closed},
			step{0.5, done("within", nil), Closed},
			step{0.5, done("after", nil), Closed},
			step{0.5, updated(func(c *Config) { c.InFlightSlow = true }), Closed},
			step{5, S, Closed},
		)
		assert.EqualValues(t, 4, s.snap().Window.Total)
	})
}

// With calls of any length, an open breaker had enough overdue and slow calls, and
// a closed one had not: to within a bucket of the starts, which is a small part of
// the limit.
func TestS24_TripsWhenEnoughAreOverdue(t *testing.T) {
	const limit, fine = time.Second, time.Second / 8
	opened := 0
	for seed := range uint64(rounds(3000)) {
		r := rand.New(rand.NewPCG(seed, 24))
		s := newStory(t, WithSlowCallRatio(limit, 0.5), WithMinRequests(5), WithInFlightSlow())
		type call struct {
			p        *Permit
			from, to int64 // to is 0 while it is out
		}
		var calls []*call
		// slow counts those that are slow or have been out for longer than limit+slack.
		slow := func(slack time.Duration) (slow, total int) {
			for _, c := range calls {
				took := time.Duration(c.to - c.from)
				overdue := c.to == 0 && time.Duration(s.now-c.from) > limit+slack
				if c.to != 0 && took > limit || overdue {
					slow++
				}
				if c.to != 0 || overdue {
					total++
				}
			}
			return slow, total
		}
		for s.now < at(8) { // nothing leaves the window yet
			s.now += r.Int64N(int64(300 * time.Millisecond))
			if r.IntN(3) > 0 || len(calls) == 0 {
				p, err := s.b.allow(t.Context(), s.now)
				if err != nil {
					break
				}
				calls = append(calls, &call{p: &p, from: s.now})
			} else if c := calls[r.IntN(len(calls))]; c.to == 0 {
				c.to = s.now
				c.p.done(s.now, nil)
			}
			must, all := slow(fine)
			if all >= 5 && must*2 > all && s.b.state(s.now) == Closed {
				// It is looked for when a call comes, and not for each one.
				s.now += int64(fine)
				_, err := s.b.allow(t.Context(), s.now)
				require.ErrorIsf(t, err, ErrOpen, "seed %d: %d of %d", seed, must, all)
			}
			if s.b.state(s.now) != Closed {
				break
			}
		}
		if s.b.state(s.now) == Open {
			opened++
			may, all := slow(0)
			require.GreaterOrEqualf(t, may*2, all, "seed %d: %d of %d", seed, may, all)
		}
	}
	assert.Positive(t, opened)
}
