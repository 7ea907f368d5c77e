package adaptive

import "github.com/sluicego/sluice/metrics"

var (
	descSystemCalls    = metrics.Desc{Name: "system_calls", Help: "Calls that were admitted and have ended, by outcome.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "outcome"}}
	descSystemRefused  = metrics.Desc{Name: "rejected", Help: "Calls refused locally, by policy and reason.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "policy", "reason"}}
	descSystemInFlight = metrics.Desc{Name: "system_in_flight", Help: "Calls under way.", Unit: "{call}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descSystemShed     = metrics.Desc{Name: "system_shed_ratio", Help: "Share of all calls that is refused.", Unit: "1", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descSystemAbove    = metrics.Desc{Name: "system_above", Help: "1 for each signal that is above its threshold, 0 for the others.", Kind: metrics.Gauge, Labels: []string{"resource", "signal"}}
	descSystemDelay    = metrics.Desc{Name: "system_queue_delay_seconds", Help: "How long work waits before it is begun.", Unit: "s", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descSystemLoad     = metrics.Desc{Name: "system_load1", Help: "Load average of a minute; in a container, of goroutines that run or could.", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descSystemCPU      = metrics.Desc{Name: "system_cpu_ratio", Help: "Share of the CPU time in use that the process or its container may have.", Unit: "1", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descSystemRT       = metrics.Desc{Name: "system_response_time_seconds", Help: "How long calls took that ended in the last second, on average.", Unit: "s", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descSystemQPS      = metrics.Desc{Name: "system_entry_rate", Help: "Calls a second that ask for leave.", Unit: "{call}/s", Kind: metrics.Gauge, Labels: []string{"resource"}}
)

// descOfSignal has the gauge of each signal; that of Concurrency is descSystemInFlight.
var descOfSignal = [signals]*metrics.Desc{QueueDelay: &descSystemDelay, Load1: &descSystemLoad, CPU: &descSystemCPU, AvgRT: &descSystemRT, EntryQPS: &descSystemQPS}

// Collect yields the System's figures, for metrics.Set. Counters never go down. A signal
// that is not known is left out.
func (s *System) Collect(yield func(metrics.Sample) bool) {
	if s == nil {
		return
	}
	v, c := s.verdict.Load(), s.counts()
	for _, m := range []struct {
		desc   *metrics.Desc
		labels []string
		value  float64
	}{
		{&descSystemCalls, []string{"success"}, float64(c.succeeded)},
		{&descSystemCalls, []string{"failure"}, float64(c.failed)},
		{&descSystemCalls, []string{"ignored"}, float64(c.ignored)},
		{&descSystemInFlight, nil, float64(c.inFlight())},
		{&descSystemShed, nil, v.probability},
	} {
		if !yield(metrics.Sample{Desc: m.desc, Labels: append([]string{s.name}, m.labels...), Value: m.value}) {
			return
		}
	}
	for i := QueueDelay; i < signals; i++ {
		f := v.findings[i]
		if !yield(metrics.Sample{Desc: &descSystemRefused, Labels: []string{s.name, "system", i.String()}, Value: float64(c.refused[i])}) ||
			!yield(metrics.Sample{Desc: &descSystemAbove, Labels: []string{s.name, i.String()}, Value: indicator(f.since > 0)}) {
			return
		}
		if desc := descOfSignal[i]; desc != nil && f.known && !yield(metrics.Sample{Desc: desc, Labels: []string{s.name}, Value: f.value}) {
			return
		}
	}
}

// View returns the SystemSnapshot, for metrics.Set.
func (s *System) View() any { return s.Snapshot() }
