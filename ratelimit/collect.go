package ratelimit

import "github.com/sluicego/sluice/metrics"

// Families that every limiter of the package may use.
var (
	descAdmitted = metrics.Desc{Name: "ratelimit_admitted", Help: "Calls that got their tokens.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "policy"}}
	descTokens   = metrics.Desc{Name: "ratelimit_tokens", Help: "Tokens taken.", Unit: "{token}", Kind: metrics.Counter, Labels: []string{"resource", "policy"}}
	descRefunded = metrics.Desc{Name: "ratelimit_refunds", Help: "Admitted calls that gave their tokens back.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "policy"}}
	descGone     = metrics.Desc{Name: "ratelimit_waits_abandoned", Help: "Callers who went away while they waited for tokens.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "policy"}}
	descRefused  = metrics.Desc{Name: "rejected", Help: "Calls refused locally, by policy and reason.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "policy", "reason"}}
	descLevel    = metrics.Desc{Name: "ratelimit_level", Help: "Tokens there are, below 0 in debt.", Unit: "{token}", Kind: metrics.Gauge, Labels: []string{"resource", "policy"}}
	descCapacity = metrics.Desc{Name: "ratelimit_capacity", Help: "Tokens there can be.", Unit: "{token}", Kind: metrics.Gauge, Labels: []string{"resource", "policy"}}
	descWaiting  = metrics.Desc{Name: "ratelimit_waiting", Help: "Callers who wait for tokens.", Unit: "{call}", Kind: metrics.Gauge, Labels: []string{"resource", "policy"}}
)

// Collect yields the limiter's figures, for metrics.Set. Counters never go down.
func (l *Limiter) Collect(yield func(metrics.Sample) bool) {
	if l == nil {
		return
	}
	s, policy := l.Snapshot(), l.cur.Load().policy
	for _, m := range []struct {
		desc   *metrics.Desc
		reason string
		value  float64
	}{
		{&descAdmitted, "", float64(s.Totals.Admitted)},
		{&descTokens, "", float64(s.Totals.Tokens)},
		{&descRefunded, "", float64(s.Totals.Refunded)},
		{&descGone, "", float64(s.Totals.Gone)},
		{&descRefused, ReasonLimited, float64(s.Refused.Limited)},
		{&descRefused, ReasonExceedsCapacity, float64(s.Refused.ExceedsCapacity)},
		{&descRefused, ReasonBlocked, float64(s.Refused.Blocked)},
		{&descRefused, ReasonInvalid, float64(s.Refused.Invalid)},
		{&descRefused, ReasonMaxWait, float64(s.Refused.MaxWait)},
		{&descRefused, ReasonDeadline, float64(s.Refused.Deadline)},
		{&descRefused, ReasonMaxWaiters, float64(s.Refused.MaxWaiters)},
		{&descLevel, "", s.Level},
		{&descCapacity, "", float64(s.Burst)},
		{&descWaiting, "", float64(s.Waiting)},
	} {
		labels := []string{l.name, policy, m.reason}
		if m.reason == "" {
			labels = labels[:2]
		}
		if !yield(metrics.Sample{Desc: m.desc, Labels: labels, Value: m.value}) {
			return
		}
	}
}

// View returns the Snapshot, for metrics.Set.
func (l *Limiter) View() any { return l.Snapshot() }
