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
	if l != nil {
		s := l.Snapshot()
		figures{s.Name, l.cur.Load().policy, s.Totals, s.Refused, s.Level, s.Burst, s.Waiting}.collect(yield)
	}
}

// View returns the Snapshot, for metrics.Set.
func (l *Limiter) View() any { return l.Snapshot() }

// figures are what every kind of limiter shows.
type figures struct {
	resource, policy string
	totals           TotalsSnapshot
	refused          RefusedSnapshot
	level            float64
	capacity         int64
	waiting          int64
}

// collect reports whether yield wants more.
func (f figures) collect(yield func(metrics.Sample) bool) bool {
	for _, m := range []struct {
		desc   *metrics.Desc
		reason string
		value  float64
	}{
		{&descAdmitted, "", float64(f.totals.Admitted)},
		{&descTokens, "", float64(f.totals.Tokens)},
		{&descRefunded, "", float64(f.totals.Refunded)},
		{&descGone, "", float64(f.totals.Gone)},
		{&descRefused, ReasonLimited, float64(f.refused.Limited)},
		{&descRefused, ReasonExceedsCapacity, float64(f.refused.ExceedsCapacity)},
		{&descRefused, ReasonBlocked, float64(f.refused.Blocked)},
		{&descRefused, ReasonInvalid, float64(f.refused.Invalid)},
		{&descRefused, ReasonMaxWait, float64(f.refused.MaxWait)},
		{&descRefused, ReasonDeadline, float64(f.refused.Deadline)},
		{&descRefused, ReasonMaxWaiters, float64(f.refused.MaxWaiters)},
		{&descLevel, "", f.level},
		{&descCapacity, "", float64(f.capacity)},
		{&descWaiting, "", float64(f.waiting)},
	} {
		labels := []string{f.resource, f.policy, m.reason}
		if m.reason == "" {
			labels = labels[:2]
		}
		if !yield(metrics.Sample{Desc: m.desc, Labels: labels, Value: m.value}) {
			return false
		}
	}
	return true
}
