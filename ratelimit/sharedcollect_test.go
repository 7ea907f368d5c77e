package ratelimit

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/metrics"
)

// figuresOf returns what a source shows, by name and labels.
func figuresOf(t *testing.T, s metrics.Source) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for m := range s.Collect {
		require.NoError(t, m.Desc.Validate())
		require.Len(t, m.Labels, len(m.Desc.Labels))
		name := m.Desc.Name + " " + strings.Join(m.Labels, " ")
		require.NotContains(t, all, name)
		all[name] = m.Value
	}
	return all
}

func TestShared_Collect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerHour(10)), WithStrict(), WithNodes(2), WithFailure(FailClosed))
		s := f.nodes[0]
		s.Refund(s.Take(3))
		s.Take(8)
		s.Take(8)
		s.Take(8)
		s.Take(11)
		s.Take(-1)
		f.fail()
		s.Allow()
		time.Sleep(500 * time.Millisecond)
		all := figuresOf(t, s)
		for name, want := range map[string]float64{
			"ratelimit_admitted api shared":         2,
			"ratelimit_tokens api shared":           11,
			"ratelimit_refunds api shared":          1,
			"ratelimit_capacity api shared":         10,
			"ratelimit_waiting api shared":          0,
			"rejected api shared limited":           2,
			"rejected api shared exceeds_capacity":  1,
			"rejected api shared invalid":           1,
			"ratelimit_store_calls api refund":      1,
			"ratelimit_store_denials api":           1,
			"ratelimit_mode api shared":             0,
			"ratelimit_mode api fallback":           1,
			"ratelimit_fallbacks api":               1,
			"ratelimit_fallback_seconds api":        0.5,
			"ratelimit_nodes api":                   2,
			"ratelimit_store_failures api failed":   5,
			"ratelimit_store_failures api rejected": 0,
			"ratelimit_lease_held api":              0,
			"ratelimit_owed api":                    0,
			"ratelimit_store_remaining api":         2,
			"ratelimit_tokens_lost api":             0,
			"events_dropped api":                    0,
			"ratelimit_store_waits api":             all["ratelimit_store_calls api take"],
			"ratelimit_fallback_decisions api":      all["rejected api shared store"],
		} {
			require.Contains(t, all, name)
			assert.Equal(t, want, all[name], name)
		}
		view, err := json.Marshal(s.View())
		require.NoError(t, err)
		for _, part := range []string{`"threshold":"global 10/h"`, `"mode":"fallback"`, `"cause":"connection refused"`, `"local_rate":"10/2h0m0s"`, `"remaining":2`} {
			assert.Contains(t, string(view), part)
		}
		set := new(metrics.Set)
		require.NoError(t, set.Add("api", s))
	})
}

func TestSharedGroup_Collect(t *testing.T) {
	g := newGroup(t, newWire(t), Global(PerHour(10)))
	for _, key := range []string{"ann", "bob", "ann"} {
		g.Get(key).Allow()
	}
	all := figuresOf(t, g)
	assert.Equal(t, 3.0, all["ratelimit_admitted users shared"])
	assert.Equal(t, 2.0, all["group_keys users"])
	assert.Equal(t, 0.0, all["group_overflows users"])
	view, err := json.Marshal(g.View())
	require.NoError(t, err)
	assert.Contains(t, string(view), `"keys":2`)
	for range g.Collect {
		break
	}
	for range g.Get("ann").Collect {
		break
	}
}

func TestModeLogger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		f := newStill(t, 1, Global(PerHour(10)), WithModeLogger(slog.New(slog.NewTextHandler(&log, nil))))
		f.fail()
		f.wire.down.Store(false)
		time.Sleep(time.Second)
		f.nodes[0].AllowN(9)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		require.Len(t, lines, 2)
		assert.Contains(t, lines[0], `level=WARN msg="ratelimit: mode changed" sluice.resource=api sluice.from=shared sluice.to=fallback sluice.cause="connection refused"`)
		assert.Contains(t, lines[1], `level=INFO msg="ratelimit: mode changed" sluice.resource=api sluice.from=fallback sluice.to=shared`)
	})
}
