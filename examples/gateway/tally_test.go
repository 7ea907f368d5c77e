package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestTally_SortsAnswersByWhatTheyMeanToAClient(t *testing.T) {
	var l tally
	for _, c := range []struct {
		during phase
		status int
		took   time.Duration
	}{
		{healthy, 200, 100 * time.Millisecond},
		{incident, 204, slowLimit},
		{incident, 503, slowLimit + 1},
		{incident, 504, time.Second},
		{incident, 500, 0},
		{incident, 404, 0},
		{incident, 0, 0},
		{recovered, 200, 200 * time.Millisecond},
	} {
		l.sent(c.during)
		l.answered(c.during, c.status, c.took)
	}
	s := l.turn()
	assert.Equal(t, []int{8, 3, 1, 4, 2}, []int{s.requests, s.ok, s.refused, s.failed, s.slow})
	assert.Equal(t, 6, l.incident.sent)
	assert.Equal(t, 1, l.incident.ok)
	assert.InDelta(t, 0.25, s.slowRatio(), 1e-9)
	assert.Zero(t, l.turn().requests, "the next second begins empty")
	assert.Equal(t, 6, l.incident.sent, "the incident goes on")
}

func TestSecond_Quantile(t *testing.T) {
	var s second
	_, ok := s.quantile(0.5)
	assert.False(t, ok)
	for i := range 100 {
		s.took = append(s.took, time.Duration(i+1))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 1: 100} {
		got, ok := s.quantile(q)
		assert.True(t, ok)
		assert.Equalf(t, want, got, "quantile %v", q)
	}
}
