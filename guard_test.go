package sluice_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

func TestChain_FirstIsOutermost(t *testing.T) {
	for name, c := range map[string]struct {
		guards func(*journal) []sluice.Guard
		want   []string
	}{
		"none": {
			func(*journal) []sluice.Guard { return nil },
			[]string{"call"},
		},
		"one stage": {
			func(j *journal) []sluice.Guard { return []sluice.Guard{j.toll("a")} },
			[]string{"a admits", "call", "a settles: ok"},
		},
		"one foreign": {
			func(j *journal) []sluice.Guard { return []sluice.Guard{j.foreign("f")} },
			[]string{"f enters", "call", "f leaves: ok"},
		},
		"two stages": {
			func(j *journal) []sluice.Guard { return []sluice.Guard{j.toll("a"), j.toll("b")} },
			[]string{"a admits", "b admits", "call", "b settles: ok", "a settles: ok"},
		},
		"a foreign between stages": {
			func(j *journal) []sluice.Guard { return []sluice.Guard{j.toll("a"), j.foreign("f"), j.toll("b")} },
			[]string{"a admits", "f enters", "b admits", "call", "b settles: ok", "f leaves: ok", "a settles: ok"},
		},
		"a stage between foreign": {
			func(j *journal) []sluice.Guard { return []sluice.Guard{j.foreign("f"), j.toll("a"), j.foreign("g")} },
			[]string{"f enters", "a admits", "g enters", "call", "g leaves: ok", "a settles: ok", "f leaves: ok"},
		},
		"the same stage twice": {
			func(j *journal) []sluice.Guard { a := j.toll("a"); return []sluice.Guard{a, a} },
			[]string{"a admits", "a admits", "call", "a settles: ok", "a settles: ok"},
		},
		"seven stages, more than run at once": {
			func(j *journal) []sluice.Guard {
				return []sluice.Guard{j.toll("a"), j.toll("b"), j.toll("c"), j.toll("d"), j.toll("e"), j.toll("f"), j.toll("g")}
			},
			[]string{
				"a admits", "b admits", "c admits", "d admits", "e admits", "f admits", "g admits", "call",
				"g settles: ok", "f settles: ok", "e settles: ok", "d settles: ok", "c settles: ok", "b settles: ok", "a settles: ok",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := &journal{}
			require.NoError(t, sluice.Chain(c.guards(j)...).Do(t.Context(), j.doing(pass)))
			assert.Equal(t, c.want, j.lines)
		})
	}
}

func TestChain_SkipsNil(t *testing.T) {
	j := &journal{}
	guard := sluice.Chain(nil, j.toll("a"), nil, nil, j.foreign("f"), nil)
	require.NoError(t, guard.Do(t.Context(), j.doing(pass)))
	assert.Equal(t, []string{"a admits", "f enters", "call", "f leaves: ok", "a settles: ok"}, j.lines)
}

// A nil object behind a Guard is no nil Guard: it is asked like any other, and the
// guards of this module let everything pass then.
func TestChain_AsksNilObjects(t *testing.T) {
	var ours *toll
	var theirs *foreign
	for _, guards := range [][]sluice.Guard{{ours}, {theirs}, {ours, theirs}, {theirs, ours, ours}} {
		j := &journal{}
		require.NoError(t, sluice.Chain(guards...).Do(t.Context(), j.doing(pass)))
		require.Equal(t, errDown, sluice.Chain(guards...).Do(t.Context(), j.doing(fails)))
		assert.Equal(t, []string{"call", "call", "call fails"}, j.lines)
	}
}

func TestChain_WithoutGuardsLetsEverythingPass(t *testing.T) {
	for name, guard := range map[string]sluice.Guard{
		"none":   sluice.Chain(),
		"nil":    sluice.Chain(nil, nil),
		"nested": sluice.Chain(sluice.Chain(), nil, sluice.Chain(sluice.Chain(nil))),
	} {
		j := &journal{}
		require.NoError(t, guard.Do(t.Context(), j.doing(pass)), name)
		assert.Same(t, errDown, guard.Do(t.Context(), j.doing(fails)), name)
		assert.Equal(t, "panicked: call", ending(func() { _ = guard.Do(t.Context(), j.doing(panics)) }), name)
		v, err := sluice.Call(t.Context(), guard, func(context.Context) (int, error) { return 3, errDown })
		assert.Same(t, errDown, err, name)
		assert.Equal(t, 3, v, name)
	}
}

// A chain within a chain is laid flat, and stays what it was.
func TestChain_NestedIsTheSameAsFlat(t *testing.T) {
	j := &journal{}
	inner := sluice.Chain(j.toll("b"), j.toll("c"))
	outer := sluice.Chain(j.toll("a"), inner, sluice.Chain(sluice.Chain(j.toll("d"), j.foreign("f")), j.toll("e")))
	longer := sluice.Chain(inner, j.toll("x"))

	require.NoError(t, outer.Do(t.Context(), j.doing(pass)))
	assert.Equal(t, []string{
		"a admits", "b admits", "c admits", "d admits", "f enters", "e admits", "call",
		"e settles: ok", "f leaves: ok", "d settles: ok", "c settles: ok", "b settles: ok", "a settles: ok",
	}, j.lines)

	j.lines = nil
	require.NoError(t, longer.Do(t.Context(), j.doing(pass)))
	assert.Equal(t, []string{"b admits", "c admits", "x admits", "call", "x settles: ok", "c settles: ok", "b settles: ok"}, j.lines)

	j.lines = nil
	require.NoError(t, inner.Do(t.Context(), j.doing(pass)))
	assert.Equal(t, []string{"b admits", "c admits", "call", "c settles: ok", "b settles: ok"}, j.lines)
}

// Several chains may be built on one: none writes into what another runs.
func TestChain_NestedInSeveral(t *testing.T) {
	for n := range 6 {
		j := &journal{}
		var guards []sluice.Guard
		for i := range n {
			guards = append(guards, j.toll(fmt.Sprint("s", i)))
		}
		shared := sluice.Chain(guards...)
		x := sluice.Chain(shared, j.toll("x"))
		y := sluice.Chain(shared, j.toll("y"))
		require.NoError(t, shared.Do(t.Context(), j.doing(pass)))
		require.NoError(t, y.Do(t.Context(), j.doing(pass)))
		require.NoError(t, x.Do(t.Context(), j.doing(pass)))

		var want []string
		for _, last := range []string{"", "y", "x"} {
			for i := range n {
				want = append(want, fmt.Sprintf("s%d admits", i))
			}
			if last != "" {
				want = append(want, last+" admits", "call", last+" settles: ok")
			} else {
				want = append(want, "call")
			}
			for i := range n {
				want = append(want, fmt.Sprintf("s%d settles: ok", n-1-i))
			}
		}
		assert.Equal(t, want, j.lines)
	}
}

func TestChain_KeepsItsGuardsWhenTheSliceChanges(t *testing.T) {
	j := &journal{}
	guards := []sluice.Guard{j.toll("a"), j.toll("b")}
	guard := sluice.Chain(guards...)
	guards[0], guards[1] = nil, j.toll("x")
	require.NoError(t, guard.Do(t.Context(), j.doing(pass)))
	assert.Equal(t, []string{"a admits", "b admits", "call", "b settles: ok", "a settles: ok"}, j.lines)
}

func TestChain_ReturnsTheErrorAsItIs(t *testing.T) {
	for _, guards := range []func(*journal) []sluice.Guard{
		func(j *journal) []sluice.Guard { return []sluice.Guard{j.toll("a")} },
		func(j *journal) []sluice.Guard { return []sluice.Guard{j.toll("a"), j.toll("b")} },
		func(j *journal) []sluice.Guard { return []sluice.Guard{j.toll("a"), j.foreign("f"), j.toll("b")} },
	} {
		j := &journal{}
		assert.Same(t, errDown, sluice.Chain(guards(j)...).Do(t.Context(), j.doing(fails)))
		assert.Contains(t, j.lines, "a settles: connection refused", "everyone hears how the call ended")
	}
}

// What an inner guard refuses was not called, and those further out hear that: the
// error that they are told is the refusal, so they give back what they took.
func TestChain_ARefusalSettlesThoseFurtherOut(t *testing.T) {
	for name, c := range map[string]struct {
		guards func(*journal) (guards []sluice.Guard, refusal error)
		want   []string
	}{
		"the first": {
			func(j *journal) ([]sluice.Guard, error) {
				a := j.toll("a", refuse)
				return []sluice.Guard{a, j.toll("b")}, a.refusal
			},
			[]string{"a refuses"},
		},
		"the last of three": {
			func(j *journal) ([]sluice.Guard, error) {
				c := j.toll("c", refuse)
				return []sluice.Guard{j.toll("a"), j.toll("b"), c}, c.refusal
			},
			[]string{"a admits", "b admits", "c refuses", "b settles: c: full", "a settles: c: full"},
		},
		"one of the second piece": {
			func(j *journal) ([]sluice.Guard, error) {
				f := j.toll("f", refuse)
				return []sluice.Guard{j.toll("a"), j.toll("b"), j.toll("c"), j.toll("d"), j.toll("e"), f, j.toll("g")}, f.refusal
			},
			[]string{
				"a admits", "b admits", "c admits", "d admits", "e admits", "f refuses",
				"e settles: f: full", "d settles: f: full", "c settles: f: full", "b settles: f: full", "a settles: f: full",
			},
		},
		"a foreign one": {
			func(j *journal) ([]sluice.Guard, error) {
				f := j.foreign("f", refuse)
				return []sluice.Guard{j.toll("a"), f, j.toll("b")}, f.refusal
			},
			[]string{"a admits", "f refuses", "a settles: f: full"},
		},
		"one behind a foreign one": {
			func(j *journal) ([]sluice.Guard, error) {
				b := j.toll("b", refuse)
				return []sluice.Guard{j.toll("a"), j.foreign("f"), b}, b.refusal
			},
			[]string{"a admits", "f enters", "b refuses", "f leaves: b: full", "a settles: b: full"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			j := &journal{}
			guards, refusal := c.guards(j)
			assert.Same(t, refusal, sluice.Chain(guards...).Do(t.Context(), j.doing(pass)))
			assert.Equal(t, c.want, j.lines)
		})
	}
}

// A guard that calls again asks those further in again: each attempt is an
// admission of its own, settled before the next.
func TestChain_EachAttemptIsAdmitted(t *testing.T) {
	j := &journal{}
	retry := j.foreign("retry")
	retry.retries = true
	require.Same(t, errDown, sluice.Chain(j.toll("a"), retry, j.toll("b")).Do(t.Context(), j.doing(fails)))
	assert.Equal(t, []string{
		"a admits", "retry enters",
		"b admits", "call", "call fails", "b settles: connection refused", "retry retries",
		"b admits", "call", "call fails", "b settles: connection refused",
		"retry leaves: connection refused", "a settles: connection refused",
	}, j.lines)
}
