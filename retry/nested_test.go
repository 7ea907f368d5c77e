package retry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stage"
)

// Three attempts inside three are three: the policy that is closest repeats, and what
// it gives up is given up.
func TestNested_DoesNotMultiply(t *testing.T) {
	for _, depth := range []int{2, 3} {
		synctest.Test(t, func(t *testing.T) {
			var guards []sluice.Guard
			var policies []*Policy
			for range depth {
				policies = append(policies, build(t))
				guards = append(guards, policies[len(policies)-1])
			}
			d := answering(errDown)
			err := sluice.Chain(guards...).Do(t.Context(), d.call)
			assert.Len(t, d.calls, 3)
			assert.Equal(t, 3, gaveUp(t, err).Attempts())
			assert.Equal(t, fmt.Sprintf(`retry "payments": gave up after 3 attempts: %v`, errDown), err.Error(), "told once")
			for _, outer := range policies[:depth-1] {
				assert.EqualValues(t, 1, outer.Snapshot().GivenUp.Nested)
				assert.Zero(t, outer.Snapshot().Retries)
			}
		})
	}
}

// Something between the two may hide that the inner one has given up. Its next calls
// are then further attempts already, and made once: 3 + 1 + 1, not 9.
func TestNested_WithoutTheError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer, inner, d := build(t), build(t), answering(errDown)
		hides := func(ctx context.Context) error { return errors.New(inner.Do(ctx, d.call).Error()) }
		err := outer.Do(t.Context(), hides)
		assert.Len(t, d.calls, 3+1+1)
		assert.Equal(t, 3, gaveUp(t, err).Attempts())
		var numbers []int
		for _, ctx := range d.ctx {
			numbers = append(numbers, AttemptOf(ctx))
		}
		assert.Equal(t, []int{1, 2, 3, 2, 3}, numbers)
		assert.EqualValues(t, 2, inner.Snapshot().GivenUp.Nested)
		assert.EqualValues(t, 2, inner.Snapshot().Retries)
	})
}

// The inner policy's refusals to repeat are no reason for the outer one to do it,
// whatever they are; an error of an inner policy that repeats nothing is.
func TestNested_WhatTheInnerOneHasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		empty, err := NewBudget("payments", WithRatio(0), WithMinPerSecond(0))
		require.NoError(t, err)
		for name, c := range map[string]struct {
			inner *Policy
			err   error
			calls int
		}{
			"no budget":    {build(t, WithBudget(empty)), errDown, 1},
			"a long wait":  {build(t), sluice.WithRetryAfter(errDown, time.Hour), 1},
			"one attempt":  {build(t, WithAttempts(1)), errDown, 3},
			"nil":          {nil, errDown, 3},
			"not repeated": {build(t), sluice.Ignore(errDown), 1},
		} {
			d := answering(c.err)
			_ = sluice.Chain(build(t), c.inner).Do(t.Context(), d.call)
			assert.Len(t, d.calls, c.calls, name)
		}
	})
}

// Whoever repeats calls by himself can say so.
func TestWithoutRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := build(t), answering(errDown)
		ctx := WithoutRetries(t.Context())
		assert.Equal(t, errDown, p.Do(ctx, d.call), "as it is, so that a policy further out can repeat it")
		assert.Len(t, d.calls, 1)
		assert.Equal(t, 1, AttemptOf(ctx))
		assert.EqualValues(t, 1, p.Snapshot().GivenUp.Nested)
		assert.Equal(t, 3, AttemptOf(WithoutRetries(withAttempt(ctx, 3))))
	})
}

// The probe of a half-open breaker is one call.
func TestProbe_IsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := build(t), answering(errDown)
		assert.Equal(t, errDown, p.Do(stage.WithProbe(t.Context()), d.call))
		assert.Len(t, d.calls, 1)
		assert.EqualValues(t, 1, p.Snapshot().GivenUp.Probe)
	})
}

// A hedge inside a policy, with one budget for both: a call is one call to it, and a
// further attempt is not hedged.
func TestNested_HedgeInPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := NewBudget("payments", WithRatio(0.5), WithMinPerSecond(1))
		require.NoError(t, err)
		p := build(t, WithBudget(b))
		h := hedger(t, 10*tick, WithHedgeBudget(b))
		var mu sync.Mutex
		var numbers []int
		call := func(ctx context.Context) (int, error) {
			mu.Lock()
			numbers = append(numbers, AttemptOf(ctx))
			mu.Unlock()
			time.Sleep(20 * tick)
			return 0, errDown
		}
		_, err = sluice.Call(t.Context(), p, func(ctx context.Context) (int, error) { return Hedge(ctx, h, call, nil) })
		assert.Equal(t, 3, gaveUp(t, err).Attempts())
		quiet()
		assert.Equal(t, []int{1, 2, 2, 3}, numbers, "the first and its hedge, the second and the third attempt")
		s := b.Snapshot()
		assert.EqualValues(t, 1, s.Deposits)
		assert.EqualValues(t, 3, s.Withdrawals)
	})
}

// The other way round: the first attempt may repeat, the hedge may not.
func TestNested_PolicyInHedge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := NewBudget("payments")
		require.NoError(t, err)
		p := build(t, WithBudget(b), WithBackoff(100*tick, time.Second))
		h := hedger(t, 10*tick, WithHedgeBudget(b))
		var calls atomic.Int64
		_, err = Hedge(t.Context(), h, func(ctx context.Context) (int, error) {
			return sluice.Call(ctx, p, func(context.Context) (int, error) { calls.Add(1); return 0, errDown })
		}, nil)
		assert.ErrorIs(t, err, errDown)
		assert.EqualValues(t, 3+1, calls.Load())
		s := b.Snapshot()
		assert.EqualValues(t, 1, s.Deposits)
		assert.EqualValues(t, 3, s.Withdrawals)
	})
}

// Without a Hedger nothing is marked: the first attempt has the ctx of its caller.
func TestNested_MarksNoFirstAttemptForNothing(t *testing.T) {
	b, err := NewBudget("payments")
	require.NoError(t, err)
	p := build(t, WithBudget(b))
	first := func() (got context.Context) {
		require.NoError(t, p.Do(t.Context(), func(ctx context.Context) error { got = ctx; return nil }))
		return got
	}
	assert.Equal(t, t.Context(), first())
	hedger(t, tick, WithHedgeBudget(b))
	assert.NotEqual(t, t.Context(), first())
	assert.EqualValues(t, 2, b.Snapshot().Deposits)
}
