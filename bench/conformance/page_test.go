package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPage_PutsProtocolsTogether(t *testing.T) {
	bare := func(base http.RoundTripper) http.RoundTripper { return base }
	all := []library{
		{name: "good client", setup: "well", client: bare, breaker: true},
		{name: "bad client", setup: "badly", client: bare, breaker: true},
		{name: "bad server", server: func(next http.Handler) http.Handler { return next }},
	}
	of := func(check, protocol string, v verdict, seen string) result {
		return result{check, protocol, "the rule of " + check, v, seen}
	}
	var page strings.Builder
	require.NoError(t, write(&page, 3, all, [][]result{
		{of("A", "HTTP/1.1", passed, ""), of("A", "HTTP/2", passed, ""), of("FailingStatusesTrip", "", passed, "")},
		{
			of("A", "HTTP/1.1", passed, ""), of("A", "HTTP/2", failed, "a | b\nstack"),
			of("FailingStatusesTrip", "", inapplicable, "guardtest: x: does not apply: it refuses none"),
		},
		{of("B", "HTTP/1.1", failed, "no"), of("B", "HTTP/2", failed, "neither"), of("C", "", inapplicable, "why")},
	}))
	for _, line := range []string{
		"| good |  | well | 2 | 0 | 0 |",
		"| bad |  | badly | 0 | 2 | 0 |",
		"| A | pass | fail (HTTP/2) |",
		`| A | a \| b |`,
		"| FailingStatusesTrip | pass | fail |",
		"| FailingStatusesTrip | it has a breaker, and it refuses none |",
		"* **A**: the rule of A",
		"| B | fail |",
		"| C | – |",
	} {
		assert.Contains(t, page.String(), strings.TrimSpace(line)+"\n")
	}
}

func TestParse_KeepsWhatHasBegunLast(t *testing.T) {
	results, err := parse([]byte(`{"Check":"A","Verdict":"begun"}
{"Check":"A","Verdict":"pass"}
{"Check":"B","Verdict":"begun"}
`))
	require.NoError(t, err)
	assert.Equal(t, []result{{Check: "A", Verdict: passed}, {Check: "B", Verdict: begun}}, results)
	_, err = parse([]byte("{"))
	assert.ErrorContains(t, err, `result "{"`)
}

func TestLastWords(t *testing.T) {
	assert.Equal(t, "panic: boom", lastWords("noise\npanic: boom\n\ngoroutine 1\n", assert.AnError))
	assert.Equal(t, assert.AnError.Error(), lastWords("noise", assert.AnError))
}

// The table of needs must name checks that exist, and every library must be complete.
func TestLibraries(t *testing.T) {
	names := map[string]bool{}
	for _, l := range append(clients(), servers()...) {
		assert.False(t, names[l.name], l.name)
		names[l.name] = true
		assert.NotEmpty(t, l.setup, l.name)
		assert.NotEqual(t, l.client == nil, l.server == nil, l.name)
	}
}
