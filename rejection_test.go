package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// rejection is a refusal with all that a Rejection tells.
type rejection struct {
	name string
	wait time.Duration
}

func (r *rejection) Error() string             { return r.name + ": full" }
func (r *rejection) Unwrap() error             { return sluice.ErrRejected }
func (r *rejection) Resource() string          { return r.name }
func (r *rejection) Policy() string            { return "slots" }
func (r *rejection) Reason() string            { return "full" }
func (r *rejection) RetryAfter() time.Duration { return r.wait }

// It is found by those who know nothing of this module.
func TestErrTimeout_IsADeadlineAndANetworkTimeout(t *testing.T) {
	for name, err := range map[string]error{
		"bare":    sluice.ErrTimeout,
		"wrapped": fmt.Errorf("get user: %w", sluice.ErrTimeout),
		"marked":  sluice.Mark(sluice.ErrTimeout, sluice.Failure),
		"joined":  errors.Join(errDown, sluice.ErrTimeout),
	} {
		require.ErrorIs(t, err, sluice.ErrTimeout, name)
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.NotErrorIs(t, err, context.Canceled, name)
		require.NotErrorIs(t, err, sluice.ErrRejected, "%s: the call was made", name)
		var timeout interface{ Timeout() bool }
		require.ErrorAs(t, err, &timeout, name)
		assert.True(t, timeout.Timeout(), name)
	}
	var network net.Error
	require.ErrorAs(t, sluice.ErrTimeout, &network)
	assert.NotErrorIs(t, context.DeadlineExceeded, sluice.ErrTimeout, "the caller's deadline is no limit of ours")
}

func TestErrTimeout_IsTheCauseOfACtxThatWeEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, sluice.ErrTimeout)
		defer cancel()
		<-ctx.Done()
		assert.Equal(t, context.DeadlineExceeded, ctx.Err())
		assert.Equal(t, sluice.ErrTimeout, context.Cause(ctx))
	})
}

func TestRejection_IsFoundAndMatches(t *testing.T) {
	err := fmt.Errorf("get user: %w", sluice.Mark(&rejection{name: "users", wait: time.Second}, sluice.Ignored))
	require.ErrorIs(t, err, sluice.ErrRejected)
	var r sluice.Rejection
	require.ErrorAs(t, err, &r)
	assert.Equal(t, "users slots full 1s", fmt.Sprint(r.Resource(), " ", r.Policy(), " ", r.Reason(), " ", r.RetryAfter()))
}

func TestWithRetryAfter_NilStaysNil(t *testing.T) {
	require.NoError(t, sluice.WithRetryAfter(nil, time.Second))
	_, ok := sluice.RetryAfter(nil)
	assert.False(t, ok)
}

func TestWithRetryAfter_IsTransparent(t *testing.T) {
	cause := fmt.Errorf("query: %w", timedOut{})
	err := sluice.WithRetryAfter(cause, time.Second)
	assert.EqualError(t, err, cause.Error())
	require.ErrorIs(t, err, cause)
	require.ErrorIs(t, err, errDown, "an Is method further in is asked")
	var found timedOut
	require.ErrorAs(t, err, &found)
	assert.NotErrorIs(t, err, sluice.ErrRejected, "the call was made")
	assert.Same(t, errDown, errors.Unwrap(sluice.WithRetryAfter(errDown, time.Second)))
	assert.Equal(t, sluice.Failure, sluice.Classify(t.Context(), err), "it says when, not what")
}

func TestRetryAfter(t *testing.T) {
	const none = -time.Hour // stands for: the error asks for nothing
	asked := sluice.WithRetryAfter(errDown, 7*time.Second)
	full := &rejection{name: "slots", wait: 3 * time.Second}
	unknown, never := &rejection{name: "unknown"}, &rejection{name: "never", wait: -1}
	for name, c := range map[string]struct {
		err  error
		want time.Duration
	}{
		"no error":                   {nil, none},
		"one that does not say":      {errDown, none},
		"a refusal that has no more": {sluice.ErrRejected, none},

		"as the dependency asks":        {asked, 7 * time.Second},
		"wrapped":                       {fmt.Errorf("get user: %w", asked), 7 * time.Second},
		"joined":                        {errors.Join(errDown, asked), 7 * time.Second},
		"marked":                        {sluice.Mark(asked, sluice.Throttled), 7 * time.Second},
		"attached to what is marked":    {sluice.WithRetryAfter(sluice.Ignore(errDown), time.Second), time.Second},
		"zero means at once":            {sluice.WithRetryAfter(errDown, 0), 0},
		"twice: the outermost":          {sluice.WithRetryAfter(fmt.Errorf("x: %w", asked), time.Minute), time.Minute},
		"twice: also if that is zero":   {sluice.WithRetryAfter(asked, 0), 0},
		"joined twice: the first":       {errors.Join(asked, sluice.WithRetryAfter(errDown, time.Minute)), 7 * time.Second},
		"a refusal's own":               {full, 3 * time.Second},
		"a refusal's own, wrapped":      {sluice.Ignore(fmt.Errorf("get user: %w", full)), 3 * time.Second},
		"a refusal that does not know":  {unknown, none},
		"never, by a refusal":           {never, -1},
		"attached to a refusal":         {sluice.WithRetryAfter(full, time.Minute), time.Minute},
		"attached to never":             {sluice.WithRetryAfter(never, time.Minute), time.Minute},
		"attached to an unknown":        {sluice.WithRetryAfter(unknown, 0), 0},
		"attached, beside a refusal":    {errors.Join(full, asked), 7 * time.Second},
		"attached, within a refusal":    {fmt.Errorf("%w: %w", full, asked), 7 * time.Second},
		"attached, beside a known one":  {errors.Join(asked, full), 7 * time.Second},
		"attached, beside an unknown":   {errors.Join(unknown, asked), 7 * time.Second},
		"attached, beside one of never": {errors.Join(never, asked), 7 * time.Second},
	} {
		d, ok := sluice.RetryAfter(c.err)
		if c.want == none {
			assert.False(t, ok, name)
			assert.Zero(t, d, name)
			continue
		}
		assert.True(t, ok, name)
		assert.Equal(t, c.want, d, name)
	}
}
