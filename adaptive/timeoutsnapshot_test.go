package adaptive

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/metrics"
)

func TestSnapshot(t *testing.T) {
	client := newClient(t, 1, lognormal(20*ms, 0.5), ours)
	client.load(100)
	client.world.run(time.Minute)
	s := client.timeout.snapshot(client.world.now)
	assert.Equal(t, "backend", s.Name)
	assert.Equal(t, client.timeout.Value(), s.Limit)
	assert.Equal(t, []time.Duration{10 * ms, 5 * time.Second}, []time.Duration{s.Base, s.Max})
	assert.Equal(t, Resolved, s.State)
	assert.Equal(t, "FalseTimeouts(0.001)", s.Rule)
	for got, want := range map[time.Duration]time.Duration{ // of the lognormal distribution
		s.Took.P50: 20 * ms, s.Took.P95: 45520 * time.Microsecond, s.Took.P99: 64 * ms, s.Took.P999: 94 * ms, s.Median: 20 * ms,
	} {
		assert.InEpsilon(t, float64(want), float64(got), 0.2)
	}
	assert.InDelta(t, 6000, s.Took.Calls, 500)
	assert.InDelta(t, 6000, s.Totals.Finished, 500)
	data, err := json.Marshal(client.timeout.View())
	require.NoError(t, err)
	assert.Contains(t, string(data), `"state":"resolved"`)
}

// Every sample is described and named after its Timeout; a counter never goes down,
// also when another estimator takes over.
func TestCollect(t *testing.T) {
	to := build(t)
	last := map[string]float64{}
	collect := func() map[string]float64 {
		got := map[string]float64{}
		to.Collect(func(s metrics.Sample) bool {
			require.NoError(t, s.Desc.Validate())
			require.Len(t, s.Labels, len(s.Desc.Labels), s.Desc.Name)
			require.Equal(t, "backend", s.Labels[0])
			name := strings.Join(append([]string{s.Desc.Name}, s.Labels[1:]...), " ")
			require.NotContains(t, got, name, "twice")
			got[name] = s.Value
			if s.Desc.Kind == metrics.Counter {
				require.GreaterOrEqual(t, s.Value, last[name], name)
			}
			return true
		})
		last = got
		return got
	}
	collect()
	calls(t, to, at(0), 30, 20*ms)
	cuts(t, to, at(time.Second), 2)
	end := func(err error) {
		a, beginErr := to.begin(t.Context(), at(2*time.Second))
		require.NoError(t, beginErr)
		a.done(at(2*time.Second), err)
	}
	end(errRefused)
	end(timeoutError)
	collect()
	update(t, to, func(c *TimeoutConfig) { c.Rule = RFC6298() })
	calls(t, to, at(3*time.Second), 1, 20*ms)
	got := collect()
	for name, want := range map[string]float64{
		"timeout_calls finished": 31, "timeout_calls timed_out": 2, "timeout_calls cut_short": 1, "timeout_calls failed": 1,
		"timeout_calls throttled": 0, "timeout_calls ignored": 0, "timeout_probes": 0, "rejected timeout deadline_too_short": 0,
		"timeout_state resolved": 1, "timeout_state cold": 0, "timeout_state unresolved": 0, "timeout_state outage": 0,
		"timeout_limit_seconds": to.Value().Seconds(),
	} {
		assert.InDelta(t, want, got[name], 1e-9, name)
	}
	n := 0
	to.Collect(func(metrics.Sample) bool { n++; return false })
	assert.Equal(t, 1, n, "a reader that has enough")

	to = sluice100(t)
	quantiles := 0
	to.Collect(func(s metrics.Sample) bool {
		if s.Desc.Name == "timeout_quantile_seconds" {
			quantiles++
		}
		return quantiles < 2
	})
	assert.Equal(t, 2, quantiles)
}

// sluice100 is one by the real clock, with 100 calls.
func sluice100(t *testing.T) *Timeout {
	t.Helper()
	to, err := NewTimeout("real", ms, time.Second)
	require.NoError(t, err)
	for range 100 {
		require.NoError(t, to.Do(t.Context(), nothingToDo))
	}
	return to
}
