package ratelimit

import (
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/metrics"
)

// Snapshot returns what the group's part in the shared limits looks like now. For a
// single key, ask Get(key).Snapshot.
func (g *SharedGroup) Snapshot() SharedGroupSnapshot {
	if g == nil {
		return SharedGroupSnapshot{}
	}
	return SharedGroupSnapshot{
		Name: g.node.name, Threshold: g.Config().Threshold, Keys: g.Len(), Overflows: g.overflows.Load(),
		Node: g.node.snapshot(clock.Now()),
	}
}

// SharedGroupSnapshot is what a SharedGroup looks like at one moment, as plain data.
type SharedGroupSnapshot struct {
	Name      string    `json:"name"`
	Threshold Threshold `json:"threshold"`
	Keys      int       `json:"keys"`
	// Overflows is how often the overflow limiter was given out.
	Overflows int64        `json:"overflows"`
	Node      NodeSnapshot `json:"node"`
}

// Collect yields the group's figures, for metrics.Set: of all keys together, since
// users are no labels.
func (g *SharedGroup) Collect(yield func(metrics.Sample) bool) {
	if g == nil {
		return
	}
	s := g.Snapshot()
	g.node.yield(append(s.Node.figures(), []figure{
		{&descGroupKeys, "", float64(s.Keys)},
		{&descGroupOverflows, "", float64(s.Overflows)},
	}...), s.Node.Refused, yield)
}

// View returns the Snapshot, for metrics.Set.
func (g *SharedGroup) View() any { return g.Snapshot() }

var (
	descGroupKeys      = metrics.Desc{Name: "group_keys", Help: "Keys held.", Unit: "{key}", Kind: metrics.Gauge, Labels: []string{"group"}}
	descGroupOverflows = metrics.Desc{Name: "group_overflows", Help: "Lookups that got the shared overflow object.", Unit: "{lookup}", Kind: metrics.Counter, Labels: []string{"group"}}
)
