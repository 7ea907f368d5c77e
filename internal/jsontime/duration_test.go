package jsontime

import (
	"encoding/json"
	"math"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDurationText(t *testing.T) {
	for _, tc := range []struct {
		text string // as somebody may write it
		want time.Duration
		out  string // as it is written
	}{
		{`"250ms"`, 250 * time.Millisecond, `"250ms"`},
		{`"1h30m"`, 90 * time.Minute, `"1h30m0s"`},
		{`"1.5s"`, 1500 * time.Millisecond, `"1.5s"`},
		{`"90s"`, 90 * time.Second, `"1m30s"`},
		{`"+2s"`, 2 * time.Second, `"2s"`},
		{`"0"`, 0, `"0s"`},
		{`"1\u006ds"`, time.Millisecond, `"1ms"`},
		{`"2562047h47m16.854775807s"`, math.MaxInt64, `"2562047h47m16.854775807s"`},
	} {
		var d Duration
		var a AutoDuration
		require.NoError(t, json.Unmarshal([]byte(tc.text), &d), tc.text)
		require.NoError(t, json.Unmarshal([]byte(tc.text), &a), tc.text)
		assert.Equal(t, tc.want, time.Duration(d), tc.text)
		assert.Equal(t, tc.want, time.Duration(a), tc.text)

		out, err := json.Marshal([]any{d, a})
		require.NoError(t, err)
		assert.Equal(t, "["+tc.out+","+tc.out+"]", string(out))
	}
}

func TestDurationRefuses(t *testing.T) {
	const want = `a duration in text such as "250ms", "1.5s" or "1h30m"`
	for text, complaint := range map[string]string{
		`250`:                     `250 is a bare number, want ` + want,
		`-1`:                      `-1 is a bare number, want ` + want,
		`2.5e9`:                   `2.5e9 is a bare number, want ` + want,
		`true`:                    `true is not ` + want,
		`["1s"]`:                  `["1s"] is not ` + want,
		`{"s":1}`:                 `{"s":1} is not ` + want,
		`""`:                      `"" is not ` + want + `; the longest is 2562047h`,
		`"250"`:                   `"250" is not ` + want + `; the longest is 2562047h`,
		`"NaN"`:                   `"NaN" is not ` + want + `; the longest is 2562047h`,
		`"Infs"`:                  `"Infs" is not ` + want + `; the longest is 2562047h`,
		`"3d"`:                    `"3d" is not ` + want + `; the longest is 2562047h`,
		`"1e3s"`:                  `"1e3s" is not ` + want + `; the longest is 2562047h`,
		`"9999999h"`:              `"9999999h" is not ` + want + `; the longest is 2562047h`,
		`"9223372036854775808ns"`: `"9223372036854775808ns" is not ` + want + `; the longest is 2562047h`,
		`"-5s"`:                   `"-5s" is negative, want ` + want,
		`"auto"`:                  `"auto" is not ` + want + `; the longest is 2562047h`,
	} {
		d := Duration(7)
		assert.EqualError(t, json.Unmarshal([]byte(text), &d), complaint)
		assert.Equal(t, Duration(7), d, "%s leaves what was there", text)
	}
}

func TestAutoDuration(t *testing.T) {
	var d AutoDuration
	require.NoError(t, json.Unmarshal([]byte(`"auto"`), &d))
	assert.EqualValues(t, Auto, d)
	out, err := json.Marshal(d)
	require.NoError(t, err)
	assert.Equal(t, `"auto"`, string(out))

	const want = `a duration in text such as "250ms", "1.5s" or "1h30m", or "auto"`
	for text, complaint := range map[string]string{
		`"Auto"`: `"Auto" is not ` + want + `; the longest is 2562047h`,
		`"-1ns"`: `"-1ns" is negative, want ` + want, // though it is how Auto is held
		`-1`:     `-1 is a bare number, want ` + want,
	} {
		d := AutoDuration(7)
		assert.EqualError(t, json.Unmarshal([]byte(text), &d), complaint)
		assert.EqualValues(t, 7, d)
	}
}

func TestDurationNullIsAbsent(t *testing.T) {
	d, a := Duration(7), AutoDuration(8)
	require.NoError(t, json.Unmarshal([]byte(`null`), &d))
	require.NoError(t, json.Unmarshal([]byte(`null`), &a))
	assert.EqualValues(t, 7, d)
	assert.EqualValues(t, 8, a)
}

// An invalid Config can be shown, so that its owner's Validate has the last word.
func TestDurationWritesWhatItWouldNotRead(t *testing.T) {
	out, err := json.Marshal([]any{Duration(-time.Second), Duration(Auto), AutoDuration(-2)})
	require.NoError(t, err)
	assert.Equal(t, `["-1s","-1ns","-2ns"]`, string(out))
}

func TestLongValuesAreCutInComplaints(t *testing.T) {
	long := make([]byte, 0, 1000)
	long = append(long, '"')
	for range 300 {
		long = append(long, "é"...)
	}
	long = append(long, '"')
	var d Duration
	err := json.Unmarshal(long, &d)
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 200)
	assert.True(t, utf8.ValidString(err.Error()), "the cut goes through no character")
}

// FuzzDuration: what is read is what time.ParseDuration reads and is never
// negative, and comes back the same from what is written.
func FuzzDuration(f *testing.F) {
	for _, seed := range []string{"1h30m", "auto", "-1ns", "1e3s", "0.3ns", "-0s", ".5s", "µs", "1µs", "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		quoted, err := json.Marshal(text)
		require.NoError(t, err)
		var d Duration
		want, wrong := time.ParseDuration(text)
		if wrong != nil || want < 0 {
			require.Error(t, json.Unmarshal(quoted, &d))
			return
		}
		require.NoError(t, json.Unmarshal(quoted, &d))
		require.Equal(t, want, time.Duration(d))
		out, err := json.Marshal(d)
		require.NoError(t, err)
		var again Duration
		require.NoError(t, json.Unmarshal(out, &again))
		require.Equal(t, d, again)
	})
}
