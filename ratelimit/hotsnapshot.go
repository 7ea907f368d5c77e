package ratelimit

import "github.com/sluicego/sluice/metrics"

// HotParametersSnapshot is what a HotParameters looks like at one moment, as plain data.
type HotParametersSnapshot struct {
	KeyedSnapshot
	Exceptions []HotException `json:"exceptions,omitempty"`
}

// Snapshot returns what the HotParameters looks like now, exceptions included. It has no
// side effect and does not disturb calls, but it allocates.
func (h *HotParameters) Snapshot() HotParametersSnapshot {
	s := HotParametersSnapshot{KeyedSnapshot: h.of("").Snapshot()}
	if h != nil {
		s.Classes, s.Exceptions = nil, h.Config().Exceptions
	}
	return s
}

// Collect yields the figures of all values together, for metrics.Set. Counters never go
// down. Values are no labels: see TopRejected.
func (h *HotParameters) Collect(yield func(metrics.Sample) bool) { h.of("").Collect(yield) }

// View returns the Snapshot, for metrics.Set.
func (h *HotParameters) View() any { return h.Snapshot() }
