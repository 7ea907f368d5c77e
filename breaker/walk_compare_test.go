package breaker

import (
	"time"

	"github.com/sluicego/sluice"
)

// inRamp checks the pacing: of any calls in a row, the share passes, to the call.
func (w *walk) inRamp(passed bool) {
	r := &w.ramp
	if share := w.m.share(w.now); r.stay != w.m.stay || r.share != share {
		r.stay, r.share, r.asked, r.passed = w.m.stay, share, 0, 0
	}
	r.asked++
	if passed {
		r.passed++
	}
	if d := float64(r.passed) - r.share*float64(r.asked); d <= -1-1e-9 || d >= 1+1e-9 {
		w.failf("the ramp let %d of %d pass at %v", r.passed, r.asked, r.share)
	}
}

// compare is what must hold after each step.
func (w *walk) compare() {
	state := w.m.state
	if state == Open && w.now >= w.m.until {
		state = HalfOpen
	}
	if got := w.b.state(w.now); got != state {
		w.failf("%v, want %v; heard %+v", got, state, w.heard)
	}
	if len(w.heard) != len(w.m.told) {
		w.failf("heard %+v, want %+v", w.heard, w.m.told)
	}
	for i, e := range w.heard {
		want := w.m.told[i]
		if e.From != w.from || e.From != want.From || e.To != want.To || e.Cause.Reason != want.Cause.Reason || e.OpenFor != want.OpenFor {
			w.failf("heard %+v, want %+v", e, want)
		}
		w.from = e.To
	}
	w.heard, w.m.told = w.heard[:0], w.m.told[:0]
	probes := 0
	for _, c := range w.out {
		if c.seat != nil && c.seat.stay == w.m.stay && w.m.state == HalfOpen && w.now < c.seat.due {
			probes++
		}
	}
	if probes > w.m.size {
		w.failf("%d probes are out in a stage of %d", probes, w.m.size)
	}
	if w.book.admitted != w.book.settled+int64(len(w.out)) {
		w.failf("%d admitted, %d settled, %d out", w.book.admitted, w.book.settled, len(w.out))
	}
	if w.pick(8) == 0 {
		w.compareSnapshot(state)
	}
}

// compareSnapshot is compare for what costs more to look at.
func (w *walk) compareSnapshot(state State) {
	m, got := w.m, w.b.snapshot(w.now)
	want := Snapshot{
		Name: "payments", State: state, Generation: 1 + m.changes, Forced: m.modeAt(w.now), Shadowed: w.book.shadowed,
		Totals: TotalsSnapshot{
			Success: w.book.outcomes[sluice.Success], Failure: w.book.outcomes[sluice.Failure],
			Throttled: w.book.outcomes[sluice.Throttled], Ignored: w.book.outcomes[sluice.Ignored],
			Slow: got.Totals.Slow, Stale: w.book.stale, Lost: m.lost,
		},
		Refused: RefusedSnapshot{w.refused[ReasonOpen], w.refused[ReasonHalfOpen], w.refused[ReasonRecovering], w.refused[ReasonForcedOpen]},
		Since:   got.Since, RetryAt: got.RetryAt, Cause: got.Cause, Reason: got.Reason,
	}
	switch m.state {
	case Closed:
		want.Share = 1
		if m.ramping {
			want.Share = m.share(w.now)
		}
		want.Window = m.window(w.now)
	case Open:
		want.OpenFor = time.Duration(m.until - m.began)
	case HalfOpen:
		want.Probe = ProbeSnapshot{m.stage + 1, max(m.stage+1, len(m.c.Probes)), m.size, m.good + m.bad + len(m.out), m.good, m.bad}
	}
	if got != want {
		w.failf("snapshot\n%+v, want\n%+v", got, want)
	}
}

// end finds that no refusal is for ever, and closes the book.
func (w *walk) end() {
	w.unforce()
	admitted := w.book.admitted
	for range 2 { // the first may find all probes lost
		w.now += int64(25 * time.Hour)
		w.call()
		w.compare()
	}
	if w.book.admitted == admitted {
		w.failf("refused for ever")
	}
	for len(w.out) > 0 {
		w.endOne()
		w.compare()
	}
	w.compareSnapshot(w.b.state(w.now))
}
