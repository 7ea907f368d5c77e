package adaptive

import "github.com/sluicego/sluice/metrics"

var (
	descLimiterLimit    = metrics.Desc{Name: "limiter_limit", Help: "Calls that may be under way at once.", Unit: "{call}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descLimiterInFlight = metrics.Desc{Name: "limiter_in_flight", Help: "Calls under way.", Unit: "{call}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descLimiterWaiting  = metrics.Desc{Name: "limiter_waiting", Help: "Calls that wait for leave.", Unit: "{call}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descLimiterTook     = metrics.Desc{Name: "limiter_took_seconds", Help: "Time that calls took in the last window, on average.", Unit: "s", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descLimiterBaseline = metrics.Desc{Name: "limiter_baseline_seconds", Help: "Time that calls take when none waits for others.", Unit: "s", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descLimiterCalls    = metrics.Desc{Name: "limiter_calls", Help: "Calls that were admitted and have ended, by how.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "end"}}
	descLimiterWaited   = metrics.Desc{Name: "limiter_waits", Help: "Calls that got leave after they had waited for it.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descLimiterWaitTime = metrics.Desc{Name: "limiter_wait_seconds", Help: "How long these waited, together.", Unit: "s", Kind: metrics.Counter, Labels: []string{"resource"}}
	descLimiterGaveUp   = metrics.Desc{Name: "limiter_abandoned", Help: "Calls whose context ended while they waited.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descLimiterRefused  = metrics.Desc{Name: "rejected", Help: "Calls refused locally, by policy and reason.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "policy", "reason"}}
)

// Collect yields the Limiter's figures, for metrics.Set. Counters never go down. What is
// not known yet is left out.
func (l *Limiter) Collect(yield func(metrics.Sample) bool) {
	if l == nil {
		return
	}
	s := l.Snapshot()
	for _, m := range []struct {
		desc   *metrics.Desc
		labels []string
		value  float64
		not    bool // known
	}{
		{desc: &descLimiterLimit, value: float64(s.Limit)},
		{desc: &descLimiterInFlight, value: float64(s.InFlight)},
		{desc: &descLimiterWaiting, value: float64(s.Waiting)},
		{desc: &descLimiterTook, value: s.Took.Seconds(), not: s.Took == 0},
		{desc: &descLimiterBaseline, value: s.Baseline.Seconds(), not: s.Baseline == 0},
		{desc: &descLimiterCalls, labels: []string{"answered"}, value: float64(s.Totals.Answered)},
		{desc: &descLimiterCalls, labels: []string{"dropped"}, value: float64(s.Totals.Dropped)},
		{desc: &descLimiterCalls, labels: []string{"failed"}, value: float64(s.Totals.Failed)},
		{desc: &descLimiterCalls, labels: []string{"ignored"}, value: float64(s.Totals.Ignored)},
		{desc: &descLimiterWaited, value: float64(s.Totals.Waited)},
		{desc: &descLimiterWaitTime, value: s.Totals.WaitTime.Seconds()},
		{desc: &descLimiterGaveUp, value: float64(s.Totals.GaveUp)},
		{desc: &descLimiterRefused, labels: []string{"limiter", ReasonLimit}, value: float64(s.Refused.Limit)},
		{desc: &descLimiterRefused, labels: []string{"limiter", ReasonQueueFull}, value: float64(s.Refused.QueueFull)},
		{desc: &descLimiterRefused, labels: []string{"limiter", ReasonMaxWait}, value: float64(s.Refused.MaxWait)},
	} {
		if !m.not && !yield(metrics.Sample{Desc: m.desc, Labels: append([]string{l.name}, m.labels...), Value: m.value}) {
			return
		}
	}
}

// View returns the LimiterSnapshot, for metrics.Set.
func (l *Limiter) View() any { return l.Snapshot() }
