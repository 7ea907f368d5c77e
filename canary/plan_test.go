package canary

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// throughJSON is a plan as another process gets it.
func throughJSON(t testing.TB, p Plan) Plan {
	t.Helper()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	var got Plan
	require.NoError(t, json.Unmarshal(text, &got))
	return got
}

func TestApply_RefusesOlderPlans(t *testing.T) {
	leader, replica := pickerOf(t, 10_000), pickerOf(t, 10_000)
	var plans []Plan
	for _, n := range []int{20_000, 50_000, 100_000} {
		require.NoError(t, leader.SetWeights(weightsOf(n)))
		plans = append(plans, throughJSON(t, leader.Plan()))
	}
	require.NoError(t, replica.Apply(plans[1]))
	assert.Equal(t, uint64(3), replica.Generation())
	require.ErrorIs(t, replica.Apply(plans[0]), ErrOlderPlan, "a message that comes late")
	require.NoError(t, replica.Apply(plans[1]), "the very same, as by polling")
	require.NoError(t, replica.Apply(plans[2]))
	assert.Equal(t, PPM(100_000), replica.Share("c0"))

	other := plans[2].Clone()
	other.Config.Versions[0].Weight = PPM(1)
	require.ErrorIs(t, replica.Apply(other), ErrOlderPlan, "another plan of the same generation")
	other.Name, other.Generation = "another", 99
	require.ErrorContains(t, replica.Apply(other), `the plan is for "another"`)
}

func TestApply_FailsTowardsStable(t *testing.T) {
	leader, replica := pickerOf(t, 10_000), pickerOf(t, 10_000)
	require.NoError(t, replica.Rollback("c0", "errors here"))
	require.NoError(t, leader.SetWeights(weightsOf(20_000)))
	require.NoError(t, leader.SetWeights(weightsOf(30_000)))
	for range 2 { // a plan that is polled again is still no news
		require.NoError(t, replica.Apply(throughJSON(t, leader.Plan())))
		assert.Equal(t, Weight(0), replica.Share("c0"), "the leader does not know of the rollback yet")
	}
	require.NoError(t, leader.Rollback("c0", "seen"))
	require.NoError(t, leader.Readmit("c0"))
	require.NoError(t, leader.SetWeights(weightsOf(5_000)))
	require.NoError(t, replica.Apply(throughJSON(t, leader.Plan())))
	assert.Equal(t, PPM(5_000), replica.Share("c0"), "who readmits it knows")
}

func TestPlan_JSON(t *testing.T) {
	p := pickerOf(t, 100_000, 200_000, 0)
	require.NoError(t, p.RollbackOver("c0", "slow", time.Hour))
	require.NoError(t, p.Rollback("c2", "bad"))
	require.NoError(t, p.Readmit("c2"))
	require.NoError(t, p.Drain("c1", time.Hour))
	require.NoError(t, p.Kill("test"))
	plan, again := p.Plan(), throughJSON(t, p.Plan())
	assert.True(t, plan.equal(&again))
	require.NoError(t, again.Validate())

	for text, says := range map[string]string{
		`{"nmae":"x"}`: "unknown key",
		`{"config":{"versions":[{"name":"v","lane":0,"weight":5}]}}`: `weight`,
		`{"rolled_back":[{"version":"v","over":5}]}`:                 "bare number",
		`{"draining":[{"version":"v","til":""}]}`:                    "unknown key",
	} {
		kept := again.Clone()
		require.ErrorContains(t, json.Unmarshal([]byte(text), &kept), says)
		assert.True(t, kept.equal(&again), "it is as before")
	}
}

func TestPlan_Validate(t *testing.T) {
	require.NoError(t, pickerOf(t, 1).Plan().Validate())
	bad := Plan{
		Name: "\n", Salt: "a",
		Config:     Config{Stable: "v1", Salt: "b", HashSpec: 1, NoIdentity: RandomVersion, Versions: []VersionConfig{{"v2", 0, 5}}},
		RolledBack: []RolledBack{{Version: "v1", Over: -1, Lane: 16, From: Percent(-1)}, {Version: "v2"}},
		Readmitted: []Readmitted{{Version: "v2"}, {}},
		Draining:   []Draining{{Version: "v2"}, {Version: "v9"}},
	}
	err := bad.Validate()
	for _, says := range []string{
		`Name "\n" has control characters`, "Generation 0 is not positive", `Salt "a" is not Config.Salt "b"`,
		`RolledBack[0].Version "v1" is the stable version`, "RolledBack[0].Over -1ns is negative", "RolledBack[0].Lane 16",
		"as From of RolledBack[0]", `RolledBack[1].Version "v2" has a weight of 0.0005%`, `RolledBack[1].Version "v2" is in Readmitted too`,
		"Readmitted[1].Version is empty", `Draining[0].Version "v2" has a weight`, `Draining[1].Version "v9" is not in Config`,
	} {
		assert.ErrorContains(t, err, says)
	}
	p := pickerOf(t, 1)
	require.Error(t, p.Apply(bad))
	assert.Equal(t, uint64(1), p.Generation())
}

func TestUpdate_Salt(t *testing.T) {
	p := pickerOf(t, 100_000)
	c := p.Config()
	c.Stable = "v9"
	require.NoError(t, p.Update(c))
	assert.Equal(t, "rollout/v9", p.Plan().Salt, "another stable version begins another rollout")
	c.Salt = "given"
	require.NoError(t, p.Update(c))
	assert.Equal(t, "given", p.Plan().Salt)
	c.Salt = ""
	require.NoError(t, p.Update(c))
	assert.Equal(t, "rollout/v9", p.Plan().Salt)
	c.HashSpec = 2
	require.ErrorContains(t, p.Update(c), "HashSpec 2 is not 1")
}

// With another salt all are dealt anew, and the Diff says how many that is.
func TestDiff_Reshuffled(t *testing.T) {
	var changes []Change
	p, err := New("rollout", "v1", WithVersion("v2", 0, Percent(20)), WithOnChange(func(c Change) { changes = append(changes, c) }))
	require.NoError(t, err)
	c := p.Config()
	c.Salt = "another"
	require.NoError(t, p.Update(c))
	require.Len(t, changes, 1)
	assert.True(t, changes[0].Diff.Reshuffled)
	assert.Equal(t, Percent(16), changes[0].Diff.Of("v1", "v2"))
	assert.Equal(t, Percent(32), changes[0].Diff.Moved())
	assert.Equal(t, "v1→v2 16%, v2→v1 16%", changes[0].Diff.String())
	assert.Equal(t, "nobody moves", Diff{}.String())
}

// Dates far away overflow nothing.
func TestPlan_FarDates(t *testing.T) {
	p := pickerOf(t, 100_000, 100_000)
	require.NoError(t, p.Drain("c1", math.MaxInt64))
	assert.Equal(t, Sticky, p.Decide(Input{ID: "old session", Sticky: "c1"}).Reason)
	require.NoError(t, p.RollbackOver("c0", "", math.MaxInt64))
	assert.InDelta(t, 100_000, float64(p.Share("c0")), 1)
	plan := p.Plan()
	plan.Generation++
	for _, at := range []time.Time{{}, time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		plan.RolledBack[0].At, plan.RolledBack[0].Over = at, time.Hour
		q := pickerOf(t)
		require.NoError(t, q.Apply(plan))
		left := 0
		for _, v := range dealt(q, 1000) {
			if v.Name() == "c0" {
				left++
			}
		}
		assert.InDelta(t, float64(q.Share("c0"))/1000, left, 1, "one that began %v", at)
		assert.Equal(t, at.IsZero(), left == 0)
	}
}
