package retry

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// byHand is Do, written with the steps.
func byHand(ctx context.Context, p *Policy, call func(context.Context) error) error {
	a, err := p.Begin(ctx)
	if err != nil {
		return err
	}
	for {
		attempt, end := a.Context(ctx)
		err := call(attempt)
		end()
		wait, again := a.Next(ctx, err)
		if !again || !a.Wait(ctx, wait) {
			return a.Err()
		}
	}
}

// The steps do what Do does, for whoever has no use for a function.
func TestAttempts_AreWhatDoDoes(t *testing.T) {
	for name, answers := range map[string][]error{
		"success": {nil}, "second": {errDown, nil}, "never": {errDown}, "refused": {errOpen}, "refused later": {errDown, errOpen},
		"answer": {sluice.Mark(errDown, sluice.Success)}, "ignored": {sluice.Ignore(errDown)},
		"asked to wait": {sluice.WithRetryAfter(errDown, time.Second), nil}, "for long": {sluice.WithRetryAfter(errDown, time.Hour)},
	} {
		for _, opts := range [][]Option{nil, {WithAttemptTimeout(time.Second)}} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					p, q := build(t, opts...), build(t, opts...)
					one, other := answering(answers...), answering(answers...)
					err := p.Do(ctx, one.call)
					other.began = time.Now()
					assert.Equal(t, err, byHand(ctx, q, other.call))
					assert.Equal(t, one.calls, other.calls)
					assert.Equal(t, p.Snapshot(), q.Snapshot())
				})
			})
		}
	}
}

func TestAttempts_Nil(t *testing.T) {
	var p *Policy
	a, err := p.Begin(t.Context())
	require.NoError(t, err)
	ctx, end := a.Context(t.Context())
	end()
	assert.Equal(t, t.Context(), ctx)
	assert.Zero(t, a.Limit(ctx))
	_, again := a.Next(ctx, errDown)
	assert.False(t, again)
	assert.Equal(t, errDown, a.Err())
	assert.Equal(t, 1, a.Made())
	_, again = a.Next(ctx, nil)
	assert.False(t, again)
	assert.NoError(t, a.Err())
	a.Done(errOpen)
	assert.Equal(t, errOpen, a.Err())
	assert.True(t, a.Wait(ctx, 0))
}

// Done ends a call that cannot be made twice, and counts it all the same.
func TestAttempts_Done(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := build(t)
		for i, c := range []struct {
			err      error
			deposits uint64
			made     int
		}{{errDown, 1, 1}, {nil, 2, 1}, {errOpen, 2, 0}} {
			a, err := p.Begin(t.Context())
			require.NoError(t, err)
			a.Done(c.err)
			assert.Equal(t, c.err, a.Err(), i)
			assert.Equal(t, c.made, a.Made(), i)
			assert.Equal(t, c.deposits, p.Budget().Snapshot().Deposits, i)
		}
		a, err := p.Begin(t.Context())
		require.NoError(t, err)
		_, again := a.Next(t.Context(), errDown)
		require.True(t, again)
		a.Done(errOpen) // a further attempt that was not made
		s := p.Snapshot()
		assert.EqualValues(t, 1, s.Budget.Withdrawals)
		assert.EqualValues(t, 1, s.Budget.Returned)
		assert.Zero(t, s.Retries)
	})
}

// Steps in an order that makes no sense do no harm.
func TestAttempts_OutOfOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := build(t)
		ctx, cancel := context.WithCancel(t.Context())
		a, err := p.Begin(ctx)
		require.NoError(t, err)
		assert.NoError(t, a.Err())
		cancel()
		assert.False(t, a.Wait(ctx, time.Hour))
		assert.Equal(t, context.Canceled, a.Err())
		_, again := a.Next(ctx, errDown)
		assert.False(t, again)
		_, again = a.Next(ctx, errDown)
		assert.False(t, again)
		assert.Equal(t, errDown, gaveUp(t, a.Err()).last)
		_, again = a.Next(t.Context(), errOpen)
		assert.False(t, again)
		assert.Error(t, a.Err())
	})
}

// deadlines are those that the attempts of a call saw, as what was left then.
func deadlines(t *testing.T, ctx context.Context, p *Policy, takes func(ctx context.Context)) (left []time.Duration) {
	t.Helper()
	err := p.Do(ctx, func(ctx context.Context) error {
		deadline, ok := ctx.Deadline()
		if !ok {
			left = append(left, 0)
		} else {
			left = append(left, time.Until(deadline))
		}
		takes(ctx)
		if err := ctx.Err(); err != nil {
			return err
		}
		return errDown
	})
	require.Error(t, err)
	return left
}

func hang(ctx context.Context) { <-ctx.Done() }
func fail(context.Context)     {}

// https://github.com/aws/aws-sdk/issues/508: a short first attempt, for most, and a
// long last one, for a change of leader that takes seconds.
func TestLimits_GrowWithEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := build(t, WithAttempts(4), WithAttemptTimeout(500*tick), WithAttemptGrowth(2))
		assert.Equal(t, []time.Duration{500 * tick, time.Second, 2 * time.Second, 4 * time.Second}, deadlines(t, t.Context(), p, hang))
		p = build(t, WithAttempts(3), WithAttemptTimeout(time.Second))
		assert.Equal(t, []time.Duration{time.Second, time.Second, time.Second}, deadlines(t, t.Context(), p, hang))
	})
}

// https://github.com/hashicorp/go-retryablehttp/issues/127: a first attempt that hangs
// used up the time of all. Shared out, each has its part of what is left, and the last
// one all of it.
func TestLimits_SplitTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		split := build(t, WithSplitDeadline(), WithBackoff(0, 0))
		ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		assert.Equal(t, []time.Duration{3 * time.Second, 3 * time.Second, 3 * time.Second}, deadlines(t, ctx, split, hang))

		ctx, cancel = context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		assert.Equal(t, []time.Duration{3 * time.Second, 4500 * tick, 9 * time.Second}, deadlines(t, ctx, split, fail), "what one leaves is the next one's")

		ctx, cancel = context.WithTimeout(t.Context(), 9*time.Second)
		defer cancel()
		both := build(t, WithSplitDeadline(), WithAttemptTimeout(time.Second), WithAttemptGrowth(10), WithBackoff(0, 0))
		assert.Equal(t, []time.Duration{time.Second, 4 * time.Second, 4 * time.Second}, deadlines(t, ctx, both, hang), "the shorter of the two")

		assert.Equal(t, []time.Duration{0, 0, 0}, deadlines(t, t.Context(), split, fail), "without a deadline there is nothing to split")
	})
}

// The end of an attempt by its limit is a failure of the dependency, for us and for a
// breaker further in; the end of the caller's time is the caller's.
func TestLimits_EndAnAttemptWithACause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := build(t, WithAttemptTimeout(time.Second))
		var causes []error
		err := p.Do(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			causes = append(causes, context.Cause(ctx))
			assert.Equal(t, sluice.Failure, sluice.Classify(ctx, ctx.Err()))
			return ctx.Err()
		})
		require.Len(t, causes, 3)
		assert.ErrorIs(t, causes[1], sluice.ErrTimeout)
		assert.ErrorIs(t, causes[1], context.DeadlineExceeded)
		assert.EqualError(t, causes[1], `retry "payments": attempt 2 was not over within 1s`)
		timeout, ok := errors.AsType[interface {
			error
			Timeout() bool
			Temporary() bool
		}](causes[1])
		require.True(t, ok)
		assert.True(t, timeout.Timeout() && timeout.Temporary())
		assert.Equal(t, ReasonAttempts, gaveUp(t, err).Reason())
		assert.Equal(t, sluice.Failure, sluice.Classify(t.Context(), err))
	})
}

// A ctx that ends sooner anyway needs no other one.
func TestLimits_NoCtxForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := build(t, WithAttemptTimeout(time.Second))
		for left, own := range map[time.Duration]bool{999 * tick: false, time.Second: false, 1001 * tick: true, time.Hour: true} {
			ctx, cancel := context.WithTimeout(t.Context(), left)
			a, err := p.Begin(ctx)
			require.NoError(t, err)
			got, end := a.Context(ctx)
			assert.Equal(t, own, got != ctx, left)
			assert.Equal(t, own, a.Limit(ctx) == time.Second, left)
			end()
			cancel()
		}
		a, err := p.Begin(t.Context())
		require.NoError(t, err)
		ctx, end := a.Context(t.Context())
		defer end()
		deadline, ok := ctx.Deadline()
		assert.True(t, ok)
		assert.Equal(t, time.Second, time.Until(deadline))
	})
}

// The ctx of an attempt lives as long as its owner likes: that is when the body of a
// response is closed, and not when the next step is taken.
func TestAttempts_CtxOutlivesTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := build(t, WithAttemptTimeout(time.Minute))
		a, err := p.Begin(t.Context())
		require.NoError(t, err)
		ctx, end := a.Context(t.Context())
		_, again := a.Next(t.Context(), nil)
		require.False(t, again)
		assert.NoError(t, ctx.Err())
		end()
		assert.Equal(t, context.Canceled, ctx.Err())
	})
}
