package main

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// On the reference machine a bar is the bare one; on another its readings of the
// clock cost what they cost there, and its rest is scaled by the floor that went
// up less.
func TestPace_HereIsClocksAndAScaledRest(t *testing.T) {
	bar := pace{bench: "BreakerClosed/sluice", ns: 62}
	require.Equal(t, 14.0, bar.rest())
	for _, c := range []struct{ clock, atomic, scale, here float64 }{
		{24, 5, 1, 62},
		{48, 10, 2, 124},
		{36, 5, 1, 86},   // only the clock is slower
		{24, 10, 1, 62},  // only the atomic addition is
		{12, 5, 0.5, 31}, // a faster machine has a lower bar
		{30, 7.5, 1.25, 60 + 17.5},
	} {
		r := measuredAs(map[string]float64{"Floor/clock/serial": c.clock, "Floor/atomic/serial": c.atomic})
		s, ok := scale(r)
		require.True(t, ok)
		assert.Equal(t, c.scale, s)
		here, ok := bar.here(r)
		require.True(t, ok)
		assert.Equal(t, c.here, here)
	}
	_, ok := bar.here(measuredAs(map[string]float64{"Floor/clock/serial": 24}))
	assert.False(t, ok, "without both floors there is no bar")
}

// What a wrapper costs is what it takes beyond the same without it, in each round.
func TestPace_Above(t *testing.T) {
	bar := pace{bench: "Transport/sluice", ns: 80, above: "Transport/bare"}
	rs := rounds{
		measuredAs(map[string]float64{"Transport/sluice/serial": 150, "Transport/bare/serial": 70}),
		measuredAs(map[string]float64{"Transport/sluice/serial": 190, "Transport/bare/serial": 100}),
		measuredAs(map[string]float64{"Transport/sluice/serial": 190}),
	}
	assert.Equal(t, spread{80, 90}, rs.spread(bar.figure()))
	assert.Equal(t, spread{150, 190, 190}, rs.spread(pace{bench: "Transport/sluice"}.figure()))
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		shares spread
		want   string
	}{
		{nil, "not measured"},
		{spread{0.9, 1, 1}, "met"},
		{spread{0.9, 0.95, 1.1}, "met (within in 2 of 3 rounds)"},
		{spread{0.9, 1.25, 1.5}, "**not met**, 25 % over (within in 1 of 3 rounds)"},
		{spread{1.25, 1.25}, "**not met**, 25 % over"},
	} {
		assert.Equal(t, c.want, verdict(c.shares))
	}
}

func TestLimit_ZeroIsKeptByZeroAlone(t *testing.T) {
	none := limit{"", measured{"A", of("A", "ns/op")}, 0}
	for ns, want := range map[float64]string{0: "met", 1: "**not met**, 100 % over"} {
		assert.Equal(t, want, none.row(rounds{measuredAs(map[string]float64{"A": ns})}).Verdict)
	}
}

// We are measured against the quickest of the others, in each round.
func TestBesides_TheQuickest(t *testing.T) {
	f := besides("A/sluice", "A/slow", "A/quick", "A/absent").figure
	share, ok := f(measuredAs(map[string]float64{"A/sluice/serial": 3, "A/slow/serial": 9, "A/quick/serial": 6}))
	require.True(t, ok)
	assert.Equal(t, 0.5, share)
	_, ok = f(measuredAs(map[string]float64{"A/sluice/serial": 3}))
	assert.False(t, ok, "nobody to compare with")
}

// A bar whose benchmark has been renamed would be "not measured" for ever.
func TestBars_NameBenchmarksThatExist(t *testing.T) {
	files, err := filepath.Glob("../*_test.go")
	require.NoError(t, err)
	words := regexp.MustCompile(`func [bB]enchmark(\w+)(?:.*\{ benchmark(\w+)\()?|(?:(?:run|idle)\(b, |\t(?:pick|decide)\()"([^"]+)"`)
	exists, bench := map[string]bool{}, ""
	same := map[string]string{} // a benchmark → the one that has its rows
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range words.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "" {
				bench = m[1]
				same[bench] = cmp.Or(m[2], bench)
				continue
			}
			exists[bench+"/"+m[3]] = true
		}
	}
	isThere := func(name string) {
		bench, row, _ := strings.Cut(name, "/")
		assert.True(t, exists[same[bench]+"/"+row], "no benchmark is named %s", name)
	}
	for name := range reads {
		isThere(name)
	}
	for _, bar := range paces {
		isThere(bar.bench)
		assert.Contains(t, reads, bar.bench)
		if bar.above != "" {
			isThere(bar.above)
		}
	}
	for _, bar := range slices.Concat(rivals, contended, space) {
		isThere(bar.bench)
	}
}
