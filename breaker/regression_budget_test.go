package breaker

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Each instance of a fleet probed by itself, and together they were no probe but a
// load: https://github.com/gunnargrosch/circuitbreaker-lambda/issues/7.
func TestT37_FleetSendsOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget, err := NewLocalBudget(1)
		require.NoError(t, err)
		fleet := make([]*Breaker, 50)
		for i := range fleet {
			fleet[i] = build(t, WithErrorCount(1), WithProbeBudget(budget), WithProbeLease(10*time.Second))
			require.NoError(t, fleet[i].Trip(0))
		}
		// ask lets every breaker that is not closed ask, some callers at once.
		ask := func() (probes []*Permit) {
			var mu sync.Mutex
			var wg sync.WaitGroup
			for _, b := range fleet {
				if b.State() == Closed {
					continue
				}
				for range 3 {
					wg.Go(func() {
						if p, err := b.Allow(t.Context()); err == nil {
							mu.Lock()
							defer mu.Unlock()
							probes = append(probes, &p)
						}
					})
				}
			}
			wg.Wait()
			return probes
		}
		require.Empty(t, ask())
		time.Sleep(5 * time.Second)
		for range fleet { // one after another they close
			probes := ask()
			require.Len(t, probes, 1)
			time.Sleep(2 * time.Second) // a long probe; nobody else's
			require.Empty(t, ask())
			probes[0].Done(nil)
			time.Sleep(time.Second)
		}
		for _, b := range fleet {
			require.Equal(t, Closed, b.State())
		}
	})
}

// A probe that never ends, or that nobody counts, frees its place in the fleet.
func TestT37_FleetIsNotWedgedByOneMember(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*Permit)
		wait time.Duration // a failed probe keeps its place for its lease: the fleet has probed
	}{
		"lost":      {func(*Permit) {}, 10 * time.Second},
		"failed":    {func(p *Permit) { p.Done(errDown) }, 10 * time.Second},
		"panicked":  {func(p *Permit) { p.Close() }, 10 * time.Second},
		"cancelled": {func(p *Permit) { p.Cancel() }, 10 * time.Millisecond},
		"throttled": {func(p *Permit) { p.Settle(sluice.Throttled) }, 10 * time.Millisecond},
		"ignored":   {func(p *Permit) { p.Settle(sluice.Ignored) }, 10 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				budget, err := NewLocalBudget(1)
				require.NoError(t, err)
				first := build(t, WithErrorCount(1), WithProbeBudget(budget), WithProbeLease(10*time.Second))
				second := build(t, WithErrorCount(1), WithProbeBudget(budget), WithProbeLease(10*time.Second))
				require.NoError(t, first.Trip(time.Second))
				require.NoError(t, second.Trip(time.Second))
				time.Sleep(time.Second)
				probe, err := first.Allow(t.Context())
				require.NoError(t, err)
				_, err = second.Allow(t.Context())
				require.ErrorIs(t, err, ErrOpen)
				c.end(&probe)
				time.Sleep(c.wait)
				probe, err = second.Allow(t.Context())
				require.NoError(t, err)
				probe.Done(nil)
				assert.Equal(t, Closed, second.State())
			})
		})
	}
}

// Different resources have different budgets.
func TestT37_BudgetIsForEachResource(t *testing.T) {
	budget, err := NewLocalBudget(2)
	require.NoError(t, err)
	_, first := budget.Take("payments", time.Minute)
	fence, second := budget.Take("payments", time.Minute)
	_, third := budget.Take("payments", time.Minute)
	_, other := budget.Take("orders", time.Minute)
	assert.Equal(t, []bool{true, true, false, true}, []bool{first, second, third, other})
	budget.Settle("orders", fence+1000, sluice.Success) // a fence that it never gave
	budget.Settle("payments", fence, sluice.Success)
	budget.Settle("payments", fence, sluice.Success) // twice is once
	_, third = budget.Take("payments", time.Minute)
	_, fourth := budget.Take("payments", time.Minute)
	assert.Equal(t, []bool{true, false}, []bool{third, fourth})
	for _, n := range []int{0, -1} {
		_, err = NewLocalBudget(n)
		assert.Error(t, err, n)
	}
}

// A store that is slow to answer, or down, says no for a while: the breaker asks
// again, at no great rate, and nothing is used up meanwhile.
func TestT37_BudgetThatSaysNoNeverWedges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		budget := &lateBudget{}
		b := build(t, WithErrorCount(1), WithProbeBudget(budget))
		require.NoError(t, b.Trip(time.Second))
		time.Sleep(time.Second)
		for range 10_000 { // ten seconds of a thousand calls each, and none is counted as a probe
			_, err := b.Allow(t.Context())
			require.ErrorIs(t, err, ErrOpen)
			require.Zero(t, b.Snapshot().Probe.Issued)
			time.Sleep(time.Millisecond)
		}
		assert.Positive(t, budget.asked.Load())
		budget.yes.Store(true)
		time.Sleep(5 * time.Second) // an open period at most
		probe, err := b.Allow(t.Context())
		require.NoError(t, err)
		probe.Done(errDown)
		assert.Equal(t, Open, b.State())
		assert.Equal(t, []sluice.Outcome{sluice.Failure}, budget.settled)
		time.Sleep(10 * time.Second)
		probe, err = b.Allow(t.Context())
		require.NoError(t, err)
		probe.Done(nil)
		assert.Equal(t, Closed, b.State())
		assert.Equal(t, []sluice.Outcome{sluice.Failure, sluice.Success}, budget.settled)
		for _, lease := range budget.leases {
			assert.Equal(t, 10*time.Second, lease)
		}
	})
}

// lateBudget says no until it says yes.
type lateBudget struct {
	asked   atomic.Int64
	yes     atomic.Bool
	settled []sluice.Outcome
	leases  []time.Duration
}

func (l *lateBudget) Take(_ string, lease time.Duration) (uint64, bool) {
	l.leases = append(l.leases, lease)
	return uint64(l.asked.Add(1)), l.yes.Load()
}

func (l *lateBudget) Settle(_ string, _ uint64, o sluice.Outcome) { l.settled = append(l.settled, o) }

// What a budget is told of a lost probe is that it failed, by its fence; what comes
// late says nothing.
func TestT37_BudgetIsToldOfALostProbe(t *testing.T) {
	budget := &lateBudget{}
	budget.yes.Store(true)
	s := newStory(t, WithErrorCount(1), WithProbeBudget(budget), WithProbeLease(3*time.Second)).tell(
		step{0, F, Open},
		step{5, A("hung"), HalfOpen},
		step{8, R, Open},
	)
	assert.Equal(t, []sluice.Outcome{sluice.Failure}, budget.settled)
	s.tell(step{9, done("hung", nil), Open})
	assert.NotContains(t, budget.settled, sluice.Success)
}

// A budget that panics is foreign code like any other: its panic goes to the
// caller, and the seat is free again.
func TestT37_BudgetThatPanicsKeepsNoSeat(t *testing.T) {
	b := build(t, WithErrorCount(1), WithProbeBudget(&brokenBudget{}))
	require.NoError(t, b.trip(t0, time.Second))
	now := at(1)
	assert.Panics(t, func() { _, _ = b.allow(t.Context(), now) })
	now += int64(time.Second)
	p, err := b.allow(t.Context(), now)
	require.NoError(t, err)
	p.done(now, nil)
	assert.Equal(t, Closed, b.state(now))
}

// brokenBudget panics the first time.
type brokenBudget struct{ asked int }

func (u *brokenBudget) Take(string, time.Duration) (uint64, bool) {
	if u.asked++; u.asked == 1 {
		panic("no store")
	}
	return 1, true
}

func (*brokenBudget) Settle(string, uint64, sluice.Outcome) {}
