package bulkhead

import "github.com/sluicego/sluice/metrics"

var (
	descRefused  = metrics.Desc{Name: "rejected", Help: "Calls refused locally, by policy and reason.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "policy", "reason"}}
	descLimit    = metrics.Desc{Name: "bulkhead_limit", Help: "Places that there are.", Unit: "{place}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descInFlight = metrics.Desc{Name: "bulkhead_in_flight", Help: "Places that are taken.", Unit: "{place}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descWaiting  = metrics.Desc{Name: "bulkhead_waiting", Help: "Calls that wait for a place.", Unit: "{call}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descAdmitted = metrics.Desc{Name: "bulkhead_admissions", Help: "Calls that got a place.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descWaited   = metrics.Desc{Name: "bulkhead_waits", Help: "Calls that got a place after they had waited for it.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descWaitTime = metrics.Desc{Name: "bulkhead_wait_seconds", Help: "How long these waited, together.", Unit: "s", Kind: metrics.Counter, Labels: []string{"resource"}}
	descGaveUp   = metrics.Desc{Name: "bulkhead_abandoned", Help: "Calls whose context ended while they waited.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
)

// Collect yields the bulkhead's figures, for metrics.Set. Counters never go down.
func (b *Bulkhead) Collect(yield func(metrics.Sample) bool) {
	if b == nil {
		return
	}
	s := b.Snapshot()
	for _, m := range []struct {
		desc   *metrics.Desc
		labels []string
		value  float64
	}{
		{&descLimit, nil, float64(s.Limit)},
		{&descInFlight, nil, float64(s.InFlight)},
		{&descWaiting, nil, float64(s.Waiting)},
		{&descAdmitted, nil, float64(s.Totals.Admitted)},
		{&descWaited, nil, float64(s.Totals.Waited)},
		{&descWaitTime, nil, s.Totals.WaitTime.Seconds()},
		{&descGaveUp, nil, float64(s.Totals.GaveUp)},
		{&descRefused, []string{"bulkhead", ReasonFull}, float64(s.Refused.Full)},
		{&descRefused, []string{"bulkhead", ReasonQueueFull}, float64(s.Refused.QueueFull)},
		{&descRefused, []string{"bulkhead", ReasonMaxWait}, float64(s.Refused.MaxWait)},
		{&descRefused, []string{"bulkhead", ReasonExceedsCapacity}, float64(s.Refused.ExceedsCapacity)},
		{&descRefused, []string{"bulkhead", ReasonClosed}, float64(s.Refused.Closed)},
	} {
		if !yield(metrics.Sample{Desc: m.desc, Labels: append([]string{b.name}, m.labels...), Value: m.value}) {
			return
		}
	}
}

// View returns the Snapshot, for metrics.Set.
func (b *Bulkhead) View() any { return b.Snapshot() }
