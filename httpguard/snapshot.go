package httpguard

import "github.com/sluicego/sluice/metrics"

// Snapshot is what a Transport has done, as plain data. Its breakers have their
// own, see breaker.Group.
type Snapshot struct {
	Name string `json:"name"`
	// Bypassed requests carried sluice.Bypass, Unkeyed ones had no key: they passed
	// without a breaker.
	Bypassed uint64 `json:"bypassed"`
	Unkeyed  uint64 `json:"unkeyed"`
	// ReplacedHosts is how often a host was pushed out of the lookup of ByHost by
	// another one. Above 0 there are more hosts than it is made for, and some
	// requests allocate to build their key.
	ReplacedHosts uint64 `json:"replaced_hosts"`
	// BodyErrors is how many response bodies broke off, other than because the caller
	// went away. Bodies are watched with a time limit, a fallback OnFailure or
	// WithFinishAt(Body).
	BodyErrors uint64 `json:"body_errors"`
	// LeakedBodies is how many responses were dropped without being read to the end or
	// closed, which is an error of the caller's. They are found if their breaker waits
	// for their end, see WithFinishAt.
	LeakedBodies uint64 `json:"leaked_bodies"`
	// Fallbacks has one entry for each cause, in order; nil without a fallback.
	Fallbacks []FallbackSnapshot `json:"fallbacks,omitempty"`
}

// FallbackSnapshot counts how the calls that ended for one cause went on.
type FallbackSnapshot struct {
	Cause    Cause  `json:"cause"`
	Served   uint64 `json:"served"`   // the fallback answered
	Declined uint64 `json:"declined"` // the fallback had no answer
	Skipped  uint64 `json:"skipped"`  // too many were running
}

// Snapshot returns the numbers so far. It disturbs no call.
func (t *Transport) Snapshot() Snapshot {
	s := Snapshot{
		Name:         t.settings.name,
		Bypassed:     t.bypassed.Load(),
		Unkeyed:      t.unkeyed.Load(),
		BodyErrors:   t.bodyErrors.Load(),
		LeakedBodies: t.leakedBodies.Load(),
	}
	if t.hosts != nil {
		s.ReplacedHosts = t.hosts.replaced.Load()
	}
	if t.fallback != nil {
		for _, c := range allCauses {
			n := &t.fallback.counts[c]
			s.Fallbacks = append(s.Fallbacks, FallbackSnapshot{c, n.served.Load(), n.declined.Load(), n.skipped.Load()})
		}
	}
	return s
}

// View returns the Snapshot, for metrics.Set.
func (t *Transport) View() any { return t.Snapshot() }

var (
	descFallbacks = metrics.Desc{Name: "transport_fallbacks", Help: "Calls for which a fallback was asked, by cause and by how that went.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "cause", "result"}}
	descUnguarded = metrics.Desc{Name: "transport_unguarded", Help: "Calls that passed without a breaker, because they asked for it or had no key.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "reason"}}
	descReplaced  = metrics.Desc{Name: "transport_replaced_hosts", Help: "Hosts that another one pushed out of the lookup of keys.", Unit: "{host}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descBroken    = metrics.Desc{Name: "transport_body_errors", Help: "Response bodies that broke off, of those that are watched.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descLeaked    = metrics.Desc{Name: "transport_leaked_bodies", Help: "Responses that were dropped without being closed.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
)

// Collect yields the numbers of Snapshot, for metrics.Set.
func (t *Transport) Collect(yield func(metrics.Sample) bool) {
	s := t.Snapshot()
	sample := func(d *metrics.Desc, value uint64, labels ...string) bool {
		return yield(metrics.Sample{Desc: d, Labels: append([]string{s.Name}, labels...), Value: float64(value)})
	}
	for _, f := range s.Fallbacks {
		cause := f.Cause.String()
		if !sample(&descFallbacks, f.Served, cause, "served") ||
			!sample(&descFallbacks, f.Declined, cause, "declined") ||
			!sample(&descFallbacks, f.Skipped, cause, "skipped") {
			return
		}
	}
	_ = sample(&descUnguarded, s.Bypassed, "bypass") &&
		sample(&descUnguarded, s.Unkeyed, "no_key") &&
		sample(&descReplaced, s.ReplacedHosts) &&
		sample(&descBroken, s.BodyErrors) &&
		sample(&descLeaked, s.LeakedBodies)
}
