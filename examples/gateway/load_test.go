package main

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// answering is a load whose every request takes d and gets a status.
func answering(d time.Duration, status, rate, most int) *load {
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(d):
			w.WriteHeader(status)
		case <-r.Context().Done():
		}
	})
	return &load{
		client: &http.Client{Transport: inMemory{h}},
		url:    "http://gateway.test/",
		rate:   rate,
		most:   most,
		phase:  func() phase { return incident },
		tally:  &tally{},
	}
}

// runFor runs l for so long, and returns how long that took.
func runFor(t *testing.T, l *load, d time.Duration) time.Duration {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	start := time.Now()
	l.run(ctx)
	return time.Since(start)
}

func TestLoad_SlowAnswersDoNotSlowTheRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, rate := range []int{3, 40, 60} {
			l := answering(3*time.Second, 200, rate, 1000)
			assert.Equal(t, 10*time.Second-1, runFor(t, l, 10*time.Second-1), "it cuts off what is out")
			assert.Equal(t, 10*rate, l.tally.incident.sent)
			assert.Equal(t, 7*rate, l.tally.incident.ok, "those of the first seven seconds")
			assert.Len(t, l.tally.turn().took, 7*rate, "what was cut off is no answer")
		}
	})
}

func TestLoad_MakesUpForAPauseButNotForAStandstill(t *testing.T) {
	for pause, want := range map[time.Duration]int{
		200 * time.Millisecond: 400,
		4 * time.Second:        241, // six of ten seconds, and the one that was due meanwhile
	} {
		synctest.Test(t, func(t *testing.T) {
			l := answering(0, 200, 40, 100)
			l.phase = func() phase {
				if l.tally.incident.sent == 100 {
					time.Sleep(pause)
				}
				return incident
			}
			runFor(t, l, 10*time.Second-1)
			assert.InDeltaf(t, want, l.tally.incident.sent, 1, "after %v", pause)
		})
	}
}

func TestLoad_BeyondItsBoundRequestsFailUnsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := answering(3*time.Second, 200, 10, 5)
		runFor(t, l, 4*time.Second-1)
		s := l.tally.turn()
		assert.Equal(t, 40, s.requests)
		assert.Equal(t, 5, s.ok)
		assert.Equal(t, 30, s.failed, "while the first five were out, and the next five")
	})
}

func TestLoad_AnAnswerThatBreaksOffIsNone(t *testing.T) {
	l := &load{url: "http://gateway.test/", client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Body: brokenBody{}}, nil
	})}}
	assert.Zero(t, l.get(t.Context()))
	l.url = "http://[gateway"
	assert.Zero(t, l.get(t.Context()))
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type brokenBody struct{}

func (brokenBody) Read([]byte) (int, error) { return 0, errors.New("connection reset") }
func (brokenBody) Close() error             { return nil }
