package adaptive

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A client makes the calls of an experiment under a Timeout, and keeps account of
// them. It does what a service would do with real contexts and timers.
type client struct {
	world   *world
	timeout *Timeout
	latency latency
	// deadline is that of callers, 0 for one that has none.
	deadline func() time.Duration
	// fails tells of a call whether it fails at once.
	fails func() bool
	// wakes is when this process notices what happens at a time, later if it is
	// stalled then. Deadlines are noticed before answers.
	wakes func(at int64) int64

	phases []*phase
}

// A phase is what happened to the calls that began in a part of an experiment.
type phase struct {
	from, to time.Duration
	calls    int
	cut      int           // by the limit
	falsely  int           // of these, would have been answered within Max
	spurious int           // of these, would have been answered within the limit
	waited   time.Duration // by those that were cut
	refused  int
}

func (p *phase) share(n int) float64 { return float64(n) / float64(max(1, p.calls)) }

// falseTimeouts is the share of calls cut off that would have been answered.
func (p *phase) falseTimeouts() float64 { return p.share(p.falsely) }

func (p *phase) meanWait() time.Duration { return p.waited / time.Duration(max(1, p.cut)) }

var errRefused = errors.New("connection refused")

// newClient returns a client whose Timeout has bounds of 10 ms and 5 s.
func newClient(t testing.TB, seed uint64, l latency, opts ...TimeoutOption) *client {
	t.Helper()
	c := &client{world: newWorld(seed), latency: l}
	s := newTimeoutSettings(10*ms, 5*time.Second)
	s.apply(opts)
	require.NoError(t, s.check())
	c.timeout = newTimeout("backend", &s.TimeoutConfig, s.hooks.keep(), c.world.now)
	return c
}

// phase adds a part to keep account of; calls that begin in several count for each.
func (c *client) phase(from, to time.Duration) *phase {
	p := &phase{from: from, to: to}
	c.phases = append(c.phases, p)
	return p
}

// load makes calls, so many a second, for ever.
func (c *client) load(perSecond float64) { c.world.arrive(perSecond, c.call) }

// call makes one call.
func (c *client) call() {
	w := c.world
	if c.wakes != nil && c.wakes(w.now) > w.now {
		w.at(c.wakes(w.now), c.call) // nothing begins during a stall
		return
	}
	start := w.now
	in := func(do func(*phase)) {
		for _, p := range c.phases {
			if since := time.Duration(start - t0); p.from <= since && since < p.to {
				do(p)
			}
		}
	}
	in(func(p *phase) { p.calls++ })
	ctx := &caller{Context: context.Background()}
	took := c.latency(w.since(), w.rand)
	failing := c.fails != nil && c.fails()
	if c.deadline != nil {
		if d := c.deadline(); d > 0 {
			ctx.deadline = start + int64(d)
		}
	}
	a, err := c.timeout.begin(ctx, start)
	if err != nil {
		in(func(p *phase) { p.refused++ })
		return
	}
	if failing {
		w.after(ms, func() { a.done(w.now, errRefused) })
		return
	}
	limit := a.Limit()
	wait := time.Duration(ctx.deadline - start) // of the caller
	expires, answered := c.notices(start, limit), c.notices(start, took)
	switch {
	case ctx.deadline != 0 && wait <= limit && wait < took:
		w.after(wait, func() {
			ctx.gone = context.DeadlineExceeded
			a.done(w.now, context.DeadlineExceeded)
		})
	case expires < answered || expires == answered && expires > start+int64(limit):
		in(func(p *phase) {
			p.cut++
			p.waited += time.Duration(expires - start)
			if took <= c.timeout.Config().Max {
				p.falsely++
			}
			if took <= limit {
				p.spurious++
			}
		})
		w.at(expires, func() { a.done(w.now, context.DeadlineExceeded) })
	default:
		w.at(answered, func() { a.done(w.now, nil) })
	}
}

// notices is when this process notices what happens d after start.
func (c *client) notices(start int64, d time.Duration) int64 {
	if d == hanging {
		return int64(hanging)
	}
	if c.wakes == nil {
		return start + int64(d)
	}
	return c.wakes(start + int64(d))
}
