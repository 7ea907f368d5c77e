package canary

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

func TestRollback(t *testing.T) {
	p := pickerOf(t, 200_000, 100_000)
	bad, other, stable := p.Version("c0"), p.Version("c1"), p.Stable()
	before := dealt(p, 101)
	require.NoError(t, p.Rollback("c0", "error rate"))
	for i, v := range dealt(p, 101) {
		want := before[i]
		if want == bad {
			want = stable
		}
		require.Equal(t, want, v, "its users go to the stable version, and nobody else moves")
	}
	assert.Equal(t, PPM(100_000), p.Share(other.Name()))
	assert.Equal(t, uint64(2), p.Generation())

	require.NoError(t, p.Rollback("c0", "again"), "it is idempotent")
	require.NoError(t, p.RollbackOver("c0", "again", time.Hour))
	assert.Equal(t, uint64(2), p.Generation())
	require.Len(t, p.Plan().RolledBack, 1)
	assert.Equal(t, "error rate", p.Plan().RolledBack[0].Cause, "the first cause stays")

	err := p.SetWeights(map[string]Weight{"c0": PPM(1)})
	require.ErrorIs(t, err, ErrRolledBack, "it is remembered")
	assert.Contains(t, err.Error(), "error rate")
	require.NoError(t, p.SetWeights(map[string]Weight{"c0": 0}))
	require.ErrorIs(t, p.Promote("c0"), ErrRolledBack)
	require.ErrorIs(t, p.Drain("c0", time.Hour), ErrRolledBack)
	c := p.Config()
	c.Versions[0].Weight = PPM(1)
	require.ErrorIs(t, p.Update(c), ErrRolledBack)
	c = p.Config()
	c.Versions, c.Stable = nil, "c0"
	require.ErrorIs(t, p.Update(c), ErrRolledBack)

	require.NoError(t, p.Retire("c0"), "also when it is taken out and comes back")
	c = p.Config()
	c.Versions = append(c.Versions, VersionConfig{"c0", 0, PPM(1)})
	require.ErrorIs(t, p.Update(c), ErrRolledBack)
	c.Versions[1].Weight = 0
	require.NoError(t, p.Update(c))
	require.NoError(t, p.Readmit("c0"))
	require.NoError(t, p.Readmit("c0"))
	assert.Equal(t, Weight(0), p.Share("c0"), "it gets no weight by that")
	require.NoError(t, p.SetWeights(map[string]Weight{"c0": PPM(200_000)}))
	assert.Equal(t, before, dealt(p, 101), "and then has the same users")

	require.ErrorIs(t, p.Rollback("stable", ""), ErrStable)
	require.ErrorIs(t, p.Rollback("c9", ""), ErrUnknownVersion)
}

func TestRollbackOver_FallsInAStraightLine(t *testing.T) {
	for lane := range 4 {
		t.Run(fmt.Sprint("lane ", lane), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := sluice.Must(New("rollout", "stable", WithVersion("bad", lane, PPM(200_000)), WithVersion("good", lane^1, PPM(100_000))))
				bad := p.Version("bad")
				counts := func() (n int) {
					for _, v := range dealt(p, 100) {
						if v == bad {
							n++
						}
					}
					return n
				}
				before := dealt(p, 100)
				require.NoError(t, p.RollbackOver("bad", "cold", 10*time.Minute))
				assert.Equal(t, Split, p.Decide(Input{ID: "u", Override: "bad", Authorized: true}).Reason, "wishes end at once")
				last := before
				for minute := range 11 {
					assert.Equal(t, 2000-200*minute, counts())
					assert.Equal(t, PPM(200_000-20_000*minute), p.Share("bad"))
					assert.Equal(t, All, p.Share("bad")+p.Share("good")+p.Share("stable"))
					now := dealt(p, 100)
					// Those furthest from the anchor leave first: it is as if the weight were lowered.
					lowered := sluice.Must(New("rollout", "stable", WithVersion("bad", lane, PPM(200_000-20_000*minute)), WithVersion("good", lane^1, PPM(100_000))))
					for i, v := range dealt(lowered, 100) {
						require.Equal(t, v.Name(), now[i].Name())
					}
					for i, v := range now {
						if v == bad {
							require.Equal(t, bad, last[i], "nobody comes back")
						} else if before[i] != bad {
							require.Equal(t, before[i], v)
						}
					}
					last = now
					time.Sleep(time.Minute)
				}
				assert.Equal(t, PPM(100_000), p.Share("good"))
			})
		})
	}
}

func TestRollbackOver_MayBeCutShort(t *testing.T) {
	for name, end := range map[string]func(*Picker) error{
		"by a rollback":  func(p *Picker) error { return p.Rollback("c0", "now") },
		"by readmission": func(p *Picker) error { return p.Readmit("c0") },
		"by retirement":  func(p *Picker) error { return p.Retire("c0") },
		"by a kill":      func(p *Picker) error { return p.Kill("now") },
	} {
		t.Run(name, func(t *testing.T) {
			p := pickerOf(t, 300_000)
			bad := p.Version("c0")
			require.NoError(t, p.RollbackOver("c0", "slow", 24*time.Hour))
			assert.Contains(t, dealt(p, 1001), bad)
			require.NoError(t, end(p))
			assert.NotContains(t, dealt(p, 1001), bad)
			assert.Equal(t, All, p.Share("stable"))
		})
	}
	require.Error(t, pickerOf(t, 1).RollbackOver("c0", "", -1))
}

// A replica, or the process after a restart, sees the fall where it is.
func TestRollbackOver_IsTheSameForReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pickerOf(t, 400_000), pickerOf(t)
		require.NoError(t, a.RollbackOver("c0", "slow", 40*time.Minute))
		time.Sleep(10 * time.Minute)
		require.NoError(t, b.Apply(throughJSON(t, a.Plan())))
		assert.Equal(t, PPM(300_000), b.Share("c0"))
		for i, v := range dealt(a, 500) {
			require.Equal(t, v.Name(), dealt(b, 500)[i].Name())
		}
		time.Sleep(30 * time.Minute)
		assert.Equal(t, Weight(0), b.Share("c0"))
		require.NoError(t, b.Readmit("c0"))
	})
}

func TestPromote(t *testing.T) {
	t.Run("at the end nobody moves", func(t *testing.T) {
		p := pickerOf(t, 1_000_000)
		before := dealt(p, 101)
		require.NoError(t, p.Promote("c0"))
		assert.Equal(t, before, dealt(p, 101))
		assert.Equal(t, "c0", p.Stable().Name())
		require.Len(t, p.Retired(), 1)
		assert.Equal(t, "stable", p.Retired()[0].Name())
		assert.Equal(t, "rollout/c0", p.Plan().Salt, "the next rollout begins with others")
	})
	t.Run("before, the old version's users do", func(t *testing.T) {
		p := pickerOf(t, 600_000, 100_000)
		before, old := dealt(p, 101), p.Stable()
		require.NoError(t, p.Promote("c0"))
		for i, v := range dealt(p, 101) {
			want := before[i]
			if want == old {
				want = p.Version("c0")
			}
			require.Equal(t, want, v, "nobody on it moves, nor on another")
		}
		assert.Equal(t, "rollout/stable", p.Plan().Salt, "the salt stays while another version needs it")
	})
	t.Run("not all versions can", func(t *testing.T) {
		p := pickerOf(t, 1)
		require.ErrorIs(t, p.Promote("c9"), ErrUnknownVersion)
		require.NoError(t, p.Promote("stable"))
		assert.Equal(t, uint64(1), p.Generation())
	})
	t.Run("a salt that was given stays", func(t *testing.T) {
		p := sluice.Must(New("rollout", "v1", WithSalt("suite"), WithVersion("v2", 0, All)))
		require.NoError(t, p.Promote("v2"))
		assert.Equal(t, "suite", p.Plan().Salt)
	})
}

func TestRetireAndInFlight(t *testing.T) {
	p := pickerOf(t, 500_000)
	v := p.Version("c0")
	v.Enter()
	v.Enter()
	v.Leave()
	require.NoError(t, p.Retire("c0"))
	require.NoError(t, p.Retire("c0"), "it is idempotent")
	assert.Equal(t, uint64(2), p.Generation())
	require.Equal(t, []*Version{v}, p.Retired())
	assert.Equal(t, int64(1), p.Retired()[0].InFlight(), "a request keeps what it had")
	v.Leave()
	assert.Zero(t, p.Snapshot().Retired[0].InFlight)
	require.ErrorIs(t, p.Retire("stable"), ErrStable)
	require.ErrorIs(t, p.Retire("c9"), ErrUnknownVersion)
	require.ErrorIs(t, p.Drain("c9", 1), ErrUnknownVersion)
	require.ErrorIs(t, p.Drain("stable", 1), ErrStable)
	require.Error(t, p.Drain("c0", 0))

	c := p.Config()
	c.Versions = []VersionConfig{{"c0", 0, PPM(5)}}
	require.NoError(t, p.Update(c))
	assert.Same(t, v, p.Version("c0"), "the same object when it comes back")
	assert.Empty(t, p.Retired())
}

// What is under way in a version can be seen until it has ended, also when it was rolled
// back before.
func TestRetire_ShowsWhatWasRolledBack(t *testing.T) {
	for name, rollback := range map[string]func(*Picker) error{
		"at once": func(p *Picker) error { return p.Rollback("c0", "bad") },
		"slowly":  func(p *Picker) error { return p.RollbackOver("c0", "bad", time.Hour) },
	} {
		p := pickerOf(t, 500_000)
		v := p.Version("c0")
		v.Enter()
		require.NoError(t, rollback(p))
		assert.Empty(t, p.Retired(), name)
		require.NoError(t, p.Retire("c0"))
		require.Equal(t, []*Version{v}, p.Retired(), name)
		assert.Equal(t, int64(1), p.Snapshot().Retired[0].InFlight)
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	p := pickerOf(t)
	for i := range 300 {
		c := p.Config()
		c.Versions = []VersionConfig{{fmt.Sprint("r", i), 0, PPM(1000)}}
		require.NoError(t, p.Update(c))
		if i%2 == 0 {
			require.NoError(t, p.Rollback(fmt.Sprint("r", i), "bad"))
		}
		if i%3 == 0 {
			require.NoError(t, p.Readmit(fmt.Sprint("r", i)))
		}
	}
	plan := p.Plan()
	assert.LessOrEqual(t, len(plan.RolledBack), maxRemembered)
	assert.LessOrEqual(t, len(plan.Readmitted), maxRemembered)
	assert.Equal(t, "r298", plan.RolledBack[len(plan.RolledBack)-1].Version, "the newest are kept")
	assert.Len(t, p.Retired(), maxRemembered)
	assert.LessOrEqual(t, len(p.known), 2*maxRemembered+MaxLanes+1)
	require.NoError(t, plan.Validate())
}
