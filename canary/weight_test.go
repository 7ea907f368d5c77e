package canary

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWeight(t *testing.T) {
	third := 1.0 / 3
	for _, c := range []struct {
		got   Weight
		want  Weight
		text  string
		wrong string
	}{
		{Percent(5), 50_000, "5%", ""},
		{Percent(0.05), 500, "0.05%", ""},
		{Percent(0.29), 2900, "0.29%", ""}, // 0.29 × 10⁴ is 2899.9999999999995
		{Percent(0.0001), 1, "0.0001%", ""},
		{Percent(33.3333), 333_333, "33.3333%", ""},
		{Percent(100), All, "100%", ""},
		{Percent(0), 0, "0%", ""},
		{Percent(math.Copysign(0, -1)), 0, "-0%", "?"},
		{Percent(1e-300), 0, "1e-300%", "weight 1e-300% is no whole ppm"},
		{Percent(math.SmallestNonzeroFloat64), 0, "2.2250738585072014e-308%", "is no whole ppm"},
		{Percent(33.33333), 0, "33.33333%", "weight 33.33333% is no whole ppm"},
		{Percent(third), 0, "0.3333333333333333%", "is no whole ppm"},
		{Percent(100.0001), 0, "100.0001%", "weight 100.0001% is not in [0%, 100%]"},
		{Percent(-1), 0, "-1%", "weight -1% is not in [0%, 100%]"},
		{Percent(math.NaN()), 0, "NaN%", "weight NaN% is not in"},
		{Percent(math.Inf(1)), 0, "+Inf%", "weight +Inf% is not in"},
		{Percent(math.Inf(-1)), 0, "-Inf%", "weight -Inf% is not in"},
		{Percent(1e300), 0, "1e+300%", "is not in"},
		{PPM(500), 500, "0.05%", ""},
		{PPM(0), 0, "0%", ""},
		{PPM(-1), 0, "-0.0001%", "weight -0.0001% is not in"},
		{PPM(math.MaxInt32), 0, "214748.3647%", "is not in"},
		{Ratio(1, 2000), 500, "0.05%", ""},
		{Ratio(1, 1), All, "100%", ""},
		{Ratio(0, 7), 0, "0%", ""},
		{Ratio(1, 3), 0, "33.33333333333333%", "is no whole ppm"},
		{Ratio(3, 2), 0, "150%", "is not in"},
		{Ratio(-1, 2), 0, "-50%", "is not in"},
		{Ratio(1, 0), 0, "+Inf%", "is not in"},
		{Ratio(0, 0), 0, "NaN%", "is not in"},
		{Ratio(math.MaxInt, math.MaxInt), All, "100%", ""},
		{Weight(2_000_000), 0, "2000000ppm", "weight 2000000ppm is not in"},
	} {
		switch c.wrong {
		case "?": // a zero with a sign is no weight, and no harm either
			assert.True(t, c.got == 0 || c.got.Validate() != nil)
		case "":
			assert.Equal(t, c.want, c.got)
			assert.NoError(t, c.got.Validate())
			assert.Equal(t, c.text, c.got.String())
			assert.InDelta(t, float64(c.want)/1e6, c.got.Fraction(), 0)
		default:
			assert.ErrorContains(t, c.got.Validate(), c.wrong)
			assert.Equal(t, c.text, c.got.String())
			assert.True(t, math.IsNaN(c.got.Fraction()))
			assert.Greater(t, c.got, All)
		}
	}
}

// Every ppm can be written as percent, and reads back as itself.
func TestWeight_EveryPPMHasItsText(t *testing.T) {
	step := 1
	if testing.Short() || raceDetector {
		step = 97
	}
	for n := 0; n <= int(All); n += step {
		w := PPM(n)
		text := w.String()
		var got Weight
		if err := got.UnmarshalText([]byte(text)); err != nil || got != w {
			t.Fatalf("%d ppm is %s, and that is %v (%v)", n, text, got, err)
		}
		if p := Percent(float64(n) / 10_000); p != w {
			t.Fatalf("Percent(%v) is %v", float64(n)/10_000, p)
		}
	}
}

func TestWeight_JSON(t *testing.T) {
	for text, want := range map[string]Weight{
		`"5%"`: 50_000, `"0.05 %"`: 500, `"500ppm"`: 500, `"1000000 ppm"`: All, `"100%"`: All, `"0%"`: 0, `"05%"`: 50_000, `"7.1000000%"`: 71_000,
	} {
		var w Weight
		require.NoError(t, json.Unmarshal([]byte(text), &w), text)
		assert.Equal(t, want, w, text)
	}
	for _, text := range []string{
		`5`, `0.05`, `""`, `"5"`, `"%"`, `".5%"`, `"-5%"`, `"+5%"`, `"101%"`, `"100.0001%"`, `"0.00001%"`, `"5e1%"`, `"0x5%"`,
		`"NaN%"`, `"1000001ppm"`, `"-1ppm"`, `"1.5ppm"`, `"ppm"`, `"5%%"`, `true`, `"1_0%"`,
	} {
		w := Weight(7)
		assert.Error(t, json.Unmarshal([]byte(text), &w), text)
		assert.Equal(t, Weight(7), w, "%s leaves what was there", text)
	}
	out, err := json.Marshal(map[string]Weight{"a": 0, "b": Percent(-5)})
	require.NoError(t, err)
	assert.JSONEq(t, `{"a":"0%","b":"-5%"}`, string(out), "an invalid one can be shown")
}

func TestShares_Complains(t *testing.T) {
	_, err := Shares(map[string]int{"a": -1, "b": 1, "c": -2})
	assert.ErrorContains(t, err, `the part of "a" is -1`)
	assert.ErrorContains(t, err, `the part of "c" is -2`)
	_, err = Shares(nil)
	assert.ErrorContains(t, err, "parts are 0 together")
	many := map[string]int{}
	for i := range maxParts + 1 {
		many[canary(i)] = 1
	}
	_, err = Shares(many)
	assert.ErrorContains(t, err, "1001 parts are more than 1000")
	_, err = Shares(map[string]int{"a": math.MaxInt, "b": math.MaxInt, "c": math.MaxInt})
	if math.MaxInt > math.MaxInt32 {
		assert.ErrorContains(t, err, "more than a uint64 holds")
	}
	shares, err := Shares(map[string]int{"a": math.MaxInt - 2, "b": 1, "c": 1, "none": 0})
	require.NoError(t, err)
	assert.Equal(t, map[string]Weight{"a": 999_998, "b": 1, "c": 1, "none": 0}, shares)
}
