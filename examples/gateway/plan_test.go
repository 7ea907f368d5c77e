package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPlan_RoundNumbersAtFullLength(t *testing.T) {
	p, err := newPlan(40 * time.Second)
	require.NoError(t, err)
	assert.Equal(t, 200, p.slots)
	assert.Equal(t, 5*time.Second, p.window)
	assert.Equal(t, 2*time.Second, p.openFor)
	assert.Equal(t, 4*time.Second, p.openAtMost)
}

func TestPlan_LengthOutOfBoundsIsAnErrorWithTheValue(t *testing.T) {
	for _, total := range []time.Duration{9999 * time.Millisecond, 0, -time.Hour, 24*time.Hour + 1} {
		_, err := newPlan(total)
		assert.EqualError(t, err, "-duration "+total.String()+" is not in [10s, 24h0m0s]")
	}
}

func TestPlan_EveryLengthLeavesTimeForTheIncident(t *testing.T) {
	for total := shortest; total <= longest; total += total/7 + 3*time.Millisecond {
		p, err := newPlan(total)
		require.NoError(t, err)
		assert.Equalf(t, total, p.length(false)+p.length(true), "%v: both acts", total)

		// In the middle of the window at the latest half of it is bad, and the first
		// bad result comes with the attempt timeout.
		trips := (attemptTimeout + answerTime + answerJitter + p.window) / 2
		assert.Greaterf(t, p.incident, trips+spare/2, "%v: the breaker opens during the incident", total)
		assert.Greaterf(t, p.healthy, answerTime, "%v: there is a healthy phase", total)

		fills := time.Duration(p.slots) * time.Second / orderRate
		assert.Lessf(t, float64(fills), 0.5*float64(p.incident), "%v: orders fill the house early in the incident", total)
		assert.Lessf(t, float64(p.slots), 0.5*orderRate*hangTime.Seconds(), "%v: and it does not drain before half of a hang", total)

		slowestReturn := attemptTimeout + time.Duration(1.1*float64(p.openAtMost)) + time.Second
		assert.GreaterOrEqualf(t, p.recovery, slowestReturn, "%v: the breaker closes again", total)
		assert.GreaterOrEqualf(t, p.after, patience, "%v: requests of the incident get their answer", total)

		assert.Zerof(t, p.window%10, "%v: the window has ten equal buckets", total)
	}
}
