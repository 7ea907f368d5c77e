package breaker

import (
	"fmt"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// Snapshot is what a breaker looks like at one moment, as plain data. Its numbers
// are read one after another while calls go on, so they need not add up to the
// call.
type Snapshot struct {
	Name       string    `json:"name"`
	State      State     `json:"state"`
	Generation uint64    `json:"generation"`
	Since      time.Time `json:"since"`
	// Forced is the override in force, 0 if there is none.
	Forced Mode `json:"forced,omitempty"`
	// Share is the share of calls that is admitted: below 1 while recovering, 0 in
	// Open.
	Share float64 `json:"share"`
	// RetryAt is when an open breaker will probe; OpenFor is how long it opened for.
	RetryAt time.Time     `json:"retry_at,omitzero"`
	OpenFor time.Duration `json:"open_for,omitempty"`
	// Cause is what led into the state, and Reason says in words and numbers why
	// the breaker is where it is.
	Cause  Cause  `json:"-"`
	Reason string `json:"reason"`

	Window  WindowSnapshot  `json:"window"`
	Probe   ProbeSnapshot   `json:"probe"`
	Totals  TotalsSnapshot  `json:"totals"`
	Refused RefusedSnapshot `json:"refused"`
	// Shadowed is how many calls Shadow admitted that would have been refused.
	Shadowed int64 `json:"shadowed"`
	// Dropped events did not reach the listeners; Panics of listeners were caught.
	Dropped uint64 `json:"events_dropped"`
	Panics  uint64 `json:"listener_panics"`
}

// WindowSnapshot is what the breaker's own window holds; all zero unless Closed.
type WindowSnapshot struct {
	Total    int64 `json:"total"`
	Failures int64 `json:"failures"`
	Slow     int64 `json:"slow"`
	// GaveUp counts calls whose caller went away after the slow limit. They are in
	// the slow ratio and in no other number.
	GaveUp       int64   `json:"gave_up"`
	FailureRatio float64 `json:"failure_ratio"`
	SlowRatio    float64 `json:"slow_ratio"`
}

// ProbeSnapshot is how far half-open is; all zero in another state.
type ProbeSnapshot struct {
	Stage  int `json:"stage"` // from 1
	Stages int `json:"stages"`
	Size   int `json:"size"` // of this stage
	Issued int `json:"issued"`
	Good   int `json:"good"`
	Bad    int `json:"bad"`
}

// TotalsSnapshot counts settled calls since New; the numbers never go down.
type TotalsSnapshot struct {
	Success   int64 `json:"success"`
	Failure   int64 `json:"failure"`
	Throttled int64 `json:"throttled"`
	Ignored   int64 `json:"ignored"`
	// Slow calls are in the numbers above as well.
	Slow int64 `json:"slow"`
	// Stale results came after the state had changed and are in no other number.
	Stale int64 `json:"stale"`
	// Lost probes did not end within their lease. When they end they are stale.
	Lost int64 `json:"lost"`
}

// RefusedSnapshot counts refused calls since New, by reason.
type RefusedSnapshot struct {
	Open       int64 `json:"open"`
	HalfOpen   int64 `json:"half_open"`
	Recovering int64 `json:"recovering"`
	Forced     int64 `json:"forced_open"`
}

// Snapshot returns what the breaker looks like now, with old calls gone from the
// window even if there is no traffic. It has no side effect and does not disturb
// calls, but it allocates.
func (b *Breaker) Snapshot() Snapshot {
	if b == nil {
		return Snapshot{State: Closed, Share: 1}
	}
	return b.snapshot(clock.Now())
}

func (b *Breaker) snapshot(now int64) Snapshot {
	p, past := b.plan.Load(), b.past()
	s := Snapshot{
		Name: b.name, Forced: p.modeAt(now), Refused: past.refusedSoFar(), Totals: b.totalsSoFar(),
		Shadowed: past.shadowed.Load(),
	}
	if b.events != nil {
		s.Dropped, s.Panics = b.events.Dropped(), past.panics.Load()
	}
	// The probes are guarded by mu; reading all of the episode under it keeps the
	// state and the numbers of one stay together.
	b.mu.Lock()
	e := b.cur.Load()
	s.Probe = e.probeSnapshot(p)
	b.mu.Unlock()
	s.State, s.Generation, s.Cause, s.Since = e.state, e.generation, *e.cause, time.Unix(0, e.since)
	switch e.state {
	case Closed:
		s.Share = e.shareAt(p, now)
		s.Window = e.windowSnapshot(now)
		s.Reason = b.reasonClosed(e, p, now)
	case Open:
		until := e.open.until.Load()
		s.OpenFor, s.Reason = time.Duration(until-e.began), e.cause.String()
		s.RetryAt = s.Since.Add(s.OpenFor)
		if now >= until { // as the next call will find it
			s.State, s.Reason, s.RetryAt = HalfOpen, Cause{Reason: DeadlinePassed}.String(), time.Time{}
		}
	case HalfOpen:
		pr := s.Probe
		s.Reason = fmt.Sprintf("stage %d of %d, %d of %d probes passed, %d failed, %d out", pr.Stage, pr.Stages, pr.Good, pr.Size, pr.Bad, pr.Issued-pr.Good-pr.Bad)
	}
	return s
}

func (e *episode) probeSnapshot(p *plan) ProbeSnapshot {
	t := e.trial
	if t == nil {
		return ProbeSnapshot{}
	}
	return ProbeSnapshot{
		Stage: t.stage + 1, Stages: max(t.stage+1, len(p.config.Probes)), Size: t.size,
		Issued: t.good + t.bad + len(t.out), Good: t.good, Bad: t.bad,
	}
}

func (e *episode) windowSnapshot(now int64) WindowSnapshot {
	sums := e.closed.windows.Load().sum(now)
	w := WindowSnapshot{Total: sums.Total, Failures: sums.Failures, Slow: sums.Slow, GaveUp: sums.GaveUp}
	if w.Total > 0 {
		w.FailureRatio = float64(w.Failures) / float64(w.Total)
	}
	if all := w.Total + w.GaveUp; all > 0 {
		w.SlowRatio = float64(w.Slow+w.GaveUp) / float64(all)
	}
	return w
}

// shareAt is the share of calls that e, in Closed, admits at now.
func (e *episode) shareAt(p *plan, now int64) float64 {
	if !e.closed.recovering.Load() {
		return 1
	}
	return float64(p.shareAt(now-e.began)) / million
}

// reasonClosed tells of the rule that is closest to tripping, and what holds it
// back.
func (b *Breaker) reasonClosed(e *episode, p *plan, now int64) string {
	text, closest := "no calls yet", -1.0
	m := e.measure(now)
	for _, r := range p.config.Rules {
		bad, total, ok := m.of(p, &r)
		if !ok || total == 0 {
			continue
		}
		reached := float64(bad) / float64(max(1, r.Count))
		if r.Kind.isRatio() {
			reached = float64(bad) / float64(total) / r.Ratio
		}
		if reached <= closest {
			continue
		}
		text, closest = r.describe(bad, total), reached
		if gate := p.config.gate(r); r.Kind.isRatio() && total < int64(gate) {
			text += fmt.Sprintf(", below min requests (%d/%d)", total, gate)
		}
	}
	return text
}

// totalsSoFar reads what has left the windows first and what they hold after it,
// so a call on its way from one to the other is missed for a moment, not counted
// twice.
func (b *Breaker) totalsSoFar() TotalsSnapshot {
	sums := b.totals.Sums()
	if e := b.cur.Load(); e.state == Closed {
		sums = sums.Plus(e.closed.windows.Load().held())
	}
	t := TotalsSnapshot{
		Failure: sums.Failures, Slow: sums.Slow + sums.GaveUp,
		Throttled: b.throttled.Load(), Ignored: b.ignored.Load(), Stale: b.stale.Load(), Lost: b.past().lost.Load(),
	}
	t.Success = max(0, sums.Total-t.Failure-t.Throttled)
	return t
}
