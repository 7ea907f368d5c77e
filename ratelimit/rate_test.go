package ratelimit

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRate_Text(t *testing.T) {
	for text, want := range map[string]Rate{
		"100/s":         PerSecond(100),
		"60/m":          PerMinute(60),
		"1000/h":        PerHour(1000),
		"1/d":           PerDay(1),
		"5/ms":          {5, time.Millisecond},
		"1/250ms":       Every(250 * time.Millisecond),
		"17/30s":        {17, 30 * time.Second},
		"3/1m30s":       {3, 90 * time.Second},
		"1/8784h0m0s":   {1, maxPer},
		"10/1ns":        {10, 1},
		"10000000000/s": PerSecond(10_000_000_000),
		"unlimited":     Unlimited(),
		"blocked":       Blocked(),
	} {
		got, err := ParseRate(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
		assert.Equal(t, text, want.String())

		out, err := json.Marshal(map[string]Rate{"r": want})
		require.NoError(t, err)
		assert.Equal(t, `{"r":"`+text+`"}`, string(out))
		var in map[string]Rate
		require.NoError(t, json.Unmarshal(out, &in))
		assert.Equal(t, want, in["r"])
	}
	for text, want := range map[string]Rate{ // other ways to write it
		"100/1s": PerSecond(100), "60/60s": PerMinute(60), "1/24h": PerDay(1), "5/us": {5, time.Microsecond}, "2/ns": {2, 1},
		"+7/s": PerSecond(7), "1/0.5s": Every(500 * time.Millisecond), "1/µs": Every(time.Microsecond),
	} {
		got, err := ParseRate(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestRate_RefusesOtherText(t *testing.T) {
	for _, text := range []string{"", "100", "/s", "100/", "s/100", "100 /s", "100/ s", "1e3/s", "1.5/s", "100/x", "100/-1s", "100/+1s", "1/s/s",
		"99999999999999999999/s", "100/99999999h", "Unlimited", "NaN/s", "inf/s", "0x10/s", "1_000/s", "100/1"} {
		_, err := ParseRate(text)
		assert.EqualError(t, err, `ratelimit: "`+text+`" is not a rate such as "100/s", "60/m" or "1/250ms", nor "unlimited" or "blocked"`)
	}
	for text, want := range map[string]string{
		"0/s":           "ratelimit: Rate.Tokens 0 is not positive; no tokens at all is Blocked()",
		"-3/s":          "ratelimit: Rate.Tokens -3 is not positive; no tokens at all is Blocked()",
		"5/0s":          "ratelimit: Rate.Per 0s is not positive",
		"5/8785h":       "ratelimit: Rate.Per 8785h0m0s is more than 8784h0m0s",
		"10000000001/s": "ratelimit: Rate 10000000001/s is more than 10000000000/s: count in larger units",
		"0/0s":          "ratelimit: Rate.Tokens 0 is not positive; no tokens at all is Blocked()\nratelimit: Rate.Per 0s is not positive",
	} {
		r := PerSecond(7)
		assert.EqualError(t, r.UnmarshalText([]byte(text)), want)
		assert.Equal(t, PerSecond(7), r, "it is as before")
	}
	long := make([]byte, 1000)
	_, err := ParseRate(string(long))
	assert.Less(t, len(err.Error()), 500)
	var r Rate
	assert.Error(t, json.Unmarshal([]byte(`100`), &r), "a bare number is no rate")
}

func TestRate_Validate(t *testing.T) {
	for _, r := range []Rate{PerSecond(1), PerDay(1), Every(1), Every(maxPer), {maxPerNano * int64(maxPer), maxPer}, Unlimited(), Blocked()} {
		assert.NoError(t, r.Validate(), r)
	}
	for _, r := range []Rate{{}, PerSecond(0), PerSecond(-1), Every(0), Every(-1), Every(-2), Every(-3), Every(maxPer + 1), Every(math.MaxInt64),
		PerSecond(math.MaxInt64), {1, unlimitedPer}, {1, blockedPer}, {maxPerNano + 1, 1}, {math.MinInt64, math.MinInt64}} {
		assert.Error(t, r.Validate(), r)
		_, err := ParseRate(r.String())
		assert.Error(t, err, "%v is not read back either", r)
	}
	assert.True(t, Unlimited().IsUnlimited())
	assert.True(t, Blocked().IsBlocked())
	assert.False(t, Blocked().IsUnlimited())
	assert.False(t, Rate{}.IsBlocked())
}

func TestRate_Within(t *testing.T) {
	assert.EqualValues(t, 30, PerSecond(10).within(3*time.Second))
	assert.EqualValues(t, 2, Every(400*time.Millisecond).within(time.Second))
	assert.EqualValues(t, 0, PerDay(1).within(time.Hour))
	assert.EqualValues(t, maxPerNano*int64(maxFill), PerSecond(10_000_000_000).within(maxFill))
	assert.Equal(t, int64(math.MaxInt64), Rate{math.MaxInt64, 1}.within(maxFill))
	assert.Equal(t, int64(math.MaxInt64), Unlimited().within(1))
}

// FuzzRate: what is read is valid, and comes back the same from what is written.
func FuzzRate(f *testing.F) {
	for _, seed := range []string{"100/s", "1/d", "unlimited", "blocked", "7/1m30s", "0/0s", "-1/-1ns", "10/ns", "1/µs", "1/s\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRate(text)
		if err != nil {
			require.Zero(t, r)
			return
		}
		require.NoError(t, r.Validate())
		again, err := ParseRate(r.String())
		require.NoError(t, err)
		require.Equal(t, r, again)
	})
}
