package main

import (
	"math"
	"net/http"
	"slices"
	"sync"
	"time"
)

// A tally is what the clients of one service see: the second that is running, and
// the requests of the incident. It is safe for concurrent use.
type tally struct {
	mu       sync.Mutex
	second   second
	incident struct{ sent, ok int }
}

// A second is what was sent and what was answered in a second or so. An answer
// counts when it comes, however long ago it was asked for.
type second struct {
	requests int
	ok       int // 2xx
	refused  int // 503: turned away by the front door or by a breaker
	failed   int // everything else
	slow     int // answers of all three kinds that took longer than slowLimit
	took     []time.Duration
}

// sent counts a request.
func (t *tally) sent(during phase) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.second.requests++
	if during == incident {
		t.incident.sent++
	}
}

// answered counts the answer to a request that was sent during a phase; a status
// of 0 is none at all. A request without an answer when the act ends stays sent.
func (t *tally) answered(during phase, status int, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case status >= 200 && status < 300:
		t.second.ok++
		if during == incident {
			t.incident.ok++
		}
	case status == http.StatusServiceUnavailable:
		t.second.refused++
	default:
		t.second.failed++
	}
	if took > slowLimit {
		t.second.slow++
	}
	t.second.took = append(t.second.took, took)
}

// turn ends the second and begins the next.
func (t *tally) turn() second {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.second
	t.second = second{}
	slices.Sort(s.took)
	return s
}

// quantile is the time within which at least the share q of the answers came; false
// if there was none. The second must have ended.
func (s second) quantile(q float64) (time.Duration, bool) {
	if len(s.took) == 0 {
		return 0, false
	}
	rank := int(math.Ceil(q * float64(len(s.took))))
	return s.took[max(rank, 1)-1], true
}

// slowRatio is the share of answers that took longer than slowLimit.
func (s second) slowRatio() float64 {
	return float64(s.slow) / float64(max(len(s.took), 1))
}
