package adaptive

import "github.com/sluicego/sluice/metrics"

var (
	descKeys      = metrics.Desc{Name: "group_keys", Help: "Keys held.", Unit: "{key}", Kind: metrics.Gauge, Labels: []string{"group"}}
	descOverflows = metrics.Desc{Name: "group_overflows", Help: "Lookups that got the shared overflow object.", Unit: "{lookup}", Kind: metrics.Counter, Labels: []string{"group"}}
)

// Collect yields the figures of all Timeouts, for metrics.Set. Those of a key that was
// forgotten and made anew begin at zero, as after a restart.
func (g *TimeoutGroup) Collect(yield func(metrics.Sample) bool) {
	if g == nil {
		return
	}
	more := true
	counted := func(s metrics.Sample) bool { more = yield(s); return more }
	for _, t := range g.All() {
		if t.Collect(counted); !more {
			return
		}
	}
	if g.overflow.Collect(counted); !more {
		return
	}
	_ = yield(metrics.Sample{Desc: &descKeys, Labels: []string{g.name}, Value: float64(g.Len())}) &&
		yield(metrics.Sample{Desc: &descOverflows, Labels: []string{g.name}, Value: float64(g.overflows.Load())})
}

// View returns the snapshots of all Timeouts by key, for metrics.Set.
func (g *TimeoutGroup) View() any {
	views := map[string]TimeoutSnapshot{}
	for key, t := range g.All() {
		views[key] = t.Snapshot()
	}
	if g != nil && g.overflows.Load() > 0 {
		views["_overflow"] = g.overflow.Snapshot()
	}
	return views
}
