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

// A situation is where a breaker can stand when something happens to it. In each
// of them a call named "old" is out from an earlier stay in Closed, and one named
// "call": of the current stay where that admits calls, else of the Closed before.
type situation int

const (
	inClosed situation = iota
	inOpen             // before its deadline
	inDue              // open, past its deadline, and no call has come yet
	inHalf             // its only probe is out
	wherever           // how many there are
)

var situations = [wherever]string{"closed", "open", "open past its deadline", "half-open"}

// prepare brings a breaker there: one failure or slow call trips it for 5 s, one
// probe of at most 10 s closes it. The caller of "call" is who.
func prepare(t *testing.T, where situation) (s *story, who *caller) {
	s = newStory(t, WithErrorCount(1), WithSlowCallRatio(time.Second, 1))
	who = &caller{Context: t.Context()}
	call := func(s *story) { s.out["call"] = s.admit(who) }
	s.tell(step{0, A("old"), Closed}, step{0, reset, Closed})
	switch where {
	case inClosed:
		s.tell(step{6, call, Closed})
	case inOpen, inDue:
		s.tell(step{2, call, Closed}, step{2, F, Open})
		if where == inDue {
			s.tell(step{7, look, HalfOpen})
		}
	case inHalf:
		s.tell(step{0, F, Open}, step{6, call, HalfOpen})
	}
	s.events = nil
	return s, who
}

// An end is what a row of the transition table says of one situation: the state
// afterwards, and why it changed, 0 if it did not.
type end struct {
	state State
	why   CauseReason
}

// The transition table of the package comment, pair by pair.
func TestTransitions(t *testing.T) {
	same := [wherever]end{{Closed, 0}, {Open, 0}, {HalfOpen, 0}, {HalfOpen, 0}}
	// A result decides in Closed and for the probe. While open it is always stale.
	result := func(closed, half end) [wherever]end {
		return [wherever]end{closed, same[inOpen], same[inDue], half}
	}
	bad := result(end{Open, RuleTripped}, end{Open, ProbeFailed})
	good := result(same[inClosed], end{Closed, ProbesPassed})

	for _, row := range []struct {
		event string
		do    func(s *story, who *caller)
		want  [wherever]end
	}{
		{"success", func(s *story, _ *caller) { done("call", nil)(s) }, good},
		{"settled as a success", func(s *story, _ *caller) { settled("call", sluice.Success)(s) }, good},
		{"failure", func(s *story, _ *caller) { done("call", errDown)(s) }, bad},
		{"settled as a failure", func(s *story, _ *caller) { settled("call", sluice.Failure)(s) }, bad},
		{"slow", func(s *story, _ *caller) { s.now += int64(2 * time.Second); done("call", nil)(s) }, bad},
		{"slow, and the caller gave up", func(s *story, who *caller) {
			s.now += int64(2 * time.Second)
			who.gone = context.Canceled
			done("call", context.Canceled)(s)
		}, bad},
		{"panic", func(s *story, _ *caller) { unsettled("call")(s) }, bad},
		{"panic, and the caller gave up", func(s *story, who *caller) { who.gone = context.Canceled; unsettled("call")(s) }, same},
		{"ignored", func(s *story, _ *caller) { done("call", sluice.Ignore(errDown))(s) }, same},
		{"the caller gave up", func(s *story, who *caller) { who.gone = context.Canceled; done("call", context.Canceled)(s) }, same},
		{"cancelled", func(s *story, _ *caller) { cancelled("call")(s) }, same},
		{"throttled", func(s *story, _ *caller) { settled("call", sluice.Throttled)(s) }, same},
		{"a local refusal further in", func(s *story, _ *caller) { done("call", sluice.ErrRejected)(s) }, same},
		{"a stale success", func(s *story, _ *caller) { done("old", nil)(s) }, same},
		{"a stale failure", func(s *story, _ *caller) { done("old", errDown)(s) }, same},
		{"a stale panic", func(s *story, _ *caller) { unsettled("old")(s) }, same},

		{"a call comes", func(s *story, _ *caller) { try(s) }, [wherever]end{{Closed, 0}, {Open, 0}, {HalfOpen, DeadlinePassed}, {HalfOpen, 0}}},
		{"time passes", func(s *story, _ *caller) { s.now += int64(time.Hour) }, [wherever]end{{Closed, 0}, {HalfOpen, 0}, {HalfOpen, 0}, {HalfOpen, 0}}},
		{"time passes and a call comes", func(s *story, _ *caller) { s.now += int64(time.Hour); try(s) }, [wherever]end{{Closed, 0}, {HalfOpen, DeadlinePassed}, {HalfOpen, DeadlinePassed}, {Open, ProbeLost}}},
		{"a snapshot is taken", func(s *story, _ *caller) { _ = s.snap(); _ = s.b.Peek(); _ = s.b.State() }, same},

		{"Trip", func(s *story, _ *caller) { tripped(0)(s) }, [wherever]end{{Open, TripRequested}, {Open, 0}, {Open, 0}, {Open, TripRequested}}},
		{"Trip for a time", func(s *story, _ *caller) { tripped(time.Second)(s) }, [wherever]end{{Open, TripRequested}, {Open, 0}, {Open, 0}, {Open, TripRequested}}},
		{"Reset", func(s *story, _ *caller) { reset(s) }, [wherever]end{{Closed, 0}, {Closed, ResetRequested}, {Closed, ResetRequested}, {Closed, ResetRequested}}},

		{"Update to the same", func(s *story, _ *caller) { updated(func(*Config) {})(s) }, same},
		{"Update to a longer open time", func(s *story, _ *caller) { updated(func(c *Config) { c.OpenFor = time.Hour })(s) }, same},
		{"Update to an open time that is over", func(s *story, _ *caller) {
			s.now += int64(time.Second)
			updated(func(c *Config) { c.OpenFor = time.Second })(s)
		}, [wherever]end{{Closed, 0}, {HalfOpen, 0}, {HalfOpen, 0}, {HalfOpen, 0}}},
		{"Update to another window", func(s *story, _ *caller) { updated(func(c *Config) { c.Window *= 2 })(s) }, same},
		{"Update to other rules", func(s *story, _ *caller) {
			updated(func(c *Config) { c.Rules = []Rule{{Kind: ConsecutiveFailures, Count: 1}} })(s)
		}, same},
		{"Force open", func(s *story, _ *caller) { forced(ForcedOpen)(s) }, same},
		{"Force closed", func(s *story, _ *caller) { forced(ForcedClosed)(s) }, same},
		{"Disable", func(s *story, _ *caller) { forced(Disabled)(s) }, same},
		{"Shadow", func(s *story, _ *caller) { forced(Shadow)(s) }, same},
		{"Force and Unforce", func(s *story, _ *caller) { forced(ForcedOpen)(s); unforced(s) }, same},
	} {
		for where, want := range row.want {
			t.Run(fmt.Sprintf("%s/%s", situations[where], row.event), func(t *testing.T) {
				s, who := prepare(t, situation(where))
				before := s.b.state(s.now)
				if where == int(inDue) {
					before = Open // as its events have it
				}
				row.do(s, who)
				assert.Equal(t, want.state, s.b.state(s.now))
				if want.why == 0 {
					assert.Empty(t, s.events)
					return
				}
				require.NotEmpty(t, s.events)
				assert.Equal(t, before, s.events[0].From)
				assert.Equal(t, want.state, s.last().To)
				assert.Equal(t, want.why, s.last().Cause.Reason)
			})
		}
	}
}

// try is a call that may be admitted or not.
func try(s *story) (admitted bool) {
	_, err := s.b.allow(s.t.Context(), s.now)
	return err == nil
}

// What an override does with a call in each situation, and what the call's failure
// then does to the state underneath.
func TestTransitions_UnderOverrides(t *testing.T) {
	type row struct {
		admitted, shadowed bool
		after              end // the call came
		failed             end // and failed
	}
	refused := func(s State) row { return row{after: end{s, 0}, failed: end{s, 0}} }
	untouched := func(s State) row { return row{admitted: true, after: end{s, 0}, failed: end{s, 0}} }
	forcedClosed := [wherever]row{
		{admitted: true, after: end{Closed, 0}, failed: end{Open, RuleTripped}},
		untouched(Open), // would have been refused: feeds nothing
		{admitted: true, after: end{HalfOpen, DeadlinePassed}, failed: end{Open, ProbeFailed}},
		untouched(HalfOpen),
	}
	shadow := forcedClosed
	shadow[inOpen].shadowed, shadow[inHalf].shadowed = true, true
	for mode, rows := range map[Mode][wherever]row{
		0: {
			{admitted: true, after: end{Closed, 0}, failed: end{Open, RuleTripped}},
			refused(Open),
			{admitted: true, after: end{HalfOpen, DeadlinePassed}, failed: end{Open, ProbeFailed}},
			refused(HalfOpen),
		},
		ForcedOpen:   {refused(Closed), refused(Open), refused(HalfOpen), refused(HalfOpen)},
		ForcedClosed: forcedClosed,
		Disabled:     {untouched(Closed), untouched(Open), untouched(HalfOpen), untouched(HalfOpen)},
		Shadow:       shadow,
	} {
		for where, want := range rows {
			t.Run(fmt.Sprintf("%v/%s", mode, situations[where]), func(t *testing.T) {
				s, _ := prepare(t, situation(where))
				if mode != 0 {
					forced(mode)(s)
				}
				check := func(want end) {
					t.Helper()
					assert.Equal(t, want.state, s.b.state(s.now))
					var why CauseReason
					if len(s.events) > 0 {
						why = s.last().Cause.Reason
					}
					assert.Equal(t, want.why, why)
					s.events = nil
				}
				p, err := s.b.allow(t.Context(), s.now)
				assert.Equal(t, want.admitted, err == nil)
				check(want.after)
				p.done(s.now, errDown)
				check(want.failed)
				assert.Equal(t, want.shadowed, s.snap().Shadowed == 1)

				// What is out and what is stale ends as ever, and so does the override.
				done("old", errDown)(s)
				check(end{want.failed.state, 0})
				unforced(s)
				assert.Zero(t, s.snap().Forced)
				check(end{want.failed.state, 0})
			})
		}
	}
}
