package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// shown is a summary of acts that showed all they should.
func shown() summary {
	return summary{
		without: result{sent: 400, ok: 150, slots: 200, mostSlots: 200, hung: 196},
		with: result{sent: 400, ok: 400, slots: 200, mostSlots: 67, hung: 185,
			tripped: true, hungOpen: 2, closed: true, toClosed: 1840 * time.Millisecond, state: "closed"},
	}
}

func TestSummary_ComparesTheActs(t *testing.T) {
	assert.Equal(t, `while order-service hung                  without protection     with protection
availability of user-service                          37.5 %             100.0 %
requests answered well                            150 of 400          400 of 400
most slots taken, of 200                                 200                  67
requests that reached the sick backend                   196                 185
  of these, after the breaker opened                       -                   2
from recovery to CLOSED                                    -               1.84s
`, shown().String())
	assert.NoError(t, shown().judge())
}

func TestSummary_SaysWhatWasNotShown(t *testing.T) {
	for _, c := range []struct {
		change func(*summary)
		want   string
	}{
		{func(s *summary) { s.without.ok = 240 }, "without protection user-service was available for 60.0 % of its requests, not below 60 %"},
		{func(s *summary) { s.with.sent, s.with.ok = 4000, 3995 }, "with protection user-service was available for 99.8 % of its requests, less than 99.9 %"},
		{func(s *summary) { s.with.tripped = false }, "order-service's breaker did not open during the incident"},
		{func(s *summary) { s.with.closed, s.with.state = false, "half_open" }, "order-service's breaker did not reach CLOSED after the recovery: it is half_open"},
		{func(s *summary) { s.with.sent, s.with.ok = 0, 0 }, "user-service had no requests during the incident"},
	} {
		s := shown()
		c.change(&s)
		assert.ErrorContains(t, s.judge(), c.want)
	}

	s := summary{}
	for _, want := range []string{"no requests", "did not open", "did not reach CLOSED"} {
		assert.ErrorContains(t, s.judge(), want, "all that is missing is said at once")
	}
	assert.Contains(t, s.String(), "never")
}

func TestSummary_AvailabilityIsNeverRoundedUp(t *testing.T) {
	assert.Equal(t, "99.9 %", percent(result{sent: 10_000, ok: 9_999}))
	assert.Equal(t, "100.0 %", percent(result{sent: 10_000, ok: 10_000}))
	assert.Equal(t, "0.0 %", percent(result{}))
}
