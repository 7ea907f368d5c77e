package breaker

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Whatever ends a probe without a verdict gives its seat back, changes no state
// and is no entry in any window; the next caller may probe at once.
func TestS05_NeutralProbeGivesItsSeatBack(t *testing.T) {
	ctxGone := func(end func(*Permit, *story)) act {
		return func(s *story) {
			c := &caller{Context: t.Context()}
			p := s.admit(c)
			c.gone = context.Canceled
			end(p, s)
		}
	}
	alive := func(end func(*Permit, *story)) act {
		return func(s *story) { end(s.admit(t.Context()), s) }
	}
	for name, neutral := range map[string]act{
		"caller cancelled":           X,
		"cancelled, another error":   ctxGone(func(p *Permit, s *story) { p.done(s.now, errDown) }),
		"cancelled, then Close":      ctxGone(func(p *Permit, s *story) { p.close(s.now) }),
		"marked":                     alive(func(p *Permit, s *story) { p.done(s.now, sluice.Ignore(errDown)) }),
		"marked, wrapped":            alive(func(p *Permit, s *story) { p.done(s.now, fmt.Errorf("oh: %w", sluice.Ignore(errDown))) }),
		"refused further in":         alive(func(p *Permit, s *story) { p.done(s.now, fmt.Errorf("limiter: %w", sluice.ErrRejected)) }),
		"settled as ignored":         alive(func(p *Permit, s *story) { p.settle(s.now, sluice.Ignored) }),
		"given back":                 alive(func(p *Permit, s *story) { p.cancel(s.now) }),
		"given back, caller gone":    ctxGone(func(p *Permit, s *story) { p.cancel(s.now) }),
		"too little budget":          late(10 * time.Millisecond),
		"slow, caller gone, refused": ctxGone(func(p *Permit, s *story) { s.now += int64(time.Hour); p.done(s.now, sluice.ErrRejected) }),
		"slow, but refused further":  alive(func(p *Permit, s *story) { s.now += int64(time.Hour); p.done(s.now, sluice.ErrRejected) }),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, WithErrorCount(1), WithSlowCallRatio(time.Second, 0.9, MinRequests(100)), WithProbeLease(10*time.Hour)).tell(
				step{0, F, Open},
				step{5, neutral, HalfOpen},
			)
			assert.Zero(t, s.snap().Probe.Issued)
			s.tell(step{6000, A("next"), HalfOpen}, step{6000, R, HalfOpen}, step{6000, done("next", nil), Closed})
			assert.Zero(t, s.snap().Window.Total)
			assert.Equal(t, []State{Closed, Open, HalfOpen, Closed}, s.path())
		})
	}
}

// Three times done on one probe closed a breaker that wanted three probes.
func TestS07_SettlingTwiceCountsOnce(t *testing.T) {
	ends := map[string]func(*Permit, int64){
		"Done":    func(p *Permit, now int64) { p.done(now, nil) },
		"Settle":  func(p *Permit, now int64) { p.settle(now, sluice.Success) },
		"fail":    func(p *Permit, now int64) { p.done(now, errDown) },
		"Cancel":  func(p *Permit, now int64) { p.cancel(now) },
		"Close":   func(p *Permit, now int64) { p.close(now) },
		"ignored": func(p *Permit, now int64) { p.settle(now, sluice.Ignored) },
	}
	for name, again := range ends {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, WithErrorCount(2), WithProbes(3)).tell(step{0, A("failing"), Closed}, step{0, done("failing", errDown), Closed})
			again(s.out["failing"], s.now)
			assert.EqualValues(t, 1, s.snap().Window.Total)
			assert.EqualValues(t, 1, s.snap().Window.Failures)
			s.tell(step{1, F, Open}, step{6, A("probe"), HalfOpen}, step{6, done("probe", nil), HalfOpen})
			for range 3 {
				again(s.out["probe"], s.now)
				assert.Equal(t, 1, s.snap().Probe.Good)
				assert.Equal(t, 1, s.snap().Probe.Issued)
				require.Equal(t, HalfOpen, s.b.state(s.now))
			}
			s.tell(step{7, S, HalfOpen}, step{7, S, Closed})
		})
	}
}

// A lease that is worked out is as long as the open period, and 10 s at least.
func TestS04_LeaseWorkedOut(t *testing.T) {
	for _, c := range []struct{ open, lease float64 }{{1, 10}, {20, 20}} {
		newStory(t, WithErrorCount(1), WithOpenFor(time.Duration(c.open)*time.Second)).tell(
			step{0, F, Open},
			step{c.open, A("hung"), HalfOpen},
			step{c.open + c.lease - 0.001, R, HalfOpen},
			step{c.open + c.lease, R, Open},
		)
	}
}

// Each probe of a stage has its own lease, a lost one is one bad one, and its
// result is stale once the stage has gone on.
func TestS04_LostProbesAreForgivenAsBadOnesAre(t *testing.T) {
	s := newStory(t, WithErrorCount(1), WithProbes(4), WithProbeTolerance(0.25), WithProbeLease(10*time.Second)).tell(
		step{0, F, Open},
		step{5, A("hung"), HalfOpen},
		step{8, A("out"), HalfOpen},
		step{15, A("third"), HalfOpen}, // hung is lost, which one in four may be
	)
	assert.EqualValues(t, 1, s.snap().Totals.Lost)
	assert.Equal(t, ProbeSnapshot{Stage: 1, Stages: 1, Size: 4, Issued: 3, Good: 0, Bad: 1}, s.snap().Probe)
	s.tell(
		step{16, done("out", nil), HalfOpen},
		step{16, done("hung", nil), HalfOpen},
		step{16, done("third", nil), HalfOpen},
		step{17, S, Closed},
	)
	assert.EqualValues(t, 1, s.snap().Totals.Stale)
}

// A probe is good only if it is good for every rule there is: without an error rule
// an error is, and a call that never completed proves nothing to any.
func TestS01_ProbeIsGoodIfItIsGoodForEveryRule(t *testing.T) {
	slow, fails := WithSlowCallRatio(time.Second, 0.5), WithErrorRatio(0.5)
	for _, c := range []struct {
		name  string
		rules []Option
		probe act
		want  State
	}{
		{"slow, rule for slow calls", []Option{slow}, took(time.Second+1, nil), Open},
		{"error, rule for slow calls", []Option{slow}, F, Closed},
		{"panic, rule for slow calls", []Option{slow}, func(s *story) { s.admit(t.Context()).close(s.now) }, Open},
		{"slow, rule for errors", []Option{fails}, took(time.Second+1, nil), Closed},
		{"error, rule for errors", []Option{fails}, F, Open},
		{"slow, both", []Option{slow, fails}, took(time.Second+1, nil), Open},
		{"error, both", []Option{slow, fails}, F, Open},
		{"good for both", []Option{slow, fails}, took(time.Second, nil), Closed},
		{"error, rule for a row", []Option{WithConsecutiveFailures(10)}, F, Open},
		{"error, rule for a count", []Option{WithErrorCount(10)}, F, Open},
	} {
		t.Run(c.name, func(t *testing.T) {
			newStory(t, c.rules...).tell(step{0, tripped(0), Open}, step{5, c.probe, c.want})
		})
	}
}
