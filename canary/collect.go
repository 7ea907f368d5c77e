package canary

import "github.com/sluicego/sluice/metrics"

var (
	descRequests   = metrics.Desc{Name: "canary_requests", Help: "Decisions by version and reason.", Unit: "{request}", Kind: metrics.Counter, Labels: []string{"resource", "version", "reason"}}
	descShare      = metrics.Desc{Name: "canary_share_ratio", Help: "Share of all identities that a version has now.", Unit: "1", Kind: metrics.Gauge, Labels: []string{"resource", "version"}}
	descInFlight   = metrics.Desc{Name: "canary_in_flight", Help: "Requests under way in a version.", Unit: "{request}", Kind: metrics.Gauge, Labels: []string{"resource", "version"}}
	descGeneration = metrics.Desc{Name: "canary_generation", Help: "Number of the plan in force.", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descKilled     = metrics.Desc{Name: "canary_killed", Help: "1 while everything goes to the stable version, else 0.", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descIdentities = metrics.Desc{Name: "canary_identities", Help: "Split requests by where the identity was found.", Unit: "{request}", Kind: metrics.Counter, Labels: []string{"resource", "source"}}
	descIgnored    = metrics.Desc{Name: "canary_ignored_wishes", Help: "Overrides, targets and stored assignments that were not granted, by cause.", Unit: "{wish}", Kind: metrics.Counter, Labels: []string{"resource", "wish", "cause"}}
	descDropped    = metrics.Desc{Name: "events_dropped", Help: "Events that a slow listener never saw.", Unit: "{event}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descPanics     = metrics.Desc{Name: "listener_panics", Help: "Panics of listeners, which were caught.", Unit: "{panic}", Kind: metrics.Counter, Labels: []string{"resource"}}
)

// Collect yields the picker's figures, for metrics.Set. Counters never go down; those
// of a version end when it is forgotten.
func (p *Picker) Collect(yield func(metrics.Sample) bool) {
	if p == nil {
		return
	}
	more := true
	put := func(desc *metrics.Desc, value float64, labels ...string) {
		more = more && yield(metrics.Sample{Desc: desc, Labels: append([]string{p.name}, labels...), Value: value})
	}
	s := p.Snapshot()
	killed := 0.0
	if s.Killed != "" {
		killed = 1
	}
	put(&descGeneration, float64(s.Generation))
	put(&descKilled, killed)
	for _, v := range s.Versions {
		put(&descShare, v.Share.Fraction(), v.Name)
	}
	for _, v := range append(s.Versions, s.Retired...) {
		put(&descInFlight, float64(v.InFlight), v.Name)
		for r := Killed; int(r) <= reasons; r++ {
			put(&descRequests, float64(v.Requests[r.String()]), v.Name, r.String())
		}
	}
	for f := FromUser; int(f) <= sources; f++ {
		put(&descIdentities, float64(p.identified(f, s)), f.String())
	}
	for i := range p.ignored {
		put(&descIgnored, float64(p.ignored[i].Load()), ignoranceNames[i][0], ignoranceNames[i][1])
	}
	put(&descDropped, float64(s.Dropped))
	put(&descPanics, float64(s.Panics))
}

// identified counts the identities of a source in all versions that there ever were.
func (p *Picker) identified(f Source, s Snapshot) uint64 {
	p.mu.Lock()
	n := p.forgotten[slot(Split, f)]
	p.mu.Unlock()
	for _, v := range append(s.Versions, s.Retired...) {
		n += v.Identities[f.String()]
	}
	return p.reported[f-1].Report(uint64(n))
}

// View returns the Snapshot, for metrics.Set.
func (p *Picker) View() any { return p.Snapshot() }
