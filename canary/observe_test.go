package canary

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

// collected is what a picker shows, by family and labels.
func collected(t *testing.T, src metrics.Source) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	src.Collect(func(s metrics.Sample) bool {
		require.NoError(t, s.Desc.Validate())
		require.Len(t, s.Labels, len(s.Desc.Labels))
		key := s.Desc.Name
		for _, label := range s.Labels {
			key += " " + label
		}
		require.NotContains(t, all, key, "each once")
		all[key] = s.Value
		return true
	})
	return all
}

func TestCollect(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(25)), WithVersion("v3", 1, 0)))
	inside, outside := userIn(t, p, "v2"), userIn(t, p, "v1")
	before := collected(t, p)
	p.Decide(Input{ID: inside, Source: FromUser})
	p.Decide(Input{ID: inside, Source: FromDevice})
	p.Decide(Input{ID: outside, Source: FromUser})
	p.Decide(Input{ID: outside})
	p.Decide(Input{ID: outside, Source: Source(77)})
	p.Decide(Input{ID: outside, Override: "v3", Authorized: true})
	p.Decide(Input{ID: outside, Sticky: "v2"})
	p.Decide(Input{ID: outside, Target: "v2"})
	p.Decide(Input{ID: outside, Override: "v2"})
	p.Version("v3").Enter()
	after := collected(t, p)
	for key, want := range map[string]float64{
		"canary_requests shop v1 split": 4, "canary_requests shop v2 split": 2, "canary_requests shop v3 override": 1,
		"canary_requests shop v2 sticky": 1, "canary_requests shop v2 targeting_match": 1, "canary_requests shop v1 killed": 0,
		"canary_identities shop user": 2, "canary_identities shop device": 1, "canary_identities shop issued": 0,
		"canary_ignored_wishes shop override unauthorized": 1, "canary_ignored_wishes shop override rolled_back": 0,
	} {
		require.Contains(t, after, key)
		assert.Equal(t, want, after[key]-before[key], key)
	}
	assert.Equal(t, 0.25, after["canary_share_ratio shop v2"])
	assert.Equal(t, 0.75, after["canary_share_ratio shop v1"])
	assert.Equal(t, 1.0, after["canary_generation shop"])
	assert.Equal(t, 1.0, after["canary_in_flight shop v3"])

	require.NoError(t, p.Kill("incident"))
	p.Decide(Input{ID: inside})
	p.Pick(inside)
	p.PickRandom()
	killed := collected(t, p)
	assert.Equal(t, 1.0, killed["canary_killed shop"])
	assert.Equal(t, 3.0, killed["canary_requests shop v1 killed"])
	assert.Equal(t, 0.0, killed["canary_share_ratio shop v2"])

	require.NoError(t, p.Retire("v3"))
	assert.Equal(t, 1.0, collected(t, p)["canary_in_flight shop v3"], "what is under way in a retired version is seen")
	n := 0
	p.Collect(func(metrics.Sample) bool { n++; return n < 5 })
	assert.Equal(t, 5, n, "it stops when it is told to")
	var set metrics.Set
	require.NoError(t, set.Add("shop", p))
	assert.IsType(t, Snapshot{}, p.View())
}

func TestWithoutCounts(t *testing.T) {
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(25)), WithoutCounts()))
	p.Pick("a")
	p.PickRandom()
	assert.Equal(t, Split, p.Decide(Input{ID: "a"}).Reason)
	assert.Equal(t, Sticky, p.Decide(Input{ID: "a", Sticky: "v2"}).Reason)
	for _, v := range p.Snapshot().Versions {
		for reason, n := range v.Requests {
			assert.Zero(t, n, reason)
		}
	}
}

// Identities are a sum over all versions that there ever were, and never goes down,
// whatever is forgotten.
func TestIdentitiesNeverGoDown(t *testing.T) {
	p := pickerOf(t)
	last := uint64(0)
	for i := range maxRemembered + 20 {
		c := p.Config()
		c.Versions = []VersionConfig{{canary(i), 0, All}}
		require.NoError(t, p.Update(c))
		p.Decide(Input{ID: "alice", Source: FromUser})
		now := p.identified(FromUser, p.Snapshot())
		require.Equal(t, last+1, now)
		last = now
	}
}

func TestSnapshot_JSON(t *testing.T) {
	p := pickerOf(t, 100_000, 50_000)
	require.NoError(t, p.Rollback("c0", "too many errors"))
	require.NoError(t, p.Drain("c1", 1<<40))
	require.NoError(t, p.Retire("c1"))
	text, err := json.Marshal(p.Snapshot())
	require.NoError(t, err)
	for _, says := range []string{
		`"name":"rollout","generation":4,"salt":"rollout/stable","killed":""`, `"rolled_back":"too many errors"`,
		`"intervals":[{"from":0,"to":1000000,"version":"stable"}]`, `"retired":[{"name":"c1","lane":-1`, `"override/unauthorized":0`,
	} {
		assert.Contains(t, string(text), says)
	}
}

func TestWithOnChange(t *testing.T) {
	var got []Change
	var p *Picker
	p = sluice.Must(New("shop", "v1", WithVersion("v2", 0, 0),
		WithOnChange(func(c Change) {
			got = append(got, c)
			assert.GreaterOrEqual(t, p.Generation(), c.Generation, "it is in force, and the picker may be asked")
			if c.Action == ActionSetWeights && c.Generation == 2 {
				assert.NoError(t, p.SetWeights(map[string]Weight{"v2": Percent(10)}), "and changed")
			}
		}),
		WithOnChange(func(Change) { panic("a listener fails") }),
		WithOnChange(func(Change) { runtime.Goexit() }),
		WithOnChange(func(c Change) { got = append(got, c) })))
	var caller sync.WaitGroup
	caller.Go(func() { assert.NoError(t, p.SetWeights(map[string]Weight{"v2": Percent(5)})) })
	caller.Wait()
	caller.Go(func() { assert.NoError(t, p.Rollback("v2", "errors")) })
	caller.Wait()
	require.Len(t, got, 6, "each listener hears of each change, whatever others do")
	for i, want := range []struct {
		generation uint64
		action     Action
		moved      string
	}{{2, ActionSetWeights, "v1→v2 5%"}, {3, ActionSetWeights, "v1→v2 5%"}, {4, ActionRollback, "v2→v1 10%"}} {
		for _, c := range got[2*i : 2*i+2] {
			assert.Equal(t, "shop", c.Name)
			assert.Equal(t, want.generation, c.Generation)
			assert.Equal(t, want.generation, c.Plan.Generation)
			assert.Equal(t, want.action, c.Action)
			assert.Equal(t, want.moved, c.Diff.String())
			assert.False(t, c.Time.IsZero())
		}
	}
	assert.Equal(t, "errors", got[5].Cause)
	assert.Equal(t, "v2", got[5].Version)
	assert.Equal(t, uint64(3), p.Snapshot().Panics)
	assert.Equal(t, 3.0, collected(t, p)["listener_panics shop"])
}

func TestWithLogger(t *testing.T) {
	var out bytes.Buffer
	l := slog.New(slog.NewJSONHandler(&out, nil))
	p := sluice.Must(New("shop", "v1", WithVersion("v2", 0, Percent(5)), WithLogger(l), WithOnChange(func(Change) { panic("boom") })))
	require.NoError(t, p.SetWeights(map[string]Weight{"v2": Percent(6)}))
	assert.Contains(t, out.String(), `"level":"INFO","msg":"canary: plan changed","sluice":{"resource":"shop","action":"set_weights","generation":2,"moved":"v1→v2 1%"}`)
	assert.Contains(t, out.String(), `"canary: a listener panicked","sluice":{"resource":"shop","panic":"boom"}`)
	out.Reset()
	require.NoError(t, p.Rollback("v2", "e-value 1200"))
	assert.Contains(t, out.String(), `"level":"WARN"`)
	assert.Contains(t, out.String(), `"version":"v2","cause":"e-value 1200"`)
}
