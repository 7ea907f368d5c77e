package breaker

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Who ended the call decides. Each row is one way for a call to end, as Do, Allow
// with Done, and the two steps of a chain see it.
func TestLaw6_WhoEndedTheCallDecides(t *testing.T) {
	const budget = time.Second
	wait := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, c := range []struct {
		name string
		ctx  func(context.Context) (context.Context, context.CancelFunc)
		call func(context.Context) error
		want sluice.Outcome
	}{
		{"no error", alive, func(context.Context) error { return nil }, sluice.Success},
		{"an error", alive, func(context.Context) error { return errDown }, sluice.Failure},
		{"marked a success", alive, func(context.Context) error { return sluice.Mark(errDown, sluice.Success) }, sluice.Success},
		{"marked throttled", alive, func(context.Context) error { return sluice.Mark(errDown, sluice.Throttled) }, sluice.Throttled},
		{"marked ignored", alive, func(context.Context) error { return sluice.Ignore(errDown) }, sluice.Ignored},
		{"marked a failure, caller gone", after(time.Second, context.Canceled), func(ctx context.Context) error { return sluice.Mark(wait(ctx), sluice.Failure) }, sluice.Failure},
		{"a refusal", alive, func(context.Context) error { return sluice.ErrRejected }, sluice.Ignored},
		{"a limit further in", alive, func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			return wait(ctx)
		}, sluice.Failure},
		{"cancelled further in", alive, func(context.Context) error { return context.Canceled }, sluice.Failure},
		{"a limit of ours further out", after(time.Millisecond, sluice.ErrTimeout), wait, sluice.Failure},
		{"cancelled with our cause", func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Millisecond, func() { cancel(sluice.ErrTimeout) })
			return ctx, func() { cancel(nil) }
		}, wait, sluice.Failure},
		{"cancelled", after(10*time.Second, context.Canceled), wait, sluice.Ignored},
		{"cancelled, whatever the error", after(10*time.Second, context.Canceled), func(ctx context.Context) error { _ = wait(ctx); return errDown }, sluice.Ignored},
		{"cancelled, but it succeeded", after(time.Second, context.Canceled), func(ctx context.Context) error { _ = wait(ctx); return nil }, sluice.Success},
		{"the caller's deadline, early", after(budget-1, context.DeadlineExceeded), wait, sluice.Ignored},
		{"the caller's deadline", after(budget, context.DeadlineExceeded), wait, sluice.Failure},
		{"the caller's deadline, another error", after(budget, context.DeadlineExceeded), func(ctx context.Context) error { _ = wait(ctx); return errDown }, sluice.Failure},
		{"panic", alive, nil, sluice.Failure},
		{"panic, caller gone", after(time.Second, context.Canceled), nil, sluice.Ignored},
	} {
		for how, run := range map[string]func(*Breaker, context.Context, func(context.Context) error) error{
			"Do": (*Breaker).Do,
			"Allow and Done": func(b *Breaker, ctx context.Context, call func(context.Context) error) error {
				p, err := b.Allow(ctx)
				if err != nil {
					return err
				}
				defer p.Close()
				err = call(ctx)
				p.Done(err)
				return err
			},
			"in a chain": func(b *Breaker, ctx context.Context, call func(context.Context) error) error {
				return sluice.Chain(b, build(t)).Do(ctx, call)
			},
		} {
			t.Run(c.name+"/"+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					b := build(t, WithErrorCount(100), WithMinBudget(budget))
					ctx, cancel := c.ctx(t.Context())
					defer cancel()
					call := c.call
					if call == nil {
						call = func(ctx context.Context) error {
							if c.want == sluice.Ignored {
								_ = wait(ctx)
							}
							panic("boom")
						}
						assert.Panics(t, func() { _ = run(b, ctx, call) })
					} else {
						_ = run(b, ctx, call)
					}
					totals := b.Snapshot().Totals
					want := map[sluice.Outcome]int64{c.want: 1}
					assert.Equal(t, want[sluice.Success], totals.Success, "successes")
					assert.Equal(t, want[sluice.Failure], totals.Failure, "failures")
					assert.Equal(t, want[sluice.Ignored], totals.Ignored, "ignored")
					assert.Equal(t, want[sluice.Throttled], totals.Throttled, "throttled")
				})
			})
		}
	}
}

func alive(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }

// after is a caller who is gone after d: by cancelling, by a deadline of his own,
// or by a time limit of ours.
func after(d time.Duration, why error) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		switch why {
		case context.Canceled:
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(d, cancel)
			return ctx, cancel
		case context.DeadlineExceeded:
			return context.WithTimeout(ctx, d)
		}
		return context.WithTimeoutCause(ctx, d, why)
	}
}

// A call that ran past the slow limit is evidence that the backend is slow,
// whoever ended it, and no error by that.
func TestLaw6_WhoGivesUpOnASlowBackendIsEvidence(t *testing.T) {
	limit := WithSlowCallRatio(time.Second, 0.5, MinRequests(4))
	s := newStory(t, limit, WithErrorCount(1)).tell(
		step{0, times(2, S), Closed},
		step{1, gaveUp(time.Second), Closed}, // at the limit is not slow
		step{3, gaveUp(time.Second + 1), Closed},
	)
	w := s.snap().Window
	assert.Equal(t, WindowSnapshot{Total: 2, GaveUp: 1, SlowRatio: 1. / 3}, w)
	s.tell(step{5, gaveUp(2 * time.Second), Open})
	assert.Equal(t, SlowCallRatio, s.last().Cause.Rule.Kind)
	assert.EqualValues(t, 2, s.last().Cause.Bad)
	assert.EqualValues(t, 4, s.last().Cause.Total)

	slowProbe := newStory(t, limit, WithOpenFor(10*time.Second)).tell(
		step{0, tripped(0), Open},
		step{10, gaveUp(time.Second), HalfOpen},
		step{12, gaveUp(time.Second + 1), Open}, // a probe that was slow is not good
	)
	assert.Equal(t, ProbeFailed, slowProbe.last().Cause.Reason)

	newStory(t, limit).tell( // marked by its owner, or never made: no trace
		step{0, A("marked"), Closed},
		step{0, A("cancelled"), Closed},
		step{9, settled("marked", sluice.Ignored), Closed},
		step{9, cancelled("cancelled"), Closed},
		step{9, func(s *story) { assert.Equal(t, WindowSnapshot{}, s.snap().Window) }, Closed},
	)
}

// The hot path looks at a context's error, and at a value only when it is about to
// refuse or inside a probe.
func TestLaw12_NoContextValueOnTheHotPath(t *testing.T) {
	ctx := &countingContext{Context: t.Context()}
	b := build(t, WithErrorRatio(0.9), WithMinRequests(1000), WithSlowCallRatio(time.Second, 0.5), WithConsecutiveFailures(1000))
	for _, err := range []error{nil, errDown} {
		p, refused := b.Allow(ctx)
		require.NoError(t, refused)
		p.Done(err)
		_ = b.Do(ctx, func(context.Context) error { return err })
	}
	require.NoError(t, b.Trip(time.Hour))
	_, err := b.Allow(ctx)
	require.ErrorIs(t, err, ErrOpen)
	assert.Zero(t, ctx.values.Load())
}

// countingContext counts how often a value is asked for.
type countingContext struct {
	context.Context
	values atomic.Int64
}

func (c *countingContext) Value(key any) any { c.values.Add(1); return c.Context.Value(key) }
