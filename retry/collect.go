package retry

import "github.com/sluicego/sluice/metrics"

var (
	descRetries   = metrics.Desc{Name: "retries", Help: "Further attempts of calls that had failed.", Unit: "{attempt}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descRecovered = metrics.Desc{Name: "recovered_calls", Help: "Calls that a further attempt has saved.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descGivenUp   = metrics.Desc{Name: "given_up_calls", Help: "Calls that were worth another attempt and got none, by reason.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "reason"}}

	descDeposits    = metrics.Desc{Name: "retry_budget_deposits", Help: "Calls that allow repetitions.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descWithdrawals = metrics.Desc{Name: "retry_budget_withdrawals", Help: "Repetitions that were allowed.", Unit: "{attempt}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descReturned    = metrics.Desc{Name: "retry_budget_returns", Help: "Repetitions that were allowed and not made.", Unit: "{attempt}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descRefusals    = metrics.Desc{Name: "retry_budget_refusals", Help: "Repetitions that were not allowed.", Unit: "{attempt}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descAvailable   = metrics.Desc{Name: "retry_budget_available", Help: "Repetitions that are allowed now.", Unit: "{attempt}", Kind: metrics.Gauge, Labels: []string{"resource"}}

	descHedges   = metrics.Desc{Name: "hedges", Help: "Second attempts sent beside a first.", Unit: "{attempt}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descWon      = metrics.Desc{Name: "hedges_won", Help: "Second attempts that were faster than the first.", Unit: "{attempt}", Kind: metrics.Counter, Labels: []string{"resource"}}
	descWithheld = metrics.Desc{Name: "hedges_withheld", Help: "Second attempts that were not sent, by reason.", Unit: "{attempt}", Kind: metrics.Counter, Labels: []string{"resource", "reason"}}
	descPanics   = metrics.Desc{Name: "hedge_panics", Help: "Panics of attempts that had lost and of what discards their results, which were caught.", Unit: "{panic}", Kind: metrics.Counter, Labels: []string{"resource"}}
)

// Collect yields the policy's figures, for metrics.Set, and those of its budget if
// that is its own: give policies and hedgers different names, or one budget. A budget
// that was given to it is a source by itself.
func (p *Policy) Collect(yield func(metrics.Sample) bool) {
	if p == nil {
		return
	}
	show := shower{p.name, yield}
	ok := show.sample(&descRetries, float64(p.retries.Load())) &&
		show.sample(&descRecovered, float64(p.recovered.Load()))
	for why, reason := range reasonNames {
		ok = ok && show.sample(&descGivenUp, float64(p.givenUp[why].Load()), reason)
	}
	if ok && p.ownBudget {
		p.budget.Collect(yield)
	}
}

// View returns the Snapshot, for metrics.Set.
func (p *Policy) View() any { return p.Snapshot() }

// Collect yields the budget's figures, for metrics.Set.
func (b *Budget) Collect(yield func(metrics.Sample) bool) {
	if b == nil {
		return
	}
	s, show := b.Snapshot(), shower{b.name, yield}
	_ = show.sample(&descDeposits, float64(s.Deposits)) &&
		show.sample(&descWithdrawals, float64(s.Withdrawals)) &&
		show.sample(&descReturned, float64(s.Returned)) &&
		show.sample(&descRefusals, float64(s.Refusals)) &&
		show.sample(&descAvailable, float64(s.Available))
}

// View returns the Snapshot, for metrics.Set.
func (b *Budget) View() any { return b.Snapshot() }

// Collect yields the hedger's figures, for metrics.Set, and those of its budget if
// that is its own. A budget that was given to it is a source by itself.
func (h *Hedger) Collect(yield func(metrics.Sample) bool) {
	if h == nil {
		return
	}
	show := shower{h.name, yield}
	ok := show.sample(&descHedges, float64(h.hedges.Load())) &&
		show.sample(&descWon, float64(h.won.Load())) &&
		show.sample(&descWithheld, float64(h.throttled.Load()), "budget") &&
		show.sample(&descWithheld, float64(h.withheld.Load()), "condition") &&
		show.sample(&descPanics, float64(h.panics.Load()))
	if ok && h.ownBudget {
		h.budget.Collect(yield)
	}
}

// View returns the Snapshot, for metrics.Set.
func (h *Hedger) View() any { return h.Snapshot() }

// shower yields the samples of one object.
type shower struct {
	name  string
	yield func(metrics.Sample) bool
}

// sample reports whether more are wanted.
func (s shower) sample(d *metrics.Desc, value float64, labels ...string) bool {
	return s.yield(metrics.Sample{Desc: d, Labels: append([]string{s.name}, labels...), Value: value})
}
