package metrics

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestJSONIsSortedByName(t *testing.T) {
	s := filled(t, "b", "a")
	assert.Equal(t, `{"a":{"state":"closed"},"b":{"state":"closed"}}`, s.String())

	out, err := json.Marshal(map[string]any{"guards": s})
	require.NoError(t, err)
	assert.Equal(t, `{"guards":`+s.String()+`}`, string(out))
}

func TestJSONIsValidForAnyName(t *testing.T) {
	names := []string{`quote"`, `back\slash`, "line\nfeed", "tab\t", "\x00", "</script>", "日本", "\u2028", "emoji 🚰", " ", "{}"}
	s := filled(t, names...)
	var got map[string]map[string]string
	require.NoError(t, json.Unmarshal([]byte(s.String()), &got))
	assert.Len(t, got, len(names))
	for _, name := range names {
		assert.Equal(t, "closed", got[name]["state"], "%q", name)
	}
}

type badJSON struct{}

func (badJSON) MarshalJSON() ([]byte, error) { panic("marshal") }

func TestJSONOfAViewThatCannotBeHad(t *testing.T) {
	for name, tc := range map[string]struct {
		view func() any
		want string
	}{
		"panics":            {func() any { panic(`no "view"`) }, `{"a":{"error":"panic: no \"view\""},"b":1}`},
		"is no JSON":        {func() any { return math.NaN() }, `{"a":{"error":"json: unsupported value: NaN"},"b":1}`},
		"panics in marshal": {func() any { return badJSON{} }, `{"a":{"error":"panic: marshal"},"b":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			var s Set
			require.NoError(t, s.Add("a", script{view: tc.view, collect: func(func(Sample) bool) {}}))
			require.NoError(t, s.Add("b", script{view: func() any { return 1 }, collect: func(func(Sample) bool) {}}))
			assert.Equal(t, tc.want, s.String())
			assert.Equal(t, []string{"source_faults 1"}, seen(&s))
		})
	}
}
