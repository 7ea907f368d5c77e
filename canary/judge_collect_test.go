package canary

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/metrics"
)

// sampled are all samples of a source by family and labels; each is checked.
func sampled(t *testing.T, s metrics.Source) map[string]float64 {
	t.Helper()
	got := map[string]float64{}
	s.Collect(func(m metrics.Sample) bool {
		assert.NoError(t, m.Desc.Validate())
		assert.Len(t, m.Labels, len(m.Desc.Labels), m.Desc.Name)
		assert.False(t, math.IsNaN(m.Value) || math.IsInf(m.Value, 0), m.Desc.Name)
		key := m.Desc.Name
		for _, l := range m.Labels[1:] {
			key += " " + l
		}
		assert.NotContains(t, got, key)
		got[key] = m.Value
		return true
	})
	for stop := range len(got) {
		seen := 0
		s.Collect(func(metrics.Sample) bool { seen++; return seen <= stop })
		assert.Equal(t, stop+1, seen, "it ends when it is told to")
	}
	_, err := json.Marshal(s.View())
	require.NoError(t, err)
	return got
}

func TestCollect_Judge(t *testing.T) {
	r := newRollout(t)
	assert.Equal(t, map[string]float64{"canary_judge_strays": 0}, sampled(t, r.j))
	require.NoError(t, r.start("v2"))
	sampled(t, r.j) // before anything was seen, and all bounds are infinite
	r.serve(10_000, map[string]float64{"v2": 1})
	got := sampled(t, r.j)
	assert.EqualValues(t, 1, got["canary_judge_verdict fail"])
	assert.Zero(t, got["canary_judge_verdict pass"])
	assert.Greater(t, got["canary_judge_e_value errors"], 1000.0)
	assert.InDelta(t, 100, got["canary_judge_users v2"], 30)
	assert.InDelta(t, 9900, got["canary_judge_users v1"], 200)
	assert.InDelta(t, 100, got["canary_judge_failing_users v2 errors"], 30)
	assert.Zero(t, got["canary_judge_failing_users v1 panics"])
	assert.Less(t, got["canary_judge_sample_e_value"], 1000.0)
	assert.Len(t, got, 1+4+1+2+9)
}

func TestCollect_Controller(t *testing.T) {
	r := newRollout(t)
	assert.EqualValues(t, 1, sampled(t, r.c)["canary_ramp_state idle"])
	require.NoError(t, r.start("v2"))
	r.healthy()
	got := sampled(t, r.c)
	assert.EqualValues(t, 1, got["canary_ramp_state ramping"])
	assert.EqualValues(t, 0.1, got["canary_ramp_weight_ratio"])
	assert.EqualValues(t, 1, got["canary_ramp_starts"])
	assert.EqualValues(t, 1, got["canary_ramp_steps"])
	r.pass(time.Hour)
	assert.EqualValues(t, 1, sampled(t, r.c)["canary_ramp_stuck"])
	require.NoError(t, r.c.Abort("x"))
	got = sampled(t, r.c)
	assert.EqualValues(t, 1, got["canary_ramp_state rolled_back"])
	assert.EqualValues(t, 1, got["canary_ramp_rollbacks"])
	assert.Len(t, got, 6+7)
}

func TestCollect_Upstreams(t *testing.T) {
	u := upstreamsOf(t, WithUpstreams("a", "b"))
	require.NoError(t, u.MarkDown("b"))
	lease, err := u.Acquire("x")
	require.NoError(t, err)
	got := sampled(t, u)
	assert.EqualValues(t, 1, got["upstream_requests a"])
	assert.EqualValues(t, 1, got["upstream_in_flight a"])
	assert.EqualValues(t, 1, got["upstream_serves a"])
	assert.Zero(t, got["upstream_serves b"])
	lease.Done()
	require.NoError(t, u.MarkDown("a"))
	_, err = u.Acquire("x")
	require.Error(t, err)
	assert.EqualValues(t, 1, sampled(t, u)["rejected upstreams none"])
	assert.Len(t, got, 1+2*4)
}
