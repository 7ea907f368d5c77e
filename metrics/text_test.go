package metrics

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func text(t *testing.T, s *Set) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, s.WriteText(&out))
	return out.String()
}

func TestTextStandsInColumns(t *testing.T) {
	s := filled(t, "a", "überlauf")
	assert.Equal(t, `
calls{resource="a",outcome="success"}         90 {call}
calls{resource="a",outcome="failure"}         10 {call}
limit                                         16
calls{resource="überlauf",outcome="success"}  90 {call}
calls{resource="überlauf",outcome="failure"}  10 {call}
limit                                         16
source_faults                                  0 {fault}
`, "\n"+text(t, s))
}

// A label value must not be able to add a line or to steer the terminal.
func TestTextEscapesLabelValues(t *testing.T) {
	for value, want := range map[string]string{
		`say "hi"`:     `calls{resource="say \"hi\"",outcome="success"}`,
		`c:\temp`:      `calls{resource="c:\\temp",outcome="success"}`,
		"two\nlines":   `calls{resource="two\nlines",outcome="success"}`,
		"\x1b[2Jgone":  `calls{resource="\x1b[2Jgone",outcome="success"}`,
		"bad \xff utf": `calls{resource="bad \xff utf",outcome="success"}`,
		"\u202eright":  `calls{resource="\u202eright",outcome="success"}`,
		"":             `calls{resource="",outcome="success"}`,
	} {
		var s Set
		require.NoError(t, s.Add("x", gate{name: value}))
		out := text(t, &s)
		assert.Contains(t, out, want)
		assert.Equal(t, 4, strings.Count(out, "\n"))
	}
}

func TestTextTellsOfFaults(t *testing.T) {
	s := filled(t, "a")
	require.NoError(t, s.Add("b\n", script{collect: func(func(Sample) bool) { panic("no\n\x1b[2Jluck") }}))
	require.NoError(t, s.Add("c", script{collect: func(yield func(Sample) bool) { yield(Sample{}) }}))
	out := text(t, s)
	_, faults, _ := strings.Cut(out, "source_faults")
	assert.Equal(t, `                           2 {fault}
# "b\n": no\n\x1b[2Jluck
# "c": a sample's labels do not fit its Desc
`, faults)
}

func TestNumber(t *testing.T) {
	for want, v := range map[string]float64{
		"0":                0,
		"1":                1,
		"-3":               -3,
		"1000000":          1e6,
		"9007199254740992": 1 << 53,
		"1e+300":           1e300,
		"0.333333":         1.0 / 3,
		"0.3":              0.1 + 0.2,
		"1e-06":            1e-6,
		"NaN":              math.NaN(),
		"+Inf":             math.Inf(1),
	} {
		assert.Equal(t, want, number(v))
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

func TestWriteTextWritesOnceAndReturnsTheError(t *testing.T) {
	full := errors.New("disk full")
	writes := 0
	err := filled(t, "a").WriteText(writer(func([]byte) (int, error) {
		writes++
		return 0, full
	}))
	assert.ErrorIs(t, err, full)
	assert.Equal(t, 1, writes)
}
