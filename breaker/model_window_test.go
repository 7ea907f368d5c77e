package breaker

import (
	"math"
	"slices"
	"time"

	"github.com/sluicego/sluice"
)

// in returns the calls that are in the window of rule i.
func (m *model) in(i int, now int64) (in []modelCall) {
	r := m.c.Rules[i]
	span := m.c.Window
	if r.Over > 0 {
		span = r.Over
	}
	width := int64(span) / int64(m.c.Buckets)
	for _, call := range m.calls[m.from[i]:] {
		last := m.c.CountWindow > 0 && r.Over == 0
		counts := call.outcome != sluice.Ignored || call.took > m.limit(i)
		if counts && (last || now/width-call.at/width < int64(m.c.Buckets)) {
			in = append(in, call)
		}
	}
	if n := m.c.CountWindow; n > 0 && r.Over == 0 {
		in = in[max(0, len(in)-n):]
	}
	return in
}

// limit is beyond what a call counts as slow in the window of rule i: its own
// limit, or that of the slow rule with which it shares the window.
func (m *model) limit(i int) time.Duration {
	for _, r := range append([]Rule{m.c.Rules[i]}, m.c.Rules...) {
		if r.Kind == SlowCallRatio && r.Over == m.c.Rules[i].Over {
			return r.SlowerThan
		}
	}
	return math.MaxInt64
}

// measure counts what rule i looks at.
func (m *model) measure(i int, now int64) (bad, total int) {
	switch r := m.c.Rules[i]; r.Kind {
	case ConsecutiveFailures:
		return m.row, m.row
	case SlowCallRatio:
		for _, call := range m.in(i, now) {
			total++
			if call.took > r.SlowerThan {
				bad++
			}
		}
	default:
		for _, call := range m.in(i, now) {
			if call.outcome != sluice.Ignored {
				total++
			}
			if call.outcome == sluice.Failure {
				bad++
			}
		}
	}
	return bad, total
}

// reached is the rule that trips, the one that opens for longest; -1 if none does.
// held says that a gate alone holds one back.
func (m *model) reached(now int64) (rule int, held bool) {
	rule = -1
	for i, r := range m.c.Rules {
		bad, total := m.measure(i, now)
		trips := bad >= r.Count
		if r.Kind == SlowCallRatio || r.Kind == ErrorRatio {
			gate := m.c.MinRequests
			if r.MinRequests > 0 {
				gate = r.MinRequests
			}
			trips = total > 0 && m.overRatio(bad, total, r.Ratio)
			held = held || trips && total < gate
			trips = trips && total >= gate
		}
		if trips && (rule < 0 || m.openFor(i) > m.openFor(rule)) {
			rule = i
		}
	}
	return rule, held
}

// overRatio compares in thousandths, which is all that the model's ratios have.
// The lower bound of Wilson's interval reaches the ratio just when the distance
// between them is z standard errors of the ratio.
func (m *model) overRatio(bad, total int, ratio float64) bool {
	if bad*1000 < int(math.Round(ratio*1000))*total {
		return false
	}
	d, z := float64(bad)/float64(total)-ratio, m.c.Confidence
	return d*d*float64(total) >= z*z*ratio*(1-ratio)
}

// window is what the breaker's own window holds, which is that of any rule without
// one of its own.
func (m *model) window(now int64) (w WindowSnapshot) {
	i := slices.IndexFunc(m.c.Rules, func(r Rule) bool { return r.Over == 0 })
	for _, call := range m.in(i, now) {
		slow := int64(0)
		if call.took > m.limit(i) {
			slow = 1
		}
		if call.outcome == sluice.Ignored {
			w.GaveUp++
			continue
		}
		w.Total++
		w.Slow += slow
		if call.outcome == sluice.Failure {
			w.Failures++
		}
	}
	if w.Total > 0 {
		w.FailureRatio = float64(w.Failures) / float64(w.Total)
	}
	if all := w.Total + w.GaveUp; all > 0 {
		w.SlowRatio = float64(w.Slow+w.GaveUp) / float64(all)
	}
	return w
}

// count puts a call into the windows.
func (m *model) count(now int64, took time.Duration, e modelEnd) {
	m.calls = append(m.calls, modelCall{now, took, e.outcome})
	switch e.outcome {
	case sluice.Failure:
		m.row++
	case sluice.Success:
		m.row = 0
	}
}

// judge trips if a rule is reached. After a good call it looks only if, when it
// last did, a gate alone held a rule back.
func (m *model) judge(now int64, took time.Duration, e modelEnd) {
	bad := e.outcome == sluice.Failure || m.slow(took)
	if !bad && (e.outcome == sluice.Ignored || !m.held) {
		return
	}
	var rule int
	if rule, m.held = m.reached(now); rule >= 0 {
		m.open(now, RuleTripped, rule, m.levelNow(now, rule), 0)
	}
}

// slow reports whether a call is slow for any rule.
func (m *model) slow(took time.Duration) bool {
	return slices.ContainsFunc(m.c.Rules, func(r Rule) bool { return r.Kind == SlowCallRatio && took > r.SlowerThan })
}
