package retry

import "github.com/sluicego/sluice/internal/clock"

// Snapshot is what a policy has done since New, as plain data. Its numbers are read
// one after another while calls go on, so they need not add up to the call.
type Snapshot struct {
	Name string `json:"name"`
	// Retries is how many further attempts have ended.
	Retries int64 `json:"retries"`
	// Recovered is how many calls a further attempt has saved.
	Recovered int64           `json:"recovered"`
	GivenUp   GivenUpSnapshot `json:"given_up"`
	// Budget is the one that retries are taken from, which others may share.
	Budget *BudgetSnapshot `json:"budget,omitempty"`
}

// GivenUpSnapshot counts calls that were worth another attempt and got none, by
// reason: see the Reason constants.
type GivenUpSnapshot struct {
	Attempts   int64 `json:"attempts"`
	Budget     int64 `json:"budget"`
	Deadline   int64 `json:"deadline"`
	RetryAfter int64 `json:"retry_after"`
	Ended      int64 `json:"ended"`
	Refused    int64 `json:"refused"`
	Nested     int64 `json:"nested"`
	Probe      int64 `json:"probe"`
}

// BudgetSnapshot is what a budget looks like at one moment, as plain data.
type BudgetSnapshot struct {
	Name string `json:"name"`
	// Available is how many repetitions are allowed now.
	Available int64 `json:"available"`
	// Deposits, Withdrawals and Refusals count since NewBudget; Returned is how many of
	// the withdrawals were for repetitions that were not made.
	Deposits    uint64 `json:"deposits"`
	Withdrawals int64  `json:"withdrawals"`
	Returned    int64  `json:"returned"`
	Refusals    int64  `json:"refusals"`
}

// HedgerSnapshot is what a hedger has done since NewHedger, as plain data.
type HedgerSnapshot struct {
	Name string `json:"name"`
	// Hedges is how many second attempts were sent, Won how many of them were faster.
	Hedges int64 `json:"hedges"`
	Won    int64 `json:"won"`
	// Throttled is how many were not sent for want of budget, Withheld because of
	// WithHedgeIf.
	Throttled int64 `json:"throttled"`
	Withheld  int64 `json:"withheld"`
	// Panics of attempts that had lost, and of discard, were caught.
	Panics int64 `json:"panics"`
	// Budget is the one that hedges are taken from, which others may share.
	Budget *BudgetSnapshot `json:"budget,omitempty"`
}

// Snapshot returns what the policy has done so far. It disturbs no call, but it
// allocates.
func (p *Policy) Snapshot() Snapshot {
	if p == nil {
		return Snapshot{}
	}
	given := func(why givenUp) int64 { return p.givenUp[why].Load() }
	return Snapshot{
		Name: p.name, Retries: p.retries.Load(), Recovered: p.recovered.Load(),
		GivenUp: GivenUpSnapshot{
			Attempts: given(gaveUpAttempts), Budget: given(gaveUpBudget), Deadline: given(gaveUpDeadline),
			RetryAfter: given(gaveUpRetryAfter), Ended: given(gaveUpEnded), Refused: given(gaveUpRefused),
			Nested: given(gaveUpNested), Probe: given(gaveUpProbe),
		},
		Budget: p.budget.shown(),
	}
}

// Snapshot returns what the budget looks like now.
func (b *Budget) Snapshot() BudgetSnapshot {
	if b == nil {
		return BudgetSnapshot{}
	}
	return b.snapshot(clock.Now())
}

// Snapshot returns what the hedger has done so far. It disturbs no call, but it
// allocates.
func (h *Hedger) Snapshot() HedgerSnapshot {
	if h == nil {
		return HedgerSnapshot{}
	}
	return HedgerSnapshot{
		Name: h.name, Hedges: h.hedges.Load(), Won: h.won.Load(), Throttled: h.throttled.Load(),
		Withheld: h.withheld.Load(), Panics: h.panics.Load(), Budget: h.budget.shown(),
	}
}

func (b *Budget) snapshot(now int64) BudgetSnapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enter(now)
	return BudgetSnapshot{
		Name: b.name, Available: max(0, b.available()), Deposits: b.dated,
		Withdrawals: b.past.withdrawn, Returned: b.past.returned, Refusals: b.past.refused,
	}
}

// shown is the snapshot within that of an owner.
func (b *Budget) shown() *BudgetSnapshot {
	if b == nil {
		return nil
	}
	s := b.Snapshot()
	return &s
}
