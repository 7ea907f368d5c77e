package canary

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// L4: 0 is nobody, not even one point of a million, and 100 % is everybody. 0 is a
// value and not "unset", in JSON too.
//
// GrowthBook's 0 was 100 %, or one in ten thousand:
// https://github.com/growthbook/growthbook/issues/756,
// https://github.com/growthbook/growthbook/pull/2415. A weight of 0 that was left out
// became 50/50: https://github.com/emissary-ingress/emissary/pull/1605,
// https://github.com/fluxcd/flagger/issues/930.
func TestComplaint07_ZeroIsZero(t *testing.T) {
	p := pickerOf(t, 0, 300_000)
	none := p.Version("c0")
	for point, table := uint32(0), p.current.Load(); point < points; point++ {
		if table.at(point) == none {
			t.Fatalf("point %d belongs to a version with no weight", point)
		}
	}
	for range 100_000 {
		if p.PickRandom() == none {
			t.Fatal("chance has thrown a version with no weight")
		}
	}
	require.NoError(t, p.SetWeights(weightsOf(1_000_000, 0)))
	for _, v := range dealt(p, 1) {
		if v != none {
			t.Fatalf("%v has a point although another has all", v)
		}
	}

	require.NoError(t, p.SetWeights(weightsOf(0, 0)))
	out, err := json.Marshal(p.Config())
	require.NoError(t, err)
	assert.Contains(t, string(out), `{"name":"c0","lane":0,"weight":"0%"}`)
	var c Config
	require.NoError(t, json.Unmarshal(out, &c))
	assert.Equal(t, p.Config(), c)
	require.Error(t, json.Unmarshal([]byte(`{"versions":[{"name":"c0","lane":0}]}`), &c), "absent is not 0")
}

// L5: every part that is not 0 gets something, and nothing is lost by rounding.
//
// Weights of thirds could not be written: https://github.com/traefik/traefik/issues/7843.
func TestLaw_SharesAddUp(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 2000 {
		parts := map[string]int{}
		for i := range 1 + r.IntN(20) {
			parts[canary(i)] = r.IntN([]int{2, 10, 1 << 20, 1 << 30}[r.IntN(4)])
		}
		shares, err := Shares(parts)
		whole := 0
		for _, n := range parts {
			whole += n
		}
		if whole == 0 {
			require.Error(t, err)
			continue
		}
		require.NoError(t, err)
		var sum Weight
		for name, n := range parts {
			sum += shares[name]
			require.Equal(t, n > 0, shares[name] > 0, "%v: %v", parts, shares)
			exact := float64(n) / float64(whole) * 1e6
			require.InDelta(t, exact, float64(shares[name]), 20, "%v: %v", parts, shares)
		}
		require.Equal(t, All, sum)
	}
	thirds, err := Shares(map[string]int{"stable": 1, "c0": 1, "c1": 1})
	require.NoError(t, err)
	assert.Equal(t, map[string]Weight{"c0": 333_334, "c1": 333_333, "stable": 333_333}, thirds)
	p := pickerOf(t, 0, 0)
	require.NoError(t, p.SetWeights(thirds))
	assert.Equal(t, PPM(333_333), p.Share("stable"))
	require.NoError(t, p.SetWeights(map[string]Weight{"c0": Percent(33.333), "c1": Percent(33.333)}))
}
