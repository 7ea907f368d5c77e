package sluice_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// The call and all guards further in see that it is a probe, those further out do
// not: it is not theirs.
func TestChain_MarksProbesForThoseFurtherIn(t *testing.T) {
	j := &journal{}
	probing := j.toll("b")
	probing.probe = true
	guard := sluice.Chain(j.toll("a"), probing, j.toll("c"), j.foreign("f"), j.toll("d"))
	require.NoError(t, guard.Do(t.Context(), j.doing(pass)))
	assert.Equal(t, []string{
		"a admits", "b admits", "c admits a probe", "f enters a probe", "d admits a probe", "call a probe",
		"d settles: ok", "f leaves: ok", "c settles: ok", "b settles: ok", "a settles: ok",
	}, j.lines)

	probing.probe = false
	j.lines = nil
	require.NoError(t, guard.Do(t.Context(), j.doing(pass)))
	assert.Contains(t, j.lines, "call", "the next call is none")
}

type keyOf struct{}

// The ctx of the caller reaches everyone, with what a foreign guard adds to it for
// those further in.
func TestChain_PassesTheCtxOn(t *testing.T) {
	heard := func(into *[]context.Context) func(context.Context, int64) {
		return func(ctx context.Context, _ int64) { *into = append(*into, ctx) }
	}
	var outer, inner, called []context.Context
	j := &journal{}
	a, b, c := j.toll("a"), j.toll("b"), j.toll("c")
	a.hears, b.hears, c.hears = heard(&outer), heard(&outer), heard(&inner)
	ctx := context.WithValue(t.Context(), keyOf{}, "caller")
	err := sluice.Chain(a, b, adds{"foreign"}, c).Do(ctx, func(ctx context.Context) error {
		called = append(called, ctx)
		return nil
	})
	require.NoError(t, err)
	assert.Equal(t, []context.Context{ctx, ctx, ctx, ctx}, outer, "two admit and two settle")
	require.Len(t, inner, 2)
	assert.Equal(t, inner[0], inner[1], "a stage settles with the ctx that it admitted")
	assert.Equal(t, "foreign", inner[0].Value(keyOf{}))
	assert.Equal(t, inner[:1], called)
}

// adds is a Guard that gives the call a ctx with a value.
type adds struct{ value string }

func (a adds) Do(ctx context.Context, call func(context.Context) error) error {
	return call(context.WithValue(ctx, keyOf{}, a.value))
}

// A ctx that is done already is refused with its own error before any stage is
// asked: it is no local refusal, and nothing is spent.
func TestChain_ADoneCtxAsksNoStage(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	for ctx, want := range map[context.Context]error{cancelled: context.Canceled, late: context.DeadlineExceeded} {
		j := &journal{}
		for _, guard := range []sluice.Guard{
			sluice.Chain(j.toll("a")),
			sluice.Chain(j.toll("a"), j.toll("b")),
			sluice.Chain(j.toll("a"), j.foreign("f"), j.toll("b")),
		} {
			assert.Equal(t, want, guard.Do(ctx, j.doing(pass)))
			assert.Equal(t, want, callThrough(ctx, guard, j.doing(pass)))
		}
		assert.Equal(t, want, callThrough(ctx, j.toll("a"), j.doing(pass)))
		assert.Empty(t, j.lines)
	}
}
