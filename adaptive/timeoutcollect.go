package adaptive

import (
	"time"

	"github.com/sluicego/sluice/metrics"
)

var (
	descTimeoutLimit    = metrics.Desc{Name: "timeout_limit_seconds", Help: "Time limit for a call that begins now.", Unit: "s", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descTimeoutCalls    = metrics.Desc{Name: "timeout_calls", Help: "Calls under a time limit, by how they ended.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "end"}}
	descTimeoutProbes   = metrics.Desc{Name: "timeout_probes", Help: "Calls that might take as long as the largest limit, to see what others are cut off from.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descTimeoutState    = metrics.Desc{Name: "timeout_state", Help: "1 for how sure the limit is, 0 for the other states.", Kind: metrics.Gauge, Labels: []string{"resource", "state"}}
	descTimeoutTook     = metrics.Desc{Name: "timeout_quantile_seconds", Help: "Time within which a share of the calls finishes, lately.", Unit: "s", Kind: metrics.Gauge, Labels: []string{"resource", "quantile"}}
	descTimeoutRejected = metrics.Desc{Name: "rejected", Help: "Calls refused locally, by policy and reason.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "policy", "reason"}}
)

// timeoutReported keeps the one total from going down that is a sum of parts.
type timeoutReported struct{ finished metrics.Total }

// Collect yields the Timeout's figures, for metrics.Set. Counters never go down.
func (t *Timeout) Collect(yield func(metrics.Sample) bool) {
	if t == nil {
		return
	}
	said := t.said.Load()
	if said == nil {
		t.said.CompareAndSwap(nil, new(timeoutReported))
		said = t.said.Load()
	}
	s := t.Snapshot()
	for _, m := range []struct {
		desc   *metrics.Desc
		labels []string
		value  float64
	}{
		{&descTimeoutLimit, nil, s.Limit.Seconds()},
		{&descTimeoutCalls, []string{"finished"}, float64(said.finished.Report(uint64(s.Totals.Finished)))},
		{&descTimeoutCalls, []string{"timed_out"}, float64(s.Totals.TimedOut)},
		{&descTimeoutCalls, []string{"cut_short"}, float64(s.Totals.CutShort)},
		{&descTimeoutCalls, []string{"failed"}, float64(s.Totals.Failed)},
		{&descTimeoutCalls, []string{"throttled"}, float64(s.Totals.Throttled)},
		{&descTimeoutCalls, []string{"ignored"}, float64(s.Totals.Ignored)},
		{&descTimeoutProbes, nil, float64(s.Totals.Probes)},
		{&descTimeoutRejected, []string{"timeout", ReasonDeadline}, float64(s.Totals.Refused)},
		{&descTimeoutState, []string{Cold.String()}, indicator(s.State == Cold)},
		{&descTimeoutState, []string{Resolved.String()}, indicator(s.State == Resolved)},
		{&descTimeoutState, []string{Unresolved.String()}, indicator(s.State == Unresolved)},
		{&descTimeoutState, []string{Outage.String()}, indicator(s.State == Outage)},
	} {
		if !yield(metrics.Sample{Desc: m.desc, Labels: append([]string{t.name}, m.labels...), Value: m.value}) {
			return
		}
	}
	for _, q := range []struct {
		label string
		took  time.Duration
	}{{"0.5", s.Took.P50}, {"0.95", s.Took.P95}, {"0.99", s.Took.P99}, {"0.999", s.Took.P999}} {
		if q.took > 0 && !yield(metrics.Sample{Desc: &descTimeoutTook, Labels: []string{t.name, q.label}, Value: q.took.Seconds()}) {
			return
		}
	}
}

// View returns the TimeoutSnapshot, for metrics.Set.
func (t *Timeout) View() any { return t.Snapshot() }

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
