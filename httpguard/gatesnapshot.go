package httpguard

import "github.com/sluicego/sluice/metrics"

// GateSnapshot is what a Gate has done, as plain data. Its breakers have their own,
// see breaker.Group.
type GateSnapshot struct {
	Name string `json:"name"`
	// Exempt requests matched a pattern of WithExempt, Bypassed ones carried
	// sluice.Bypass: they passed by all guards. Unmatched ones had no route, and
	// passed without a breaker.
	Exempt    uint64 `json:"exempt"`
	Bypassed  uint64 `json:"bypassed"`
	Unmatched uint64 `json:"unmatched"`
	// Left is how many requests were no success because their client had left. Only
	// requests of which somebody had to know the status are looked at.
	Left uint64 `json:"left"`
	// InFlight is nil without WithMaxInFlight.
	InFlight *InFlightSnapshot `json:"in_flight,omitempty"`
	// Drain is nil without WithDrain.
	Drain *DrainSnapshot `json:"drain,omitempty"`
}

// InFlightSnapshot is what is known of the bound of requests in flight.
type InFlightSnapshot struct {
	Now     int    `json:"now"`
	Peak    int    `json:"peak"` // the most that there ever were
	Limit   int    `json:"limit"`
	Refused uint64 `json:"refused"`
}

// DrainSnapshot is what a Drain looks like from a Gate.
type DrainSnapshot struct {
	Begun    bool   `json:"begun"`
	InFlight int    `json:"in_flight"` // in all Gates that share the Drain
	Refused  uint64 `json:"refused"`   // by this Gate
}

// Snapshot returns the numbers so far. It disturbs no request.
func (g *Gate) Snapshot() GateSnapshot {
	s := GateSnapshot{
		Name:      g.settings.name,
		Exempt:    g.exempted.Load(),
		Bypassed:  g.bypassed.Load(),
		Unmatched: g.unmatched.Load(),
		Left:      g.left.Load(),
	}
	if g.slots != nil {
		word := g.slots.word.Load()
		s.InFlight = &InFlightSnapshot{int(uint32(word)), int(word >> 32), int(g.slots.most), g.slots.refused.Load()}
	}
	if d := g.drain; d != nil {
		s.Drain = &DrainSnapshot{d.Begun(), d.InFlight(), g.drained.Load()}
	}
	return s
}

// View returns the Snapshot, for metrics.Set.
func (g *Gate) View() any { return g.Snapshot() }

var (
	descUnguardedRequests = metrics.Desc{Name: "server_unguarded", Help: "Requests that passed without a breaker, because they are exempt, asked for it or had no route.", Unit: "{request}", Kind: metrics.Counter, Labels: []string{"resource", "reason"}}
	descLeft              = metrics.Desc{Name: "server_clients_left", Help: "Requests that were no success because their client had left.", Unit: "{request}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descServerRefused     = metrics.Desc{Name: "server_refusals", Help: "Requests that were refused before a breaker was asked, by reason.", Unit: "{request}", Kind: metrics.Counter, Labels: []string{"resource", "reason"}}
	descInFlight          = metrics.Desc{Name: "server_in_flight", Help: "Requests that are inside.", Unit: "{request}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descInFlightPeak      = metrics.Desc{Name: "server_in_flight_peak", Help: "The most requests that were ever inside.", Unit: "{request}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descInFlightLimit     = metrics.Desc{Name: "server_in_flight_limit", Help: "The most requests that may be inside.", Unit: "{request}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descDraining          = metrics.Desc{Name: "server_draining", Help: "1 once the server refuses new requests to be shut down.", Kind: metrics.Gauge, Labels: []string{"resource"}}
)

// unmatchedReason is what stands where the pattern of a route would.
const unmatchedReason = "_unmatched"

// Collect yields the numbers of Snapshot, for metrics.Set.
func (g *Gate) Collect(yield func(metrics.Sample) bool) {
	s := g.Snapshot()
	sample := func(d *metrics.Desc, value float64, labels ...string) bool {
		return yield(metrics.Sample{Desc: d, Labels: append([]string{s.Name}, labels...), Value: value})
	}
	if !sample(&descUnguardedRequests, float64(s.Exempt), "exempt") ||
		!sample(&descUnguardedRequests, float64(s.Bypassed), "bypass") ||
		!sample(&descUnguardedRequests, float64(s.Unmatched), unmatchedReason) ||
		!sample(&descLeft, float64(s.Left)) {
		return
	}
	if f := s.InFlight; f != nil {
		if !sample(&descInFlight, float64(f.Now)) ||
			!sample(&descInFlightPeak, float64(f.Peak)) ||
			!sample(&descInFlightLimit, float64(f.Limit)) ||
			!sample(&descServerRefused, float64(f.Refused), "full") {
			return
		}
	}
	if d := s.Drain; d != nil {
		begun := 0.0
		if d.Begun {
			begun = 1
		}
		_ = sample(&descDraining, begun) && sample(&descServerRefused, float64(d.Refused), "draining")
	}
}
