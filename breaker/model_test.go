package breaker

import (
	"math"
	"slices"
	"time"

	"github.com/sluicego/sluice"
)

// model is what a breaker does, written to be checked by eye: it keeps every call
// of the current stay in a slice and counts by looking. In it time never runs
// back, nothing happens at once, and there is no jitter.
type model struct {
	c     Config
	state State
	stay  int // counts the stays in a state; a call belongs to the one it began in
	began int64

	// Closed
	calls   []modelCall
	from    []int // by rule: the first of calls that its window may hold
	row     int   // failures with no success between
	held    bool  // when last judged, a gate alone held a rule back
	ramped  bool  // it began with a recovery
	ramping bool  // which may not be over

	// Open, and what it leaves behind
	until  int64
	asked  bool // for exactly so long: no backoff, and no Update changes it
	rule   int  // that tripped, -1 if none did
	level  int
	steady time.Duration // how long it was open; 0 if it never was, or was reset

	// HalfOpen
	stage, size, good, bad int
	out                    []*modelSeat
	wait                   int64 // no probe goes before

	mode      Mode
	modeUntil int64
	told      []Event // what the listener must have heard by now
	lost      int64   // probes, in all
	changes   uint64  // of state, in all
}

// modelCall is a call that has ended and counts.
type modelCall struct {
	at      int64
	took    time.Duration
	outcome sluice.Outcome // Ignored if its caller gave up
}

// modelSeat is the place of a call that is out.
type modelSeat struct {
	stay  int
	start int64
	due   int64 // of a probe: when its lease ends
}

// modelEnd is how a call ended.
type modelEnd struct {
	outcome    sluice.Outcome
	gaveUp     bool          // Ignored because its caller went away
	unfinished bool          // panic or Goexit
	wait       time.Duration // what a throttled call asks for; negative if nothing
	tripFor    time.Duration
}

func newModel(c Config) *model {
	m := &model{c: c, rule: -1, state: Closed}
	m.enter(Closed, 0, 0)
	return m
}

// enter begins a stay.
func (m *model) enter(to State, now int64, why CauseReason) {
	if to != m.state {
		m.changes++
		m.told = append(m.told, Event{From: m.state, To: to, Cause: Cause{Reason: why}})
	}
	m.state, m.began, m.stay = to, now, m.stay+1
	m.calls, m.from, m.row, m.held = nil, make([]int, len(m.c.Rules)), 0, false
	m.ramped, m.ramping = false, false
	m.stage, m.size, m.good, m.bad, m.out, m.wait = 0, m.c.Probes[0], 0, 0, nil, 0
}

// open trips: for the period of a level of backoff, or for as long as asked.
func (m *model) open(now int64, why CauseReason, rule, level int, asked time.Duration) {
	base := m.openFor(rule)
	m.rule, m.level, m.asked, m.steady = rule, level, asked > 0, asked
	if !m.asked {
		m.level = min(level, m.top(base))
		m.steady = m.period(base, m.level)
	}
	was := m.state
	m.enter(Open, now, why)
	m.until = now + int64(m.steady)
	if was != Open {
		m.told[len(m.told)-1].OpenFor = m.steady
	}
}

func (m *model) openFor(rule int) time.Duration {
	if rule >= 0 && m.c.Rules[rule].OpenFor > 0 {
		return m.c.Rules[rule].OpenFor
	}
	return m.c.OpenFor
}

func (m *model) longest(base time.Duration) time.Duration {
	if m.c.BackoffMax == Auto {
		return max(time.Minute, base)
	}
	return m.c.BackoffMax
}

// period multiplies once for each level, and top is the first level that gives the
// longest.
func (m *model) period(base time.Duration, level int) time.Duration {
	d := base
	for range min(level, m.top(base)) {
		d *= time.Duration(m.c.BackoffFactor)
	}
	return min(d, m.longest(base))
}

func (m *model) top(base time.Duration) (level int) {
	for d := base; d < m.longest(base) && m.c.BackoffFactor > 1; d *= time.Duration(m.c.BackoffFactor) {
		level++
	}
	return level
}

// levelNow is the level at which a trip opens a breaker. A closed one, once it has
// recovered, forgets one for each time that it lasts as long as it was open last; a
// rule that trips before the first makes it one more.
func (m *model) levelNow(now int64, rule int) int {
	if m.state != Closed || m.steady == 0 {
		return m.level
	}
	healthy := now - m.began
	if m.ramped {
		for _, s := range m.c.Recovery {
			healthy -= int64(s.For)
		}
	}
	switch {
	case healthy >= int64(m.steady):
		return max(0, min(m.level, m.top(m.openFor(rule)))-int(healthy/int64(m.steady)))
	case rule >= 0:
		return m.level + 1
	}
	return m.level
}

// share is that of the step of the recovery which now is in, 1 if it is over.
func (m *model) share(now int64) float64 {
	end := m.began
	for _, s := range m.c.Recovery {
		if end += int64(s.For); now < end {
			return s.Share
		}
	}
	return 1
}

// allow says what becomes of a call: the seat it gets, nil if it feeds nothing, and
// whether it is admitted. perhaps means that the recovery decides.
func (m *model) allow(now int64) (seat *modelSeat, admitted, perhaps bool) {
	switch mode := m.modeAt(now); mode {
	case Disabled, ForcedOpen:
		return nil, mode == Disabled, false
	case ForcedClosed, Shadow:
		seat, _, perhaps = m.enterNow(now)
		return seat, true, perhaps
	}
	return m.enterNow(now)
}

func (m *model) modeAt(now int64) Mode {
	if m.modeUntil > 0 && now >= m.modeUntil {
		return 0
	}
	return m.mode
}

// enterNow is allow without overrides.
func (m *model) enterNow(now int64) (seat *modelSeat, admitted, perhaps bool) {
	if m.state == Open && now >= m.until {
		m.enter(HalfOpen, now, DeadlinePassed)
	}
	if m.state == HalfOpen {
		lost := m.lose(now)
		if lost > 0 {
			m.decide(now, ProbeLost)
		}
	}
	seat = &modelSeat{stay: m.stay, start: now, due: now + int64(m.lease())}
	switch m.state {
	case Closed:
		m.ramping = m.ramping && m.share(now) < 1
		return seat, true, m.ramping
	case HalfOpen:
		if m.good+m.bad+len(m.out) < m.size && now >= m.wait {
			m.out = append(m.out, seat)
			return seat, true, false
		}
	}
	return nil, false, false
}

func (m *model) lease() time.Duration {
	if m.c.ProbeLease == Auto {
		return max(m.c.OpenFor, 10*time.Second)
	}
	return m.c.ProbeLease
}

// minBudget is how long a call must have run for its caller's deadline to count.
func (m *model) minBudget() time.Duration {
	if m.c.MinBudget != Auto {
		return m.c.MinBudget
	}
	shortest := time.Duration(0)
	for _, r := range m.c.Rules {
		if r.Kind == SlowCallRatio && (shortest == 0 || r.SlowerThan < shortest) {
			shortest = r.SlowerThan
		}
	}
	return shortest
}

// lose writes off the probes whose lease is over.
func (m *model) lose(now int64) (lost int) {
	before := len(m.out)
	m.out = slices.DeleteFunc(m.out, func(s *modelSeat) bool { return now >= s.due })
	lost = before - len(m.out)
	m.bad += lost
	m.lost += int64(lost)
	return lost
}

// decide goes on from a stage that is decided.
func (m *model) decide(now int64, why CauseReason) {
	switch {
	case m.bad*1000 > int(math.Round(m.c.ProbeTolerance*1000))*m.size:
		m.open(now, why, m.rule, m.level+1, 0)
	case m.good+m.bad < m.size:
	case m.stage+1 < len(m.c.Probes):
		m.stage++
		m.size, m.good, m.bad = m.c.Probes[m.stage], 0, 0
	default:
		m.enter(Closed, now, ProbesPassed)
		m.ramped = len(m.c.Recovery) > 0
		m.ramping = m.ramped
	}
}

// settle ends a call. It returns false if that is stale.
func (m *model) settle(seat *modelSeat, now int64, e modelEnd) bool {
	probe := slices.Index(m.out, seat)
	if m.stay != seat.stay || m.state == HalfOpen && probe < 0 {
		return false
	}
	took := time.Duration(now - seat.start)
	switch {
	case e.tripFor > 0:
		m.open(now, TripRequested, -1, m.levelNow(now, -1), e.tripFor)
	case m.state == HalfOpen:
		m.out = slices.Delete(m.out, probe, probe+1)
		m.probed(now, took, e)
		m.decide(now, ProbeFailed)
	case e.outcome != sluice.Ignored || e.gaveUp:
		m.count(now, took, e)
		m.judge(now, took, e)
	}
	return true
}

// probed counts the end of a probe.
func (m *model) probed(now int64, took time.Duration, e modelEnd) {
	errors := slices.ContainsFunc(m.c.Rules, func(r Rule) bool { return r.Kind != SlowCallRatio })
	switch {
	case e.unfinished, m.slow(took) && (e.outcome != sluice.Ignored || e.gaveUp), e.outcome == sluice.Failure && errors:
		m.bad++
	case e.outcome == sluice.Throttled && e.wait < 0:
		m.wait = max(m.wait, now+int64(m.period(m.openFor(m.rule), m.level)))
	case e.outcome == sluice.Throttled:
		m.wait = max(m.wait, now+int64(min(e.wait, m.longest(m.openFor(m.rule)))))
	case e.outcome != sluice.Ignored:
		m.good++
	}
}

// update changes what is decided on. Windows whose shape changes begin anew, and a
// deadline comes forward.
func (m *model) update(c Config) {
	old := m.c
	m.c = c
	for i, r := range c.Rules {
		shape := func(c Config) [3]int64 { return [3]int64{int64(c.Window), int64(c.Buckets), int64(c.CountWindow)} }
		if r.Over == 0 && shape(old) != shape(c) || old.Buckets != c.Buckets {
			m.from[i] = len(m.calls)
		}
	}
	if m.state == Open && !m.asked {
		base := m.openFor(m.rule)
		m.until = min(m.until, m.began+int64(m.period(base, m.level)))
	}
}
