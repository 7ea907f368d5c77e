package sluice_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stage"
)

func TestPriority_LowerIsMoreImportant(t *testing.T) {
	classes := []sluice.Priority{sluice.P2, sluice.P0, sluice.P1}
	slices.Sort(classes)
	assert.Equal(t, []sluice.Priority{sluice.P0, sluice.P1, sluice.P2}, classes)
	assert.Zero(t, sluice.P1, "what does not say is in the middle")
}

func TestPriority_Text(t *testing.T) {
	for p, want := range map[sluice.Priority]string{
		sluice.P0: "P0",
		sluice.P1: "P1",
		sluice.P2: "P2",
		-2:        "Priority(-2)",
		3:         "Priority(3)",
	} {
		assert.Equal(t, want, p.String())
		text, err := json.Marshal(map[sluice.Priority]sluice.Priority{p: p})
		require.NoError(t, err)
		assert.Equal(t, `{"`+want+`":"`+want+`"}`, string(text))
	}
}

func TestPriorityOf(t *testing.T) {
	ctx := t.Context()
	assert.Equal(t, sluice.P1, sluice.PriorityOf(ctx), "none was set")

	urgent := sluice.WithPriority(ctx, sluice.P0)
	later := sluice.WithPriority(urgent, sluice.P2)
	middle := sluice.WithPriority(later, sluice.P1)
	child, cancel := context.WithCancel(later)
	cancel()
	for _, c := range []struct {
		ctx  context.Context
		want sluice.Priority
	}{
		{ctx, sluice.P1},
		{urgent, sluice.P0},
		{later, sluice.P2},
		{middle, sluice.P1},
		{child, sluice.P2},
		{context.WithoutCancel(child), sluice.P2},
		{sluice.Bypass(later), sluice.P2},
		{stage.WithProbe(later), sluice.P2},
	} {
		assert.Equal(t, c.want, sluice.PriorityOf(c.ctx), "the innermost that was set")
	}
}

func TestIsProbe(t *testing.T) {
	ctx := t.Context()
	probe := stage.WithProbe(ctx)
	assert.False(t, sluice.IsProbe(ctx))
	assert.False(t, sluice.IsProbe(sluice.Bypass(sluice.WithPriority(ctx, sluice.P0))), "other marks are others")
	assert.True(t, sluice.IsProbe(probe))
	assert.True(t, sluice.IsProbe(sluice.Bypass(sluice.WithPriority(probe, sluice.P2))), "it is inherited")
}

// What passes by is neither refused nor counted: no guard hears of it.
func TestBypass_PassesByAllGuards(t *testing.T) {
	for name, guards := range map[string]func(*journal) sluice.Guard{
		"a stage":            func(j *journal) sluice.Guard { return j.toll("a", refuse) },
		"a foreign guard":    func(j *journal) sluice.Guard { return j.foreign("f", refuse) },
		"an empty chain":     func(*journal) sluice.Guard { return sluice.Chain() },
		"a chain of stages":  func(j *journal) sluice.Guard { return sluice.Chain(j.toll("a"), j.toll("b", refuse)) },
		"a chain of foreign": func(j *journal) sluice.Guard { return sluice.Chain(j.foreign("f"), j.foreign("g")) },
		"a mixed chain":      func(j *journal) sluice.Guard { return sluice.Chain(j.toll("a"), j.foreign("f"), j.toll("b")) },
	} {
		t.Run(name, func(t *testing.T) {
			j := &journal{}
			g := guards(j)
			ctx := sluice.Bypass(t.Context())
			var given context.Context
			call := func(ctx context.Context) (int, error) {
				given = ctx
				return 7, nil
			}

			v, err := sluice.Call(ctx, g, call)
			require.NoError(t, err)
			assert.Equal(t, 7, v)
			assert.Equal(t, ctx, given)

			v, err = sluice.CallOr(sluice.WithPriority(ctx, sluice.P2), g, call, func(context.Context, error) (int, error) {
				return 0, errDown
			})
			require.NoError(t, err)
			assert.Equal(t, 7, v)
			assert.True(t, stage.Bypassed(given), "guards further in are passed by as well")

			chained := sluice.Chain(g)
			require.NoError(t, chained.Do(ctx, func(context.Context) error { return nil }))
			require.Equal(t, errDown, chained.Do(ctx, func(context.Context) error { return errDown }))
			assert.Empty(t, j.lines)
		})
	}
}

// It is about the ways in that compose guards. Who asks one guard by name gets
// what it asks for.
func TestBypass_LeavesTheMethodsOfASingleGuardAlone(t *testing.T) {
	j := &journal{}
	err := j.foreign("f", refuse).Do(sluice.Bypass(t.Context()), j.doing(pass))
	require.ErrorIs(t, err, sluice.ErrRejected)
	assert.Equal(t, []string{"f refuses"}, j.lines)
}

// A guard may let some calls pass by all those further in, flat or nested.
func TestBypass_CanBeSetWithinAChain(t *testing.T) {
	j := &journal{}
	for _, guard := range []sluice.Guard{
		sluice.Chain(j.toll("a"), bypasses{}, j.toll("b", refuse)),
		sluice.Chain(j.toll("a"), bypasses{}, sluice.Chain(j.toll("b", refuse), j.foreign("f", refuse))),
	} {
		j.lines = nil
		require.NoError(t, guard.Do(t.Context(), j.doing(pass)))
		require.NoError(t, callThrough(t.Context(), guard, j.doing(pass)))
		assert.Equal(t, []string{"a admits", "call", "a settles: ok", "a admits", "call", "a settles: ok"}, j.lines)
	}
}

type bypasses struct{}

func (bypasses) Do(ctx context.Context, call func(context.Context) error) error {
	return call(sluice.Bypass(ctx))
}

func TestBypass_IsNotForTheParent(t *testing.T) {
	j := &journal{}
	ctx := t.Context()
	_ = sluice.Bypass(ctx)
	require.NoError(t, sluice.Chain(j.toll("a")).Do(ctx, j.doing(pass)))
	assert.Equal(t, []string{"a admits", "call", "a settles: ok"}, j.lines)
}
