package ratelimit

import "github.com/sluicego/sluice/metrics"

// WindowSnapshot is what a SlidingWindow or a SlidingLog looks like at one moment, as
// plain data. Its numbers are read one after another while calls go on, so they need
// not add up to the call.
type WindowSnapshot struct {
	Name  string `json:"name"`
	Limit Rate   `json:"limit"`
	// Left is how many tokens can be taken now, 0 if the limit is none.
	Left int64 `json:"left"`
	// Waiting callers stand in line.
	Waiting int64 `json:"waiting"`

	Totals  TotalsSnapshot  `json:"totals"`
	Refused RefusedSnapshot `json:"refused"`
}

// Snapshot returns what the limiter looks like now. It has no side effect, does not
// disturb calls and allocates nothing.
func (w *SlidingWindow) Snapshot() WindowSnapshot {
	if w == nil {
		return WindowSnapshot{Limit: Unlimited()}
	}
	return w.desk.snapshot(&w.line)
}

// Collect yields the limiter's figures, for metrics.Set. Counters never go down.
func (w *SlidingWindow) Collect(yield func(metrics.Sample) bool) {
	if w != nil {
		w.Snapshot().collect("sliding_window", yield)
	}
}

// View returns the Snapshot, for metrics.Set.
func (w *SlidingWindow) View() any { return w.Snapshot() }

// Snapshot returns what the limiter looks like now. It has no side effect, does not
// disturb calls and allocates nothing.
func (l *SlidingLog) Snapshot() WindowSnapshot {
	if l == nil {
		return WindowSnapshot{Limit: Unlimited()}
	}
	return l.desk.snapshot(&l.line)
}

// Collect yields the limiter's figures, for metrics.Set. Counters never go down.
func (l *SlidingLog) Collect(yield func(metrics.Sample) bool) {
	if l != nil {
		l.Snapshot().collect("sliding_log", yield)
	}
}

// View returns the Snapshot, for metrics.Set.
func (l *SlidingLog) View() any { return l.Snapshot() }

func (k *desk) snapshot(l *line) WindowSnapshot {
	s := WindowSnapshot{Name: k.name, Waiting: l.waiting.Load()}
	d := k.peek(0)
	s.Limit = d.Limit()
	if !s.Limit.IsUnlimited() {
		s.Left = d.Remaining()
	}
	s.Totals, s.Refused = k.tally.totals()
	return s
}

func (s WindowSnapshot) collect(policy string, yield func(metrics.Sample) bool) {
	figures{s.Name, policy, s.Totals, s.Refused, float64(s.Left), s.Limit.Tokens, s.Waiting}.collect(yield)
}
