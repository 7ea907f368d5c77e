package retry

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/metrics"
)

// story has seen everything that is counted: a policy with its own budget, and a hedger
// with another.
func story(t *testing.T) (*Policy, *Hedger) {
	t.Helper()
	p := build(t, WithAttempts(2))
	for _, answers := range [][]error{{nil}, {errDown, nil}, {errDown}, {errDown, errOpen}} {
		_ = p.Do(t.Context(), answering(answers...).call)
	}
	h := hedger(t, 10*tick, WithHedgeBudget(budgetNow(t, WithRatio(0), WithMinPerSecond(0.2))))
	for _, ends := range [][2]end{{{takes: tick}}, {{takes: forHours}, {takes: tick}}, {{takes: 20 * tick}, {takes: forHours}}, {{takes: 20 * tick}}} {
		d := &duel{t: t, h: h, ends: ends}
		_, _, _ = d.run(t.Context())
	}
	return p, h
}

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := story(t)
		out, err := json.Marshal(p.View())
		require.NoError(t, err)
		assert.JSONEq(t, `{
			"name": "payments", "retries": 2, "recovered": 1,
			"given_up": {"attempts": 1, "budget": 0, "deadline": 0, "retry_after": 0, "ended": 0, "refused": 1, "nested": 0, "probe": 0},
			"budget": {"name": "payments", "available": 8, "deposits": 4, "withdrawals": 3, "returned": 1, "refusals": 0}
		}`, string(out))
		out, err = json.Marshal(h.View())
		require.NoError(t, err)
		assert.JSONEq(t, `{
			"name": "payments", "hedges": 2, "won": 1, "throttled": 1, "withheld": 0, "panics": 0,
			"budget": {"name": "payments", "available": 0, "deposits": 4, "withdrawals": 2, "returned": 0, "refusals": 1}
		}`, string(out))
		assert.Equal(t, *p.Snapshot().Budget, p.Budget().View())
	})
}

// collected are the samples of a source, by name and labels.
func collected(t *testing.T, s metrics.Source) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	s.Collect(func(s metrics.Sample) bool {
		require.NoError(t, s.Desc.Validate())
		require.Len(t, s.Labels, len(s.Desc.Labels), s.Desc.Name)
		require.Equal(t, "payments", s.Labels[0])
		key := s.Desc.Name
		for _, label := range s.Labels[1:] {
			key += " " + label
		}
		_, twice := got[key]
		require.False(t, twice, key)
		got[key] = s.Value
		return true
	})
	return got
}

func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, h := story(t)
		own := map[string]float64{
			"retries": 2, "recovered_calls": 1,
			"given_up_calls attempts": 1, "given_up_calls budget": 0, "given_up_calls deadline": 0, "given_up_calls retry_after": 0,
			"given_up_calls ended": 0, "given_up_calls refused": 1, "given_up_calls nested": 0, "given_up_calls probe": 0,
			"retry_budget_deposits": 4, "retry_budget_withdrawals": 3, "retry_budget_returns": 1, "retry_budget_refusals": 0, "retry_budget_available": 8,
		}
		assert.Equal(t, own, collected(t, p))
		hedges := map[string]float64{"hedges": 2, "hedges_won": 1, "hedges_withheld budget": 1, "hedges_withheld condition": 0, "hedge_panics": 0}
		assert.Equal(t, hedges, collected(t, h), "a budget that was given to it is listed by its owner")
		assert.Equal(t, map[string]float64{
			"retry_budget_deposits": 4, "retry_budget_withdrawals": 2, "retry_budget_returns": 0, "retry_budget_refusals": 1, "retry_budget_available": 0,
		}, collected(t, h.Budget()))
		own2, err := NewHedger("payments", 1)
		require.NoError(t, err)
		assert.Len(t, collected(t, own2), 10, "its own budget is listed with it")

		// They fit into a Set, and stop when they are told to.
		var set metrics.Set
		require.NoError(t, set.Add("p", p))
		require.NoError(t, set.Add("b", h.Budget()))
		require.NoError(t, set.Add("h", own2))
		for n := range 40 {
			left := n
			set.Collect(func(metrics.Sample) bool { left--; return left > 0 })
		}
	})
}

// Of nothing there is nothing to see.
func TestNil_Shows(t *testing.T) {
	var p *Policy
	var b *Budget
	var h *Hedger
	assert.Empty(t, collected(t, p))
	assert.Empty(t, collected(t, b))
	assert.Empty(t, collected(t, h))
	assert.Equal(t, Snapshot{}, p.View())
	assert.Equal(t, BudgetSnapshot{}, b.View())
	assert.Equal(t, HedgerSnapshot{}, h.View())
	assert.Empty(t, p.Name())
	assert.Nil(t, p.Budget())
	assert.Equal(t, Config{}, p.Config())
	assert.NoError(t, p.Update(DefaultConfig()))
	assert.Error(t, p.Update(Config{}))
}

// Counters never go down, also while a retry that was allowed is given back.
func TestCollect_CountersNeverGoDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := build(t, WithAttempts(2))
		last := map[string]float64{}
		for _, answers := range [][]error{{errDown, errOpen}, {errDown, nil}, {errDown}, {errDown, errOpen}, {nil}} {
			d := answering(answers...)
			_ = p.Do(t.Context(), d.call)
			now := collected(t, p)
			for name, value := range last {
				if name != "retry_budget_available" {
					assert.GreaterOrEqual(t, now[name], value, name)
				}
			}
			last = now
			time.Sleep(4 * time.Second)
		}
	})
}
