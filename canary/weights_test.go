package canary

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSetWeights_RefusesAllOrNothing(t *testing.T) {
	p := pickerOf(t, 100_000, 50_000)
	before := p.Plan()
	for name, c := range map[string]struct {
		weights map[string]Weight
		is      error
		says    string
	}{
		"unknown":            {map[string]Weight{"c0": 1, "c7": Percent(5)}, ErrUnknownVersion, `"c7" gets a weight of 5%`},
		"not what is left":   {map[string]Weight{"stable": Percent(5)}, ErrStable, `"stable" gets a weight of 5%, and the others leave 85%`},
		"no whole ppm":       {map[string]Weight{"c0": Percent(0.00005)}, nil, `"c0": canary: weight 5e-05% is no whole ppm`},
		"negative":           {map[string]Weight{"c0": Percent(-5)}, nil, "weight -5% is not in [0%, 100%]"},
		"too much":           {map[string]Weight{"c0": PPM(1_000_001)}, nil, "weight 100.0001% is not in"},
		"too much together":  {map[string]Weight{"c0": PPM(950_001)}, nil, "weights of 1000001 ppm together"},
		"several complaints": {map[string]Weight{"c7": 1, "c8": 1}, ErrUnknownVersion, `"c8"`},
	} {
		err := p.SetWeights(c.weights)
		require.ErrorContains(t, err, c.says, name)
		if c.is != nil {
			require.ErrorIs(t, err, c.is, name)
		}
		_, preview := p.Preview(c.weights)
		require.EqualError(t, preview, err.Error())
		assert.Equal(t, before, p.Plan(), name)
	}
	require.NoError(t, p.SetWeights(nil))
	require.NoError(t, p.SetWeights(map[string]Weight{"c0": PPM(100_000)}))
	assert.Equal(t, uint64(1), p.Generation(), "what changes nothing is no change")
	require.NoError(t, p.SetWeights(map[string]Weight{"c1": PPM(60_000), "stable": PPM(840_000)}))
	assert.Equal(t, PPM(100_000), p.Share("c0"), "those that are not named keep theirs")
}
