package httpguard

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

var _ metrics.Source = (*Transport)(nil)

func TestSnapshot_IsJSONAndCollectsTheSame(t *testing.T) {
	tr := newTransport(t, answering(503, ""), WithName("orders"),
		WithBreakers(newGroup(t), KeyFunc(func(r *http.Request) string { return r.Header.Get("X-Key") })),
		WithFallback(func(req *http.Request, _ error) (*http.Response, error) { return Respond(req, 200, nil, nil), nil }, OnFailure))
	_, err := tr.RoundTrip(get(t.Context()))
	require.NoError(t, err)
	_, err = tr.RoundTrip(get(sluice.Bypass(t.Context())))
	require.NoError(t, err)

	view, err := json.Marshal(tr.View())
	require.NoError(t, err)
	assert.JSONEq(t, `{"name": "orders", "bypassed": 1, "unkeyed": 1, "replaced_hosts": 0, "body_errors": 0, "leaked_bodies": 0, "fallbacks": [
		{"cause": "rejected", "served": 0, "declined": 0, "skipped": 0},
		{"cause": "timeout", "served": 0, "declined": 0, "skipped": 0},
		{"cause": "failure", "served": 1, "declined": 0, "skipped": 0},
		{"cause": "error", "served": 0, "declined": 0, "skipped": 0}]}`, string(view))

	var samples int
	total := map[string]float64{}
	for s := range tr.Collect {
		require.NoError(t, s.Desc.Validate())
		require.Len(t, s.Labels, len(s.Desc.Labels))
		assert.Equal(t, "orders", s.Labels[0])
		total[s.Desc.Name] += s.Value
		samples++
	}
	assert.Equal(t, 4*3+2+3, samples)
	assert.Equal(t, map[string]float64{"transport_fallbacks": 1, "transport_unguarded": 2, "transport_replaced_hosts": 0, "transport_body_errors": 0, "transport_leaked_bodies": 0}, total)

	for stop := range samples { // a consumer that has enough is not called again
		seen := 0
		tr.Collect(func(metrics.Sample) bool {
			seen++
			return seen <= stop
		})
		assert.Equal(t, stop+1, seen)
	}
}
