package sluice_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice"
)

// A panic and a runtime.Goexit, wherever they happen, reach the caller, and
// everyone who admitted is told once that the call was cut off, the innermost first.
func TestChain_CutOff(t *testing.T) {
	for _, c := range []struct {
		name   string
		guards func(j *journal, a act) []sluice.Guard
		call   bool // it is the call that acts
		who    string
		want   []string // act stands for the line of the act
	}{
		{
			name:   "in the call",
			guards: func(j *journal, _ act) []sluice.Guard { return []sluice.Guard{j.toll("a"), j.toll("b"), j.toll("c")} },
			call:   true,
			who:    "call",
			want:   []string{"a admits", "b admits", "c admits", "call", "act", "c settles: cut off", "b settles: cut off", "a settles: cut off"},
		},
		{
			name: "in the call, behind seven stages",
			guards: func(j *journal, _ act) []sluice.Guard {
				return []sluice.Guard{j.toll("a"), j.toll("b"), j.toll("c"), j.toll("d"), j.toll("e"), j.toll("f"), j.toll("g")}
			},
			call: true,
			who:  "call",
			want: []string{
				"a admits", "b admits", "c admits", "d admits", "e admits", "f admits", "g admits", "call", "act",
				"g settles: cut off", "f settles: cut off", "e settles: cut off", "d settles: cut off", "c settles: cut off", "b settles: cut off", "a settles: cut off",
			},
		},
		{
			name: "in the call, behind a foreign guard",
			guards: func(j *journal, _ act) []sluice.Guard {
				return []sluice.Guard{j.toll("a"), j.foreign("f"), j.toll("b")}
			},
			call: true,
			who:  "call",
			want: []string{"a admits", "f enters", "b admits", "call", "act", "b settles: cut off", "a settles: cut off"},
		},
		{
			name: "in a foreign guard, before the call",
			guards: func(j *journal, a act) []sluice.Guard {
				return []sluice.Guard{j.toll("a"), j.foreign("f", a), j.toll("b")}
			},
			who:  "f",
			want: []string{"a admits", "act", "a settles: cut off"},
		},
		{
			name: "in a foreign guard, after the call",
			guards: func(j *journal, a act) []sluice.Guard {
				return []sluice.Guard{j.toll("a"), j.foreign("f", pass, a), j.toll("b")}
			},
			who:  "f",
			want: []string{"a admits", "f enters", "b admits", "call", "b settles: ok", "f leaves: ok", "act", "a settles: cut off"},
		},
		{
			name:   "while the first stage admits",
			guards: func(j *journal, a act) []sluice.Guard { return []sluice.Guard{j.toll("a", a), j.toll("b")} },
			who:    "a",
			want:   []string{"act"},
		},
		{
			name: "while the third stage admits",
			guards: func(j *journal, a act) []sluice.Guard {
				return []sluice.Guard{j.toll("a"), j.toll("b"), j.toll("c", a), j.toll("d")}
			},
			who:  "c",
			want: []string{"a admits", "b admits", "act", "b settles: cut off", "a settles: cut off"},
		},
		{
			name: "while a stage behind a foreign guard admits",
			guards: func(j *journal, a act) []sluice.Guard {
				return []sluice.Guard{j.toll("a"), j.foreign("f"), j.toll("b", a)}
			},
			who:  "b",
			want: []string{"a admits", "f enters", "act", "a settles: cut off"},
		},
		{
			name:   "while the only stage settles",
			guards: func(j *journal, a act) []sluice.Guard { return []sluice.Guard{j.toll("a", pass, a)} },
			who:    "a",
			want:   []string{"a admits", "call", "a settles: ok", "act"},
		},
		{
			name: "while the last of three stages settles",
			guards: func(j *journal, a act) []sluice.Guard {
				return []sluice.Guard{j.toll("a"), j.toll("b"), j.toll("c", pass, a)}
			},
			who:  "c",
			want: []string{"a admits", "b admits", "c admits", "call", "c settles: ok", "act", "b settles: cut off", "a settles: cut off"},
		},
		{
			name: "while a stage behind a foreign guard settles",
			guards: func(j *journal, a act) []sluice.Guard {
				return []sluice.Guard{j.toll("a"), j.foreign("f"), j.toll("b", pass, a), j.toll("c")}
			},
			who:  "b",
			want: []string{"a admits", "f enters", "b admits", "c admits", "call", "c settles: ok", "b settles: ok", "act", "a settles: cut off"},
		},
	} {
		for a, how := range map[act]string{panics: "panicked: " + c.who, exits: "exited"} {
			t.Run(fmt.Sprint(c.name, ", ", how), func(t *testing.T) {
				call := pass
				if c.call {
					call = a
				}
				want := append([]string(nil), c.want...)
				for i, line := range want {
					if line == "act" {
						want[i] = c.who + " " + a.String()
					}
				}

				j := &journal{}
				assert.Equal(t, how, ending(func() {
					_ = sluice.Chain(c.guards(j, a)...).Do(t.Context(), j.doing(call))
				}))
				assert.Equal(t, want, j.lines)

				j = &journal{}
				assert.Equal(t, how, ending(func() {
					_, _ = sluice.Call(t.Context(), sluice.Chain(c.guards(j, a)...), func(ctx context.Context) (int, error) {
						return 0, j.doing(call)(ctx)
					})
				}))
				assert.Equal(t, want, j.lines, "through Call")
			})
		}
	}
}

// A stage that cannot bear to be told (its classifier is the user's) keeps none of
// the others from being told, and each is told once.
func TestChain_TellsAllWhenOneSettlesBadly(t *testing.T) {
	for _, a := range []act{panics, exits} {
		for name, bad := range map[string][3]act{
			"the innermost": {pass, pass, a},
			"the middle":    {pass, a, pass},
			"the outermost": {a, pass, pass},
			"two":           {a, pass, a},
			"all":           {a, a, a},
		} {
			for _, call := range []act{pass, fails, panics, exits} {
				j := &journal{}
				guard := sluice.Chain(j.toll("a", pass, bad[0]), j.toll("b", pass, bad[1]), j.toll("c", pass, bad[2]))
				assert.NotEqual(t, "returned", ending(func() { _ = guard.Do(t.Context(), j.doing(call)) }), name)
				var told []string
				for _, line := range j.lines {
					var who, how string
					if n, _ := fmt.Sscanf(line, "%s settles: %s", &who, &how); n == 2 {
						told = append(told, who)
					}
				}
				assert.Equal(t, []string{"c", "b", "a"}, told, "%s: %v", name, j.lines)
			}
		}
	}
}
