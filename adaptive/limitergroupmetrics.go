package adaptive

import "github.com/sluicego/sluice/metrics"

// Collect yields the figures of all Limiters, for metrics.Set. Those of a key that was
// forgotten and made anew begin at zero, as after a restart.
func (g *LimiterGroup) Collect(yield func(metrics.Sample) bool) {
	if g == nil {
		return
	}
	more := true
	counted := func(s metrics.Sample) bool { more = yield(s); return more }
	for _, l := range g.All() {
		if l.Collect(counted); !more {
			return
		}
	}
	if g.overflow.Collect(counted); !more {
		return
	}
	_ = yield(metrics.Sample{Desc: &descKeys, Labels: []string{g.name}, Value: float64(g.Len())}) &&
		yield(metrics.Sample{Desc: &descOverflows, Labels: []string{g.name}, Value: float64(g.overflows.Load())})
}

// View returns the snapshots of all Limiters by key, for metrics.Set.
func (g *LimiterGroup) View() any {
	views := map[string]LimiterSnapshot{}
	for key, l := range g.All() {
		views[key] = l.Snapshot()
	}
	if g != nil && g.overflows.Load() > 0 {
		views["_overflow"] = g.overflow.Snapshot()
	}
	return views
}
