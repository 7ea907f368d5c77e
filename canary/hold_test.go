package canary

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A rollback holds against whatever plans come in from elsewhere.

func TestApply_NoSlowerRollbackBringsAVersionBack(t *testing.T) {
	leader, replica := pickerOf(t, 500_000), pickerOf(t, 500_000)
	bad := replica.Version("c0")
	require.NoError(t, replica.Rollback("c0", "errors here"))
	require.NoError(t, leader.SetWeights(weightsOf(600_000)))
	require.NoError(t, leader.RollbackOver("c0", "seen there", time.Hour))
	for range 2 { // the very same is accepted again
		require.NoError(t, replica.Apply(throughJSON(t, leader.Plan())))
		assert.False(t, slices.Contains(dealt(replica, 101), bad), "it has gone at once here")
		assert.Zero(t, replica.Share("c0"))
	}
	require.NoError(t, leader.Rollback("c0", "enough"))
	require.NoError(t, replica.Apply(throughJSON(t, leader.Plan())))
	require.NoError(t, replica.Plan().Validate())
}

// A fall that is under way here goes on as it is, and is not begun anew.
func TestApply_NoLaterFallBringsUsersBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leader, replica := pickerOf(t, 400_000), pickerOf(t, 400_000)
		require.NoError(t, replica.RollbackOver("c0", "errors here", 10*time.Minute))
		time.Sleep(5 * time.Minute)
		for n := range 3 {
			require.NoError(t, leader.SetWeights(weightsOf(400_000-n)))
		}
		require.NoError(t, leader.RollbackOver("c0", "seen there", 10*time.Minute))
		require.NoError(t, replica.Apply(throughJSON(t, leader.Plan())))
		assert.Equal(t, PPM(200_000), replica.Share("c0"))
		time.Sleep(5 * time.Minute)
		assert.Zero(t, replica.Share("c0"))
	})
}

func TestApply_AnEarlierReadmissionUndoesNoLaterRollback(t *testing.T) {
	leader, replica := pickerOf(t, 10_000), pickerOf(t, 10_000)
	require.NoError(t, leader.Rollback("c0", "the first time"))
	require.NoError(t, leader.Readmit("c0"))
	require.NoError(t, replica.Apply(throughJSON(t, leader.Plan())))
	require.NoError(t, replica.SetWeights(weightsOf(10_000)))
	require.NoError(t, replica.Rollback("c0", "the second time"))
	for n := range 5 { // the leader knows of the first rollback only
		require.NoError(t, leader.SetWeights(weightsOf(500_000+n)))
	}
	for range 2 {
		require.NoError(t, replica.Apply(throughJSON(t, leader.Plan())))
		assert.Zero(t, replica.Share("c0"))
		require.NoError(t, replica.Plan().Validate())
	}
	require.ErrorIs(t, replica.SetWeights(weightsOf(1)), ErrRolledBack)
}

func TestApply_NoPromotionBringsAVersionBack(t *testing.T) {
	leader, replica := pickerOf(t, 1_000_000), pickerOf(t, 1_000_000)
	require.NoError(t, replica.Rollback("c0", "errors here"))
	require.NoError(t, leader.Promote("c0"))
	require.NoError(t, leader.Kill("test"))
	require.ErrorIs(t, replica.Apply(throughJSON(t, leader.Plan())), ErrRolledBack)
	assert.Equal(t, "stable", replica.Stable().Name())
	require.NoError(t, replica.Readmit("c0"))
	require.NoError(t, leader.Revive())
	require.NoError(t, replica.Apply(throughJSON(t, leader.Plan())))
	assert.Equal(t, "c0", replica.Stable().Name())
}

// The wall clock may have jumped on since the fall began, so that by it the version has
// fallen, while picks go by another clock.
func TestRollback_EndsAFallWhateverTheWallClockSays(t *testing.T) {
	p := pickerOf(t, 300_000)
	require.NoError(t, p.RollbackOver("c0", "slow", time.Hour))
	plan := p.Plan()
	require.NoError(t, plan.rollBack("c0", "now", 0, time.Now().Add(2*time.Hour)))
	assert.Zero(t, plan.RolledBack[0].Over)
	assert.Zero(t, plan.RolledBack[0].From)
}

// The machine on which the fall began may have a clock that is ahead.
func TestRollbackOver_LastsNoLongerThanItSays(t *testing.T) {
	for name, at := range map[string]time.Time{
		"two hours ahead": time.Date(2000, 1, 1, 2, 0, 0, 0, time.UTC),
		"centuries ahead": time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leader, replica := pickerOf(t, 400_000, 0), pickerOf(t, 400_000, 0)
				require.NoError(t, leader.RollbackOver("c0", "slow", 10*time.Minute))
				plan := leader.Plan()
				plan.RolledBack[0].At = at
				require.NoError(t, replica.Apply(plan))
				assert.Equal(t, PPM(400_000), replica.Share("c0"))
				time.Sleep(5 * time.Minute)
				assert.Equal(t, PPM(200_000), replica.Share("c0"))
				require.NoError(t, replica.SetWeights(map[string]Weight{"c1": PPM(1)}))
				assert.Equal(t, PPM(200_000), replica.Share("c0"), "another change does not begin it anew")
				time.Sleep(5 * time.Minute)
				assert.Zero(t, replica.Share("c0"))
				assert.False(t, slices.Contains(dealt(replica, 101), replica.Version("c0")))
				require.NoError(t, replica.SetWeights(map[string]Weight{"c1": PPM(2)}))
				assert.Zero(t, replica.Share("c0"))
				assert.False(t, slices.Contains(dealt(replica, 101), replica.Version("c0")))
			})
		})
	}
}

func TestDrain_AsLongAsOneLikes(t *testing.T) {
	p := pickerOf(t, 100_000)
	require.NoError(t, p.Drain("c0", math.MaxInt64))
	assert.Equal(t, Sticky, p.Decide(Input{ID: "u", Sticky: "c0"}).Reason)
	plan := p.Plan()
	plan.Generation++
	plan.Draining[0].Until = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	require.NoError(t, p.Apply(plan))
	assert.Equal(t, Sticky, p.Decide(Input{ID: "u", Sticky: "c0"}).Reason)
}

// Who is rolled back and taken out can be switched off when nothing is under way.
func TestRetired_AlsoWhatWasRolledBack(t *testing.T) {
	p := pickerOf(t, 500_000)
	v := p.Version("c0")
	v.Enter()
	require.NoError(t, p.Rollback("c0", "bad"))
	assert.Empty(t, p.Retired(), "it is in the plan still")
	require.NoError(t, p.Retire("c0"))
	require.Equal(t, []*Version{v}, p.Retired())
	c := p.Config()
	c.Versions = append(c.Versions, VersionConfig{"c0", 0, 0})
	require.NoError(t, p.Update(c))
	assert.Empty(t, p.Retired())
	assert.Same(t, v, p.Version("c0"))
}

// Plans come from elsewhere: none makes a Picker panic, or hold more than a plan should.
func TestPlan_Hostile(t *testing.T) {
	base := func() Plan {
		plan := pickerOf(t, 1000).Plan()
		plan.Generation = 9
		return plan
	}
	many := func(n int) (all []RolledBack) {
		for range n {
			all = append(all, RolledBack{Version: "c0"})
		}
		return all
	}
	long := strings.Repeat("x", 1<<20)
	for says, spoil := range map[string]func(*Plan){
		`RolledBack[1].Version "c0" stands there twice`:         func(p *Plan) { p.Config.Versions[0].Weight, p.RolledBack = 0, many(64) },
		"RolledBack has 100000 entries, more than 64":           func(p *Plan) { p.RolledBack = many(100_000) },
		"Readmitted has 100000 entries, more than 64":           func(p *Plan) { p.Readmitted = make([]Readmitted, 100_000) },
		"Draining has 100000 entries, more than 16":             func(p *Plan) { p.Draining = make([]Draining, 100_000) },
		"100000 Versions are more than 16":                      func(p *Plan) { p.Config.Versions = make([]VersionConfig, 100_000) },
		"Killed has 1048576 bytes, more than 1024":              func(p *Plan) { p.Killed = long },
		"RolledBack[0].Cause has 1048576 bytes, more than 1024": func(p *Plan) { p.RolledBack = []RolledBack{{Version: "x", Cause: long}} },
		"Generation 18446744073709551615 is more than":          func(p *Plan) { p.Generation = math.MaxUint64 },
	} {
		plan := base()
		spoil(&plan)
		p := pickerOf(t, 1000)
		require.NoError(t, p.Retire("c0"))
		err := p.Apply(plan)
		require.ErrorContains(t, err, says)
		assert.Less(t, len(err.Error()), 10_000)
		assert.Equal(t, uint64(2), p.Generation())
	}
}

// What people say of a rollback may be as long as an error is; the plan stays fit to send.
func TestRollback_LongCause(t *testing.T) {
	p := pickerOf(t, 1000, 1000)
	long := strings.Repeat("ä", 1<<16)
	require.NoError(t, p.Rollback("c0", long))
	require.NoError(t, p.Kill(long))
	require.NoError(t, pickerOf(t, 1000, 1000).Apply(throughJSON(t, p.Plan())))
	assert.True(t, strings.HasPrefix(p.Plan().Killed, "ää"))
}

// The plans and tokens of a Group's pickers are as good as others', however long the names.
func TestGroup_LongNames(t *testing.T) {
	name, route := strings.Repeat("n", 128), strings.Repeat("r", 128)
	tokens := sluice.Must(NewTokens([]byte(strings.Repeat("k", 32)), nil))
	g := sluice.Must(NewGroup(name, WithRoute(route, "v1", WithVersion("v2", 0, 0)), WithTokens(tokens)))
	p := g.Get(route)
	require.NoError(t, p.Plan().Validate())
	require.NoError(t, p.Apply(throughJSON(t, p.Plan())))
	text, err := tokens.Sign(Token{Rollout: p.Name(), Version: strings.Repeat("v", 128), Subject: strings.Repeat("s", 128), Expires: time.Now().Add(time.Hour)})
	require.NoError(t, err)
	_, err = tokens.Verify(text, p.Name(), strings.Repeat("s", 128))
	require.NoError(t, err)
}

// A decoder of base64 passes over ends of lines, so one signature would have many texts.
func TestTokens_OneTextForOneToken(t *testing.T) {
	tokens := sluice.Must(NewTokens([]byte(strings.Repeat("k", 32)), nil))
	text := sluice.Must(tokens.Sign(Token{Rollout: "r", Version: "v", Expires: time.Now().Add(time.Hour)}))
	for _, other := range []string{text + "\n", text + "\r\n", text[:len(text)-3] + "\n" + text[len(text)-3:]} {
		_, err := tokens.Verify(other, "r", "")
		require.ErrorIs(t, err, ErrToken, "%q", other)
	}
}
