package canary

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A retry of a request that the canary had failed went to the canary again, since it had
// the same route. One that asks for Stable instead is answered; and as the judge is told
// of the first attempt, and by its decision, the canary's failures are all its own and the
// stable version's calls no more than its share.
// https://github.com/hashicorp/consul/issues/9756
// https://github.com/envoyproxy/envoy/issues/10683
// https://github.com/envoyproxy/envoy/issues/7203
func TestComplaint20_RetriesGoToStable(t *testing.T) {
	p := sluice.Must(New("checkout", "v1", WithVersion("v2", 0, Percent(10))))
	j := sluice.Must(NewJudge("checkout", WithWarmUp(0)))
	require.NoError(t, j.Begin(Trial{Canary: "v2", CanaryWeight: Percent(10), Stable: "v1", StableWeight: Percent(90), Generation: p.Generation()}))
	serve := func(v *Version) sluice.Outcome {
		if v.Name() == "v2" {
			return sluice.Failure
		}
		return sluice.Success
	}
	var retried uint64
	for i := range 1000 {
		d := p.Decide(Input{ID: fmt.Sprint("user-", i)})
		answer := serve(d.Version)
		j.Observe(d, answer, time.Millisecond)
		if answer == sluice.Failure {
			retried++
			answer = serve(p.Stable())
		}
		require.Equal(t, sluice.Success, answer, "user %d", i)
	}
	v := j.Verdict()
	assert.Equal(t, Fail, v.Result)
	assert.Positive(t, retried)
	assert.EqualValues(t, retried, v.CanarySeen.Requests)
	assert.EqualValues(t, retried, v.CanarySeen.Failures)
	assert.EqualValues(t, 1000-retried, v.StableSeen.Requests)
	assert.Zero(t, v.StableSeen.Failures)
}
