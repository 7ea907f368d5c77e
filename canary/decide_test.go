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

// userIn returns an identity that p gives to version.
func userIn(t testing.TB, p *Picker, version string) string {
	t.Helper()
	for i := range 100_000 {
		if id := fmt.Sprint("user-", i); p.Pick(id).Name() == version {
			return id
		}
	}
	require.Fail(t, "nobody is in "+version)
	return ""
}

func TestDecide_Precedence(t *testing.T) {
	targeting := ""
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(20)), WithVersion("v3", 1, Percent(10)),
		WithVersion("dark", 2, 0), WithVersion("bad", 3, Percent(5)), WithTargeting(func(Input) string { return targeting })))
	require.NoError(t, p.Rollback("bad", "errors"))
	id := userIn(t, p, "v1")
	for _, c := range []struct {
		name    string
		in      Input
		rule    string
		want    string
		reason  Reason
		ignored string
	}{
		{"hash", Input{ID: id}, "", "v1", Split, ""},
		{"a stored assignment beats the hash", Input{ID: id, Sticky: "v2"}, "", "v2", Sticky, ""},
		{"one to the stable version too", Input{ID: userIn(t, p, "v2"), Sticky: "v1"}, "", "v1", Sticky, ""},
		{"not one to a version without weight", Input{ID: id, Sticky: "dark"}, "", "v1", Split, "sticky/no_weight"},
		{"nor to one rolled back", Input{ID: id, Sticky: "bad"}, "", "v1", Split, "sticky/rolled_back"},
		{"nor to one that is not there", Input{ID: id, Sticky: "v0"}, "", "v1", Split, "sticky/unknown_version"},
		{"a rule beats it", Input{ID: id, Sticky: "v2"}, "v3", "v3", Targeted, ""},
		{"a target beats the rule", Input{ID: id, Target: "dark"}, "v3", "dark", Targeted, ""},
		{"a rule may deny", Input{ID: userIn(t, p, "v2")}, "v1", "v1", Targeted, ""},
		{"a rule for what was rolled back", Input{ID: id, Sticky: "v2"}, "bad", "v2", Sticky, "target/rolled_back"},
		{"a rule for what is not there", Input{ID: id}, "v9", "v1", Split, "target/unknown_version"},
		{"an override beats the rule", Input{ID: id, Override: "v2", Authorized: true}, "v3", "v2", Override, ""},
		{"a version without weight can be tried", Input{ID: id, Override: "dark", Authorized: true}, "", "dark", Override, ""},
		{"not without leave", Input{ID: id, Override: "v2"}, "", "v1", Split, "override/unauthorized"},
		{"nor one that was rolled back", Input{ID: id, Override: "bad", Authorized: true}, "", "v1", Split, "override/rolled_back"},
		{"nor one that is not there", Input{ID: id, Override: "v9", Authorized: true}, "v3", "v3", Targeted, "override/unknown_version"},
		{"nor with a token that nobody checks", Input{ID: id, Token: "v1.x", Override: "v2", Authorized: true}, "", "v1", Split, "override/bad_token"},
		{"always", Input{ID: id, Override: "always", Authorized: true}, "", "v2", Override, ""},
		{"never", Input{ID: userIn(t, p, "v2"), Override: "never", Authorized: true}, "", "v1", Override, ""},
		{"leave without a wish", Input{ID: id, Authorized: true}, "", "v1", Split, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			targeting = c.rule
			before := p.Snapshot().Ignored
			d := p.Decide(c.in)
			assert.Equal(t, c.want, d.Version.Name())
			assert.Equal(t, c.reason, d.Reason)
			assert.Equal(t, HashPoint("shop/v1", c.in.ID), d.Point)
			assert.Equal(t, p.Generation(), d.Generation)
			assert.Equal(t, c.reason == Split, d.Judged())
			for wish, n := range p.Snapshot().Ignored {
				want := before[wish]
				if wish == c.ignored {
					want++
				}
				assert.Equal(t, want, n, wish)
			}
		})
	}
	targeting = ""

	require.NoError(t, p.Kill("incident 7"))
	for _, in := range []Input{
		{ID: userIn(t, p, "v1")}, {}, {ID: "x", Sticky: "v2"}, {ID: "x", Target: "v2"}, {ID: "x", Override: "v2", Authorized: true},
	} {
		d := p.Decide(in)
		assert.Equal(t, "v1", d.Version.Name(), "Kill beats everything: %+v", in)
		assert.Equal(t, Killed, d.Reason)
		assert.False(t, d.Judged())
	}
	assert.Equal(t, "v1", p.PickRandom().Name())
	assert.Equal(t, All, p.Share("v1"))
	assert.Equal(t, Weight(0), p.Share("v2"))
	require.NoError(t, p.Revive())
	assert.Equal(t, Percent(20), p.Share("v2"), "the weights were kept")
}

func TestDecide_WithoutIdentity(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(50))))
	seen := map[string]bool{}
	for range 200 {
		d := p.Decide(Input{})
		assert.Equal(t, Random, d.Reason)
		assert.True(t, d.Judged())
		assert.Equal(t, d.Point < 500_000, d.Version.Name() == "v2", "chance throws a point of the same space")
		seen[d.Version.Name()] = true
		seen["Pick "+p.Pick("").Name()] = true
	}
	assert.Len(t, seen, 4, "an empty id is nobody, and not one user more")

	p = sluice.Must(New("shop", "v1", WithVersion("v2", 0, All), WithNoIdentity(StableVersion)))
	d := p.Decide(Input{})
	assert.Equal(t, Default, d.Reason)
	assert.Equal(t, "v1", d.Version.Name())
	assert.Equal(t, "v1", p.Pick("").Name())
	assert.Equal(t, "v2", p.PickRandom().Name(), "whoever asks for chance gets it")
	assert.Equal(t, "v2", p.Decide(Input{ID: "u"}).Version.Name())
}

func TestDecide_AlwaysIsTheFirstThatIsNotRolledBack(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v3", 4, Percent(10)), WithVersion("v2", 1, Percent(10))))
	always := Input{ID: "u", Override: "always", Authorized: true}
	assert.Equal(t, "v2", p.Decide(always).Version.Name(), "the lowest lane")
	require.NoError(t, p.Rollback("v2", ""))
	assert.Equal(t, "v3", p.Decide(always).Version.Name())
	require.NoError(t, p.Rollback("v3", ""))
	assert.Equal(t, Split, p.Decide(always).Reason)

	p = sluice.Must(New("shop", "v1", WithVersion("never", 0, 0)))
	assert.Equal(t, "never", p.Decide(Input{Override: "never", Authorized: true}).Version.Name(), "a version of that name comes first")
}

func TestDecide_DrainingHonoursStoredAssignments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(30))))
		id := userIn(t, p, "v2")
		require.NoError(t, p.Drain("v2", time.Hour))
		assert.Equal(t, "v1", p.Decide(Input{ID: id}).Version.Name(), "nobody new")
		assert.Equal(t, Weight(0), p.Share("v2"))
		time.Sleep(time.Hour - 1)
		d := p.Decide(Input{ID: id, Sticky: "v2"})
		assert.Equal(t, "v2", d.Version.Name())
		assert.Equal(t, Sticky, d.Reason)
		time.Sleep(time.Nanosecond)
		assert.Equal(t, "v1", p.Decide(Input{ID: id, Sticky: "v2"}).Version.Name(), "its time is over")

		require.NoError(t, p.Drain("v2", time.Hour))
		require.NoError(t, p.Rollback("v2", "errors"))
		assert.Equal(t, "v1", p.Decide(Input{ID: id, Sticky: "v2"}).Version.Name(), "a rollback beats stickiness")
		assert.Empty(t, p.Plan().Draining)
	})
}

func TestDecide_ANilPickerHasNoOpinion(t *testing.T) {
	var p *Picker
	assert.Equal(t, Decision{}, p.Decide(Input{ID: "u", Override: "v2", Authorized: true}))
	assert.Equal(t, "disabled", p.Decide(Input{}).Reason.String())
	assert.False(t, p.Decide(Input{}).Judged())
	v := p.Pick("u")
	assert.Nil(t, v)
	assert.Nil(t, p.PickRandom())
	assert.Empty(t, v.Name()+v.String()+p.Name())
	v.Enter()
	v.Leave()
	assert.Zero(t, v.InFlight())
	assert.Nil(t, p.Stable())
	assert.Nil(t, p.Version("v1"))
	assert.Nil(t, p.Retired())
	assert.Zero(t, p.Share("v1"))
	assert.Zero(t, p.Generation())
	assert.Equal(t, Config{}, p.Config())
	assert.Equal(t, Plan{}, p.Plan())
	assert.Equal(t, Snapshot{}, p.Snapshot())
	p.Collect(nil)
	for _, err := range []error{
		p.SetWeights(nil), p.Rollback("v2", ""), p.RollbackOver("v2", "", time.Second), p.Readmit("v2"), p.Promote("v2"),
		p.Retire("v2"), p.Drain("v2", time.Second), p.Kill(""), p.Revive(), p.Update(Config{Stable: "v1", HashSpec: 1, NoIdentity: RandomVersion}),
	} {
		assert.NoError(t, err)
	}
	_, err := p.Preview(nil)
	assert.NoError(t, err)
}

func TestReasonAndSourceText(t *testing.T) {
	for r, want := range map[Reason]string{
		0: "disabled", Killed: "killed", Override: "override", Targeted: "targeting_match", Sticky: "sticky",
		Split: "split", Random: "random", Default: "default", 99: "Reason(99)",
	} {
		text, err := r.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
	for s, want := range map[Source]string{
		0: "unspecified", FromUser: "user", FromDevice: "device", FromLink: "link", FromAddress: "address", Issued: "issued", 99: "Source(99)",
	} {
		text, err := s.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
	for a, want := range map[Action]string{ActionSetWeights: "set_weights", ActionApply: "apply", 0: "Action(0)", 99: "Action(99)"} {
		text, err := a.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
