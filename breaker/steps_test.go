package breaker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// t0 is where stories begin: any time that is a multiple of every bucket width.
const t0 = int64(time.Hour)

// at is a time of a story, in seconds after its beginning.
func at(seconds float64) int64 { return t0 + int64(math.Round(seconds*1e9)) }

// errDown is what a backend that is at fault returns.
var errDown = errors.New("the backend is down")

// A story tells one breaker step by step what happens to it, in virtual time,
// and keeps the events it tells back.
type story struct {
	t      testing.TB
	b      *Breaker
	events []Event
	out    map[string]*Permit // calls in flight, by the name the story gave them
	now    int64
	where  string
}

// A step is one line of a story: at a time, in seconds, something happens, and
// afterwards the breaker is in a state.
type step struct {
	at   float64
	do   act
	want State
}

// An act is what happens in a step, at s.now. One that takes time moves s.now.
type act func(s *story)

// build makes a breaker that judges from the first call and is open for
// exactly as long as it says, unless opts say otherwise.
func build(t testing.TB, opts ...Option) *Breaker {
	t.Helper()
	b, err := New("payments", append([]Option{WithMinRequests(1), WithJitter(0)}, opts...)...)
	require.NoError(t, err)
	return b
}

// newStory makes a breaker as build does, with nothing told yet.
func newStory(t testing.TB, opts ...Option) *story {
	t.Helper()
	s := &story{t: t, out: map[string]*Permit{}, now: t0}
	s.b = build(t, append(opts, WithOnChange(func(e Event) { s.events = append(s.events, e) }))...)
	return s
}

// tell runs the steps and stops at the first that ends otherwise than it says.
func (s *story) tell(steps ...step) *story {
	s.t.Helper()
	for i, step := range steps {
		s.now, s.where = at(step.at), fmt.Sprintf("step %d, at %v s", i, step.at)
		step.do(s)
		require.Equalf(s.t, step.want, s.b.state(s.now), "the state after %s", s.where)
	}
	return s
}

// path is the states the breaker has been through, as its events tell.
func (s *story) path() []State {
	if len(s.events) == 0 {
		return nil
	}
	states := []State{s.events[0].From}
	for _, e := range s.events {
		states = append(states, e.To)
	}
	return states
}

// last is the newest event.
func (s *story) last() Event {
	s.t.Helper()
	require.NotEmpty(s.t, s.events, s.where)
	return s.events[len(s.events)-1]
}

// snap is the snapshot at the time of the last step.
func (s *story) snap() Snapshot { return s.b.snapshot(s.now) }

// timeless is the snapshot without its wall times, which are worked out from the
// clock anew each time.
func (s *story) timeless() Snapshot {
	snap := s.snap()
	snap.Since, snap.RetryAt = time.Time{}, time.Time{}
	return snap
}

// admit has the call admitted, with ctx.
func (s *story) admit(ctx context.Context) *Permit {
	s.t.Helper()
	p, err := s.b.allow(ctx, s.now)
	require.NoErrorf(s.t, err, "%s: the call is admitted", s.where)
	return &p
}

// S is a call that is admitted and succeeds in no time.
func S(s *story) { s.t.Helper(); s.admit(s.t.Context()).done(s.now, nil) }

// F is a call that is admitted and fails in no time.
func F(s *story) { s.t.Helper(); s.admit(s.t.Context()).done(s.now, errDown) }

// X is a call that is admitted and whose caller goes away at once.
func X(s *story) { s.t.Helper(); gaveUp(0)(s) }

// gaveUp is a call whose caller goes away after a while.
func gaveUp(d time.Duration) act { return ended(d, context.Canceled) }

// late is a call that is still out at the caller's own deadline, a while later.
func late(d time.Duration) act { return ended(d, context.DeadlineExceeded) }

func ended(d time.Duration, why error) act {
	return func(s *story) {
		s.t.Helper()
		c := &caller{Context: s.t.Context()}
		p := s.admit(c)
		s.now += int64(d)
		c.gone = why
		p.done(s.now, why)
	}
}

// caller is a context that ends when the story says so.
type caller struct {
	context.Context
	gone error
}

func (c *caller) Err() error { return c.gone }

// R is a call that is refused.
func R(s *story) {
	s.t.Helper()
	_, err := s.b.allow(s.t.Context(), s.now)
	require.ErrorIsf(s.t, err, ErrOpen, "%s: the call is refused", s.where)
}

// look is a step in which nothing happens.
func look(*story) {}

// A is a call that is admitted and stays in flight under a name.
func A(name string) act {
	return func(s *story) { s.t.Helper(); s.out[name] = s.admit(s.t.Context()) }
}

// done ends a call in flight with err.
func done(name string, err error) act {
	return func(s *story) { s.out[name].done(s.now, err) }
}

// settled ends a call in flight with an outcome.
func settled(name string, o sluice.Outcome) act {
	return func(s *story) { s.out[name].settle(s.now, o) }
}

// cancelled gives a call in flight back unspent.
func cancelled(name string) act {
	return func(s *story) { s.out[name].cancel(s.now) }
}

// unsettled ends a call in flight as a deferred Close does that finds no verdict.
func unsettled(name string) act {
	return func(s *story) { s.out[name].close(s.now) }
}

// took is a call that is admitted and returns err a while later.
func took(d time.Duration, err error) act {
	return func(s *story) {
		s.t.Helper()
		p := s.admit(s.t.Context())
		s.now += int64(d)
		p.done(s.now, err)
	}
}

// times is n times the same at once.
func times(n int, a act) act {
	return func(s *story) {
		s.t.Helper()
		for range n {
			a(s)
		}
	}
}

// tripped opens the breaker by hand, 0 for as long as configured.
func tripped(d time.Duration) act {
	return func(s *story) { s.t.Helper(); require.NoError(s.t, s.b.trip(s.now, d), s.where) }
}

// reset closes the breaker by hand.
func reset(s *story) { s.b.reset(s.now) }

// forced sets an override for good.
func forced(m Mode) act {
	return func(s *story) { s.t.Helper(); require.NoError(s.t, s.b.force(s.now, m, 0), s.where) }
}

// unforced ends the override.
func unforced(s *story) { s.b.Unforce() }

// updated changes the configuration.
func updated(change func(*Config)) act {
	return func(s *story) {
		s.t.Helper()
		c := s.b.Config()
		change(&c)
		require.NoError(s.t, s.b.Update(c), s.where)
	}
}

// rounds is how much of a long test is done.
func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}
