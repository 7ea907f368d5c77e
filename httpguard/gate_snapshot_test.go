package httpguard

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

var _ metrics.Source = (*Gate)(nil)

func TestGateSnapshot_IsJSONAndCollectsTheSame(t *testing.T) {
	var drain Drain
	g := newGate(t, WithName("front"), WithMaxInFlight(3), WithDrain(&drain), WithExempt("/path"), WithBreakers(newGroup(t), ByPattern))
	h := g.Wrap(writing(200))
	serve(h, incoming(t.Context())) // exempt
	r := incoming(sluice.Bypass(t.Context()))
	r.URL.Path = "/"
	serve(h, r)
	for range 2 {
		r := incoming(t.Context())
		r.URL.Path = "/"
		serve(h, r) // unmatched
	}
	r = incoming(gone(t))
	r.URL.Path = "/"
	serve(h, r)
	require.True(t, g.slots.take())
	require.True(t, g.slots.take())
	require.True(t, g.slots.take())
	require.False(t, g.slots.take())
	g.slots.release()
	drain.Begin()
	r = incoming(t.Context())
	r.URL.Path = "/"
	serve(h, r)

	view, err := json.Marshal(g.View())
	require.NoError(t, err)
	assert.JSONEq(t, `{"name": "front", "exempt": 1, "bypassed": 1, "unmatched": 3, "left": 1,
		"in_flight": {"now": 2, "peak": 3, "limit": 3, "refused": 1},
		"drain": {"begun": true, "in_flight": 0, "refused": 1}}`, string(view))

	total := map[string]float64{}
	var samples int
	for s := range g.Collect {
		require.NoError(t, s.Desc.Validate())
		require.Len(t, s.Labels, len(s.Desc.Labels))
		assert.Equal(t, "front", s.Labels[0])
		total[s.Desc.Name] += s.Value
		samples++
	}
	assert.Equal(t, map[string]float64{
		"server_unguarded": 5, "server_clients_left": 1, "server_refusals": 2, "server_draining": 1,
		"server_in_flight": 2, "server_in_flight_peak": 3, "server_in_flight_limit": 3,
	}, total)
	for stop := range samples { // a consumer that has enough is not called again
		seen := 0
		g.Collect(func(metrics.Sample) bool {
			seen++
			return seen <= stop
		})
		assert.Equal(t, stop+1, seen)
	}

	view, err = json.Marshal(newGate(t).View())
	require.NoError(t, err)
	assert.JSONEq(t, `{"name": "http", "exempt": 0, "bypassed": 0, "unmatched": 0, "left": 0}`, string(view))
}
