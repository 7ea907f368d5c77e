package canary

import "github.com/sluicego/sluice/metrics"

// UpstreamsSnapshot is what an Upstreams looks like at one moment, as plain data.
type UpstreamsSnapshot struct {
	Name       string  `json:"name"`
	LoadFactor float64 `json:"load_factor"`
	// InFlight is how many leases there are, also those on instances that were removed.
	InFlight int64 `json:"in_flight"`
	// Refused counts ids for which there was no instance.
	Refused   int64              `json:"refused"`
	Upstreams []UpstreamSnapshot `json:"upstreams"`
}

// UpstreamSnapshot is one instance.
type UpstreamSnapshot struct {
	Name     string `json:"name"`
	Weight   int    `json:"weight"`
	Down     bool   `json:"down"`
	Drained  bool   `json:"drained"`
	InFlight int64  `json:"in_flight"`
	// Leases counts all that were ever given, Spilled those of them to ids that belong to
	// another instance.
	Leases  int64 `json:"leases"`
	Spilled int64 `json:"spilled"`
}

// Snapshot returns what the Upstreams looks like now.
func (u *Upstreams) Snapshot() UpstreamsSnapshot {
	if u == nil {
		return UpstreamsSnapshot{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	s := UpstreamsSnapshot{Name: u.name, LoadFactor: u.factor, InFlight: u.load.Load(), Refused: u.refused.Load(), Upstreams: []UpstreamSnapshot{}}
	for _, n := range u.nodes {
		one := UpstreamSnapshot{
			Name: n.name, Weight: int(n.weight.Load()), Down: n.down.Load(), Drained: n.drained.Load(),
			InFlight: n.inFlight.Load(), Spilled: n.spilled.Load(),
		}
		one.Leases = max(n.picked.Load(), one.Spilled)
		s.Upstreams = append(s.Upstreams, one)
	}
	return s
}

var (
	descUpstreamLeases   = metrics.Desc{Name: "upstream_requests", Help: "Requests that were given to an instance.", Unit: "{request}", Kind: metrics.Counter, Labels: []string{"resource", "upstream"}}
	descUpstreamSpilled  = metrics.Desc{Name: "upstream_spilled_requests", Help: "Requests that were given to an instance although their id belongs to another one.", Unit: "{request}", Kind: metrics.Counter, Labels: []string{"resource", "upstream"}}
	descUpstreamInFlight = metrics.Desc{Name: "upstream_in_flight", Help: "Requests under way on an instance.", Unit: "{request}", Kind: metrics.Gauge, Labels: []string{"resource", "upstream"}}
	descUpstreamServes   = metrics.Desc{Name: "upstream_serves", Help: "1 if an instance is up, not drained, and has a weight, else 0.", Kind: metrics.Gauge, Labels: []string{"resource", "upstream"}}
	descUpstreamRefused  = metrics.Desc{Name: "rejected", Help: "Calls refused locally, by policy and reason.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "policy", "reason"}}
)

// Collect yields the Upstreams' figures, for metrics.Set.
func (u *Upstreams) Collect(yield func(metrics.Sample) bool) {
	if u == nil {
		return
	}
	s := u.Snapshot()
	show := func(desc *metrics.Desc, value float64, labels ...string) bool {
		return yield(metrics.Sample{Desc: desc, Labels: append([]string{u.name}, labels...), Value: value})
	}
	ok := show(&descUpstreamRefused, float64(s.Refused), u.none.Policy(), u.none.Reason())
	for _, n := range s.Upstreams {
		ok = ok && show(&descUpstreamLeases, float64(n.Leases), n.Name) &&
			show(&descUpstreamSpilled, float64(n.Spilled), n.Name) &&
			show(&descUpstreamInFlight, float64(n.InFlight), n.Name) &&
			show(&descUpstreamServes, indicator(!n.Down && !n.Drained && n.Weight > 0), n.Name)
	}
}

// View returns the UpstreamsSnapshot, for metrics.Set.
func (u *Upstreams) View() any { return u.Snapshot() }
