package breaker

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Refused calls went into the statistics that refused them, so that recovery
// waited for its own refusals to be forgotten:
// https://github.com/zeromicro/go-zero/pull/5551,
// https://github.com/zeromicro/go-zero/issues/3837,
// https://github.com/go-kratos/kratos/issues/2777.
func TestT19_OwnRefusalsFeedNothing(t *testing.T) {
	s := newStory(t, WithErrorRatio(0.5), WithMinRequests(20), WithOpenFor(time.Second), WithBackoff(1, Auto))
	admitted, refused, last := 0, 0, 0
	for i := range 10_000 { // a thousand a second; down from 2 s to 5 s
		s.now = at(float64(i) / 1000)
		p, err := s.b.allow(t.Context(), s.now)
		if err != nil {
			refused, last = refused+1, i
			continue
		}
		if admitted++; i >= 2000 && i < 5000 {
			p.done(s.now, errDown)
		} else {
			p.done(s.now, nil)
		}
	}
	assert.LessOrEqual(t, last, 5000+1000+1, "all pass again after one open period and one probe")
	totals := s.snap().Totals
	assert.EqualValues(t, admitted, totals.Success+totals.Failure)
	assert.EqualValues(t, refused, s.snap().Refused.Open+s.snap().Refused.HalfOpen)
	probe := last + 1
	assert.EqualValues(t, 10_000-probe-1, s.snap().Window.Total, "since it closed, and not one refusal")
	assert.Zero(t, s.snap().Window.Failures)
}

// What an inner guard refused says nothing about the backend either, and no
// classifier is asked about it.
func TestT19_InnerRefusalsFeedNothing(t *testing.T) {
	inner := build(t)
	require.NoError(t, inner.Trip(time.Hour))
	b := build(t, WithErrorCount(1), WithClassifier(func(context.Context, error) Verdict {
		t.Error("asked about a local refusal")
		return Verdict{Outcome: sluice.Failure}
	}))
	chain := sluice.Chain(b, inner)
	for range 5 {
		require.ErrorIs(t, chain.Do(t.Context(), func(context.Context) error { return nil }), ErrOpen)
		require.ErrorIs(t, b.Do(t.Context(), func(ctx context.Context) error {
			return fmt.Errorf("wrapped: %w", inner.Do(ctx, func(context.Context) error { return nil }))
		}), ErrOpen)
	}
	got := b.Snapshot()
	assert.Equal(t, Closed, got.State)
	assert.Zero(t, got.Window.Total)
	assert.EqualValues(t, 10, got.Totals.Ignored)
	assert.EqualValues(t, 10, inner.Snapshot().Refused.Open)
}

// Clients that went away, or that had next to no time left, opened the breaker for
// all others: https://github.com/afex/hystrix-go/pull/79,
// https://github.com/rubyist/circuitbreaker/pull/42,
// https://github.com/zeromicro/go-zero/pull/4091,
// https://github.com/zeromicro/go-zero/pull/4112,
// https://github.com/Instawork/llm-proxy/pull/52 (five calls with one second left
// had 370 others refused).
func TestT25_CallersEndIsNotTheBackendsFault(t *testing.T) {
	t.Run("cancelled by the client", func(t *testing.T) {
		s := newStory(t).tell(step{0, times(100, X), Closed})
		assert.Zero(t, s.snap().Window.Total)
		assert.EqualValues(t, 100, s.snap().Totals.Ignored)
	})
	t.Run("already over", func(t *testing.T) {
		b := build(t, WithErrorCount(1))
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errors.New("the client hung up"))
		err := b.Do(ctx, func(context.Context) error { t.Error("the call ran"); return nil })
		assert.Equal(t, context.Canceled, err)
		assert.NotErrorIs(t, err, ErrOpen)
		assert.NotErrorIs(t, err, sluice.ErrRejected)
		_, err = b.Allow(ctx)
		assert.Equal(t, context.Canceled, err)
		assert.Equal(t, TotalsSnapshot{}, b.Snapshot().Totals)
		assert.Equal(t, RefusedSnapshot{}, b.Snapshot().Refused)
	})
	t.Run("too little time left", func(t *testing.T) {
		newStory(t, WithErrorCount(1), WithMinBudget(500*time.Millisecond)).tell(
			step{0, times(100, late(10*time.Millisecond)), Closed},
			step{5, late(500*time.Millisecond - 1), Closed},
			step{6, late(500 * time.Millisecond), Open},
		)
	})
	t.Run("the slow limit is the least time", func(t *testing.T) {
		newStory(t, WithErrorCount(1), WithSlowCallRatio(time.Second, 1, MinRequests(1000))).tell(
			step{0, late(time.Second - 1), Closed},
			step{2, late(time.Second), Open},
		)
	})
	t.Run("a limit of ours further out", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := build(t, WithErrorCount(1), WithMinBudget(time.Second))
			ctx, cancel := context.WithTimeoutCause(t.Context(), 500*time.Millisecond, sluice.ErrTimeout)
			defer cancel()
			err := b.Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, Open, b.State(), "a failure, whatever the budget")
		})
	})
	t.Run("a limit further in", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			b := build(t, WithErrorCount(1), WithMinBudget(time.Second))
			err := b.Do(t.Context(), func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
				defer cancel()
				<-ctx.Done()
				return ctx.Err()
			})
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.Equal(t, Open, b.State())
		})
	})
	t.Run("marked, through wrapping", func(t *testing.T) {
		b := build(t, WithErrorCount(1))
		err := fmt.Errorf("no such row: %w", sluice.Ignore(errDown))
		assert.Equal(t, err, b.Do(t.Context(), func(context.Context) error { return err }))
		assert.Equal(t, Closed, b.State())
		assert.Zero(t, b.Snapshot().Window.Total)
	})
}

// The open error said neither which breaker nor for how long, and was retried at
// once: https://github.com/failsafe-lib/failsafe/issues/188,
// https://github.com/grafana/mimir/pull/7324,
// https://github.com/cockroachdb/cockroach/issues/55869.
func TestT36_RefusalTellsWhoWhyAndForHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := build(t, WithErrorCount(1, OpenFor(20*time.Second)), WithRecovery(Step{0.000001, time.Minute}))
		fail := func(context.Context) error { return errDown }
		refusal := func(reason string, after time.Duration) Cause {
			t.Helper()
			err := b.Do(t.Context(), func(context.Context) error { t.Error("the call ran"); return nil })
			require.ErrorIs(t, err, ErrOpen)
			require.ErrorIs(t, err, sluice.ErrRejected, "which no guard counts and no retry repeats")
			assert.NotContains(t, err.Error(), "%!")
			assert.Contains(t, err.Error(), "payments")
			var refused sluice.Rejection
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, "payments", refused.Resource())
			assert.Equal(t, "breaker", refused.Policy())
			assert.Equal(t, reason, refused.Reason())
			assert.Equal(t, after, refused.RetryAfter())
			var open *OpenError
			require.ErrorAs(t, err, &open)
			return open.Cause()
		}
		require.ErrorIs(t, b.Do(t.Context(), fail), errDown)
		cause := refusal(ReasonOpen, 20*time.Second)
		assert.Equal(t, RuleTripped, cause.Reason)
		assert.Equal(t, ErrorCount, cause.Rule.Kind)
		time.Sleep(15 * time.Second)
		refusal(ReasonOpen, 5*time.Second)
		assert.ErrorIs(t, b.Peek(), ErrOpen)

		time.Sleep(5 * time.Second)
		assert.NoError(t, b.Peek())
		probe, err := b.Allow(t.Context())
		require.NoError(t, err)
		assert.ErrorIs(t, b.Peek(), ErrOpen)
		refusedAgain := b.Do(t.Context(), fail)
		var refused sluice.Rejection
		require.ErrorAs(t, refusedAgain, &refused)
		assert.Equal(t, ReasonHalfOpen, refused.Reason())
		probe.Done(nil)

		refusal(ReasonRecovering, 0)
		require.NoError(t, b.Force(ForcedOpen, time.Hour))
		refusal(ReasonForcedOpen, time.Hour)
		assert.ErrorIs(t, b.Peek(), ErrOpen)
		require.NoError(t, b.Force(ForcedOpen, 0))
		var forced sluice.Rejection
		require.ErrorAs(t, b.Peek(), &forced)
		assert.LessOrEqual(t, forced.RetryAfter(), time.Duration(0), "nobody knows, or never")
	})
}
