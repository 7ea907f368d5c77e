package ratelimit

import (
	"github.com/sluicego/sluice/metrics"
)

var (
	descStoreCalls    = metrics.Desc{Name: "ratelimit_store_calls", Help: "Calls of the shared store, by what for.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "call"}}
	descStoreFailures = metrics.Desc{Name: "ratelimit_store_failures", Help: "Calls of the shared store that failed, or that its guard did not make.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "reason"}}
	descStoreWaits    = metrics.Desc{Name: "ratelimit_store_waits", Help: "Decisions that waited for the shared store.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descStoreDenials  = metrics.Desc{Name: "ratelimit_store_denials", Help: "Refusals by the shared store; other refusals for want of tokens were given from memory.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descFallback      = metrics.Desc{Name: "ratelimit_fallback_decisions", Help: "Decisions without the shared store, because it did not answer.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descMode          = metrics.Desc{Name: "ratelimit_mode", Help: "1 for the mode that the limiter is in, 0 for the other.", Kind: metrics.Gauge, Labels: []string{"resource", "mode"}}
	descModes         = metrics.Desc{Name: "ratelimit_fallbacks", Help: "Stays in the mode without the shared store.", Unit: "{stay}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descFallbackFor   = metrics.Desc{Name: "ratelimit_fallback_seconds", Help: "Time without the shared store, up to now.", Unit: "s", Kind: metrics.Counter, Labels: []string{"resource"}}
	descNodes         = metrics.Desc{Name: "ratelimit_nodes", Help: "Nodes that share the limit.", Unit: "{node}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descHeld          = metrics.Desc{Name: "ratelimit_lease_held", Help: "Tokens that this node has bought ahead.", Unit: "{token}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descRemaining     = metrics.Desc{Name: "ratelimit_store_remaining", Help: "Tokens that the shared store had left when it was asked last.", Unit: "{token}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descOwed          = metrics.Desc{Name: "ratelimit_owed", Help: "Tokens given out that the shared store has not been told of.", Unit: "{token}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descLost          = metrics.Desc{Name: "ratelimit_tokens_lost", Help: "Tokens that could not be given back.", Unit: "{token}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descDropped       = metrics.Desc{Name: "events_dropped", Help: "Events that a slow listener never saw.", Unit: "{event}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descPanics        = metrics.Desc{Name: "listener_panics", Help: "Panics of listeners, which were caught.", Unit: "{panic}", Kind: metrics.Counter, Labels: []string{"resource"}}
)

// A figure is one sample without the name of its limiter.
type figure struct {
	desc  *metrics.Desc
	label string // the second one, "" if there is none
	value float64
}

// Collect yields the limiter's figures, for metrics.Set. Counters never go down.
func (s *Shared) Collect(yield func(metrics.Sample) bool) {
	if s == nil {
		return
	}
	snap := s.Snapshot()
	s.node.yield(append(snap.Node.figures(), []figure{
		{&descCapacity, "shared", float64(snap.Burst)},
		{&descWaiting, "shared", float64(snap.Waiting)},
		{&descHeld, "", float64(snap.Held)},
		{&descRemaining, "", float64(snap.Remaining)},
		{&descOwed, "", float64(snap.Owed)},
	}...), snap.Node.Refused, yield)
}

// View returns the Snapshot, for metrics.Set.
func (s *Shared) View() any { return s.Snapshot() }

// figures are those of a node.
func (s NodeSnapshot) figures() []figure {
	return []figure{
		{&descAdmitted, "shared", float64(s.Totals.Admitted)},
		{&descTokens, "shared", float64(s.Totals.Tokens)},
		{&descRefunded, "shared", float64(s.Totals.Refunded)},
		{&descGone, "shared", float64(s.Totals.Gone)},
		{&descStoreCalls, "take", float64(s.Store.Takes)},
		{&descStoreCalls, "refund", float64(s.Store.Refunds)},
		{&descStoreCalls, "debit", float64(s.Store.Debits)},
		{&descStoreCalls, "beat", float64(s.Store.Beats)},
		{&descStoreCalls, "try", float64(s.Store.Tries)},
		{&descStoreFailures, "failed", float64(s.Store.Failures)},
		{&descStoreFailures, "rejected", float64(s.Store.Rejected)},
		{&descStoreWaits, "", float64(s.Store.Waited)},
		{&descStoreDenials, "", float64(s.Store.Denials)},
		{&descFallback, "", float64(s.Store.Fallback)},
		{&descMode, ModeShared.String(), indicator(s.Mode == ModeShared)},
		{&descMode, ModeFallback.String(), indicator(s.Mode == ModeFallback)},
		{&descModes, "", float64(s.Store.Fallbacks)},
		{&descFallbackFor, "", s.Store.FallbackFor.Seconds()},
		{&descNodes, "", float64(s.Nodes)},
		{&descLost, "", float64(s.Store.Lost)},
		{&descDropped, "", float64(s.Dropped)},
		{&descPanics, "", float64(s.Panics)},
	}
}

// yield yields figures and refusals under the node's name.
func (n *node) yield(figures []figure, r RefusedSnapshot, yield func(metrics.Sample) bool) {
	for _, f := range figures {
		labels := []string{n.name, f.label}
		if f.label == "" {
			labels = labels[:1]
		}
		if !yield(metrics.Sample{Desc: f.desc, Labels: labels, Value: f.value}) {
			return
		}
	}
	for _, f := range []figure{
		{&descRefused, ReasonLimited, float64(r.Limited)},
		{&descRefused, ReasonExceedsCapacity, float64(r.ExceedsCapacity)},
		{&descRefused, ReasonBlocked, float64(r.Blocked)},
		{&descRefused, ReasonInvalid, float64(r.Invalid)},
		{&descRefused, ReasonMaxWait, float64(r.MaxWait)},
		{&descRefused, ReasonDeadline, float64(r.Deadline)},
		{&descRefused, ReasonMaxWaiters, float64(r.MaxWaiters)},
		{&descRefused, ReasonStore, float64(n.stats.unavailable.Load())},
	} {
		if !yield(metrics.Sample{Desc: f.desc, Labels: []string{n.name, "shared", f.label}, Value: f.value}) {
			return
		}
	}
}

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
