package breaker

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/metrics"
)

var (
	descCalls   = metrics.Desc{Name: "calls", Help: "Settled calls by outcome.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "outcome"}}
	descSlow    = metrics.Desc{Name: "slow_calls", Help: "Settled calls that took longer than the slow limit.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descRefused = metrics.Desc{Name: "rejected", Help: "Calls refused locally, by policy and reason.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "policy", "reason"}}
	descState   = metrics.Desc{Name: "breaker_state", Help: "1 for the state that the breaker is in, 0 for the others.", Kind: metrics.Gauge, Labels: []string{"resource", "state"}}
	descMoves   = metrics.Desc{Name: "breaker_transitions", Help: "Changes of state, by the state moved to.", Unit: "{transition}", Kind: metrics.Counter, Labels: []string{"resource", "to"}}
	descOpen    = metrics.Desc{Name: "breaker_open_seconds", Help: "Time spent open, up to now.", Unit: "s", Kind: metrics.Counter, Labels: []string{"resource"}}
	descShare   = metrics.Desc{Name: "breaker_admitted_ratio", Unit: "1", Help: "Share of calls that is admitted, below 1 while recovering.", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descDropped = metrics.Desc{Name: "events_dropped", Help: "Events that a slow listener never saw.", Unit: "{event}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descPanics  = metrics.Desc{Name: "listener_panics", Help: "Panics of listeners, which were caught.", Unit: "{panic}", Kind: metrics.Counter, Labels: []string{"resource"}}
)

// reported keeps totals from going down while a call is on its way from a window
// to the totals. Written by Collect.
type reported struct{ success, failure, slow, openNanos metrics.Total }

// Collect yields the breaker's figures, for metrics.Set. Counters never go down.
func (b *Breaker) Collect(yield func(metrics.Sample) bool) {
	if b == nil {
		return
	}
	s, past := b.Snapshot(), b.past()
	said := b.said.Load()
	if said == nil {
		b.said.CompareAndSwap(nil, new(reported))
		said = b.said.Load()
	}
	open := uint64(past.openNanos.Load())
	if e := b.cur.Load(); e.state == Open {
		open += uint64(e.openTime(clock.Now()))
	}
	for _, m := range []struct {
		desc   *metrics.Desc
		labels []string
		value  float64
	}{
		{&descCalls, []string{"success"}, float64(said.success.Report(uint64(s.Totals.Success)))},
		{&descCalls, []string{"failure"}, float64(said.failure.Report(uint64(s.Totals.Failure)))},
		{&descCalls, []string{"throttled"}, float64(s.Totals.Throttled)},
		{&descCalls, []string{"ignored"}, float64(s.Totals.Ignored)},
		{&descCalls, []string{"stale"}, float64(s.Totals.Stale)},
		{&descCalls, []string{"lost"}, float64(s.Totals.Lost)},
		{&descSlow, nil, float64(said.slow.Report(uint64(s.Totals.Slow)))},
		{&descRefused, []string{"breaker", ReasonOpen}, float64(s.Refused.Open)},
		{&descRefused, []string{"breaker", ReasonHalfOpen}, float64(s.Refused.HalfOpen)},
		{&descRefused, []string{"breaker", ReasonRecovering}, float64(s.Refused.Recovering)},
		{&descRefused, []string{"breaker", ReasonForcedOpen}, float64(s.Refused.Forced)},
		{&descState, []string{Closed.String()}, indicator(s.State == Closed)},
		{&descState, []string{Open.String()}, indicator(s.State == Open)},
		{&descState, []string{HalfOpen.String()}, indicator(s.State == HalfOpen)},
		{&descMoves, []string{Closed.String()}, float64(past.toClosed.Load())},
		{&descMoves, []string{Open.String()}, float64(past.toOpen.Load())},
		{&descMoves, []string{HalfOpen.String()}, float64(past.toHalfOpen.Load())},
		{&descOpen, nil, time.Duration(said.openNanos.Report(open)).Seconds()},
		{&descShare, nil, s.Share},
		{&descDropped, nil, float64(s.Dropped)},
		{&descPanics, nil, float64(s.Panics)},
	} {
		if !yield(metrics.Sample{Desc: m.desc, Labels: append([]string{b.name}, m.labels...), Value: m.value}) {
			return
		}
	}
}

// View returns the Snapshot, for metrics.Set.
func (b *Breaker) View() any { return b.Snapshot() }

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
