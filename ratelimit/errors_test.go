package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A word more and the compiler passes decisions through memory.
func TestDecision_FitsInFourWords(t *testing.T) {
	assert.LessOrEqual(t, unsafe.Sizeof(Decision{}), uintptr(32))
}

func TestLimitError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(10), WithBurst(5))
		assert.NoError(t, l.Take(5).Err())
		for _, tc := range []struct {
			n      int64
			reason string
			text   string
			is     []error
			retry  time.Duration
		}{
			{2, ReasonLimited, `ratelimit "test": limited: 2 of 10/s, 0 left, retry after 200ms`, nil, 200 * time.Millisecond},
			{6, ReasonExceedsCapacity, `ratelimit "test": exceeds_capacity: 6 of 10/s, 0 left, at most 5 at once`, []error{ErrExceedsCapacity}, -1},
			{-2, ReasonInvalid, `ratelimit "test": invalid: -2 of 10/s, 0 left`, nil, -1},
		} {
			err := fmt.Errorf("wrapped: %w", l.Take(tc.n).Err())
			var limited *LimitError
			require.ErrorAs(t, err, &limited)
			var refused sluice.Rejection
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, tc.text, limited.Error())
			assert.Equal(t, []string{"test", "token_bucket", tc.reason}, []string{refused.Resource(), refused.Policy(), refused.Reason()})
			assert.Equal(t, tc.retry, refused.RetryAfter())
			assert.EqualValues(t, tc.n, limited.Decision().Tokens())
			for _, target := range []error{ErrLimited, sluice.ErrRejected, ErrExceedsCapacity, ErrStore, context.DeadlineExceeded} {
				want := target == ErrLimited || target == sluice.ErrRejected || len(tc.is) > 0 && target == tc.is[0]
				assert.Equal(t, want, errors.Is(err, target), "%v is %v", err, target)
			}
			assert.Equal(t, sluice.Ignored, sluice.Classify(t.Context(), err))
			wait, ok := sluice.RetryAfter(err)
			assert.True(t, ok)
			assert.Equal(t, tc.retry, wait)
		}
	})
}

// A kept error counts down, and says never for ever.
func TestLimitError_RetryAfterCountsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(1))
		l.Take(1)
		limited, never := l.Take(1).Err().(*LimitError), l.Take(2).Err().(*LimitError)
		for _, want := range []time.Duration{time.Second, 600 * time.Millisecond, 200 * time.Millisecond, 0, 0} {
			assert.Equal(t, want, limited.RetryAfter())
			assert.Equal(t, time.Second, limited.Decision().RetryAfter(), "the decision stays what it was")
			assert.EqualValues(t, -1, never.RetryAfter())
			time.Sleep(400 * time.Millisecond)
		}
	})
}

// What a store-backed limiter says when its store is silent.
func TestLimitError_OfAStore(t *testing.T) {
	l := build(t, Every(time.Hour), WithInitial(0))
	err := l.Take(1).refusal(ReasonStore, context.DeadlineExceeded)
	assert.ErrorIs(t, err, ErrStore)
	assert.ErrorIs(t, err, ErrLimited)
	assert.ErrorIs(t, err, context.DeadlineExceeded, "its cause")
	assert.Contains(t, err.Error(), `ratelimit "test": store: 1 of 1/h, 0 left, retry after `)
	assert.Contains(t, err.Error(), ": context deadline exceeded")
}

// Do gives one refusal to all who are refused between one token and the next.
func TestDo_RefusalIsBuiltOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(1))
		require.NoError(t, l.Do(t.Context(), nothing))
		first := l.Do(t.Context(), nothing)
		time.Sleep(400 * time.Millisecond)
		second := l.Do(t.Context(), nothing)
		assert.Same(t, first, second)
		assert.Equal(t, 600*time.Millisecond, second.(*LimitError).RetryAfter())
		time.Sleep(time.Second)
		require.NoError(t, l.Do(t.Context(), nothing))
		third := l.Do(t.Context(), nothing)
		assert.NotSame(t, first, third)
		assert.Equal(t, time.Second, third.(*LimitError).RetryAfter())
		assert.Zero(t, first.(*LimitError).RetryAfter(), "the old one does not grow")
	})
}

func TestLevel_Text(t *testing.T) {
	for l, want := range map[Level]string{KeepLevel: "keep", ProportionalLevel: "proportional", ResetLevel: "reset", 0: "invalid", 9: "invalid"} {
		text, err := l.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, want, string(text))
	}
}
