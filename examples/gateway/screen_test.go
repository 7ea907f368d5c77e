package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/breaker"
)

// busy is a row with something in each column.
func busy() row {
	return row{at: 12 * time.Second, service: "order-service", state: "half_open", slots: 7, second: second{
		requests: 60, ok: 21, refused: 38, failed: 1, slow: 2,
		took: []time.Duration{1 * time.Millisecond, 2 * time.Millisecond, 101 * time.Millisecond, 9994 * time.Millisecond},
	}}
}

func TestRow_FitsUnderTheHead(t *testing.T) {
	assert.Equal(t, " time service       state     requests  ok failed refused slow   p50   p99 slots", head)
	assert.Equal(t, "12.0s order-service half_open       60  21      1      38  50%   2ms 9.99s     7", busy().String())
	assert.Equal(t, " 0.0s user-service  -                0   0      0       0   0%     -     -     0",
		row{service: "user-service", state: "-"}.String())
	assert.Len(t, head, 80)
}

func TestExplain_SaysTheChangeAndWhy(t *testing.T) {
	slow := breaker.Rule{Kind: breaker.SlowCallRatio, Ratio: 0.5, SlowerThan: slowLimit}
	for _, c := range []struct {
		event breaker.Event
		want  string
	}{
		{breaker.Event{From: breaker.Closed, To: breaker.Open, OpenFor: 1960 * time.Millisecond, Cause: breaker.Cause{Reason: breaker.RuleTripped, Rule: slow, Bad: 191, Total: 381}},
			"closed → open for 2.0s, 191 of 381 calls took over 500ms"},
		{breaker.Event{From: breaker.Closed, To: breaker.Open, OpenFor: time.Second, Cause: breaker.Cause{Reason: breaker.RuleTripped, Rule: breaker.Rule{Kind: breaker.ErrorRatio}, Bad: 9, Total: 18}},
			"closed → open for 1.0s, 9 of 18 calls failed"},
		{breaker.Event{From: breaker.HalfOpen, To: breaker.Open, OpenFor: 4 * time.Second, Cause: breaker.Cause{Reason: breaker.ProbeFailed}},
			"half_open → open for 4.0s, probe failed"},
		{breaker.Event{From: breaker.HalfOpen, To: breaker.Closed, Cause: breaker.Cause{Reason: breaker.ProbesPassed}},
			"half_open → closed, probes passed"},
	} {
		assert.Equal(t, c.want, explain(c.event))
		assert.LessOrEqual(t, len("12.0s > order-service: ")+utf8.RuneCountInString(c.want), 80)
	}
}

func TestLive_DrawsOverItselfWithin24Lines(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out, true)
	p, err := newPlan(fullLength)
	require.NoError(t, err)
	s.begin(&act{plan: p, protected: true, scene: &scene{gateway: &url.URL{Scheme: "http", Host: "127.0.0.1:80"}}})
	user := row{service: "user-service", state: "closed"}
	for i := range 100 {
		s.note(time.Duration(i)*time.Second, fmt.Sprint("note ", i))
		s.rows([]row{user, busy()})
	}
	out.Reset()
	s.refresh(15*time.Second, incident, 50)
	frame := strings.Split(out.String(), "\n")
	require.LessOrEqual(t, len(frame), 24)
	assert.Contains(t, frame[0], fmt.Sprintf("\x1b[%dA", len(frame)-1), "it goes back up by its own height")
	assert.Contains(t, out.String(), "50 of 200 slots")
	assert.Contains(t, out.String(), "order-service hangs")
	assert.Contains(t, out.String(), "note 99")
	assert.Contains(t, out.String(), "note 92\n")
	assert.NotContains(t, out.String(), "note 91\n", "older notes leave")
	for _, line := range frame {
		assert.LessOrEqual(t, utf8.RuneCountInString(plainText(line)), 80, line)
	}
	assert.True(t, strings.HasSuffix(out.String(), "\x1b[?7h"), "lines wrap again afterwards")
}

func TestLive_ColoursTheStateUnlessNotWanted(t *testing.T) {
	open := row{service: "order-service", state: "open"}
	assert.Contains(t, (&live{color: true}).paint(open), "\x1b[31mopen     \x1b[m")
	assert.Equal(t, open.String(), (&live{}).paint(open))
	assert.Equal(t, open.String(), plainText((&live{color: true}).paint(open)))
}

// plainText is s without escape sequences.
func plainText(s string) string {
	var b strings.Builder
	for s != "" {
		if strings.HasPrefix(s, "\x1b[") {
			s = s[strings.IndexAny(s[2:], "AKJhlm")+3:]
			continue
		}
		b.WriteByte(s[0])
		s = s[1:]
	}
	return b.String()
}

func TestIsTerminal_AFileIsNone(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "out")
	require.NoError(t, err)
	defer f.Close()
	t.Setenv("TERM", "xterm")
	assert.False(t, isTerminal(f))
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	assert.True(t, isTerminal(null), "a device is one, as far as we can see")
	t.Setenv("TERM", "dumb")
	assert.False(t, isTerminal(null), "one that knows no escape sequences")
}
