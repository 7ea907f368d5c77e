package adaptive

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stage"
	"github.com/sluicego/sluice/metrics"
)

var (
	_ sluice.Guard     = (*Timeout)(nil)
	_ sluice.Guard     = (*Meter)(nil)
	_ stage.Stage      = (*Meter)(nil)
	_ sluice.Rejection = (*DeadlineError)(nil)
	_ metrics.Source   = (*Timeout)(nil)
	_ metrics.Source   = (*TimeoutGroup)(nil)
)

// build makes a Timeout with bounds of 10 ms and 5 s, in virtual time.
func build(t testing.TB, opts ...TimeoutOption) *Timeout {
	t.Helper()
	return newClient(t, 0, nil, opts...).timeout
}

// at is a time of a test, so long after its beginning.
func at(d time.Duration) int64 { return t0 + int64(d) }

// calls lets n calls begin at now and be answered after took.
func calls(t testing.TB, to *Timeout, now int64, n int, took time.Duration) {
	t.Helper()
	for range n {
		a, err := to.begin(t.Context(), now-int64(took))
		require.NoError(t, err)
		a.done(now, nil)
	}
}

// cuts lets n calls end at now by their limit.
func cuts(t testing.TB, to *Timeout, now int64, n int) {
	t.Helper()
	for range n {
		limit := to.Value()
		a, err := to.begin(t.Context(), now-int64(limit))
		require.NoError(t, err)
		a.done(now, context.DeadlineExceeded)
	}
}

// settled is 1 000 calls of 20 ms, and the limit worked out.
func settled(t testing.TB, opts ...TimeoutOption) *Timeout {
	t.Helper()
	to := build(t, opts...)
	calls(t, to, at(0), 1000, 20*ms)
	calls(t, to, at(tickEvery), 1, 20*ms)
	return to
}

func TestTimeout_TheNilOneLetsEverythingPass(t *testing.T) {
	var to *Timeout
	assert.Empty(t, to.Name())
	assert.Zero(t, to.Value())
	assert.Zero(t, to.Snapshot())
	assert.NoError(t, to.Update(DefaultTimeoutConfig(ms, time.Second)))
	assert.Zero(t, to.Config())
	to.Collect(nil)
	a, err := to.Begin(t.Context())
	require.NoError(t, err)
	ctx, cancel := a.Context(t.Context())
	cancel()
	assert.Equal(t, t.Context(), ctx)
	assert.Zero(t, a.Limit())
	a.Done(nil)
	a.Settle(sluice.Failure)
	a.Cancel()
	a.Close()
	called := 0
	call := func(context.Context) error { called++; return nil }
	assert.NoError(t, to.Do(t.Context(), call))
	assert.NoError(t, to.Meter().Do(t.Context(), call))
	assert.NoError(t, (*Meter)(nil).Do(t.Context(), call))
	_, err = sluice.Call(t.Context(), to.Meter(), func(context.Context) (int, error) { return 0, call(t.Context()) })
	assert.NoError(t, err)
	assert.Equal(t, 4, called)
}

func TestNewTimeout_EveryComplaintAtOnce(t *testing.T) {
	to, err := NewTimeout("", time.Second, ms, nil, WithMargin(0), WithRule(Quantile(2, 3)))
	require.Error(t, err)
	assert.Nil(t, to)
	for _, complaint := range []string{"name is empty", "option 0 is nil", "Margin 0", "Max 1ms is less than Base 1s", "Rule.Quantile 2"} {
		assert.ErrorContains(t, err, complaint)
	}
	_, err = NewTimeout("x", ms, time.Second, WithEstimator(func() Estimator { return nil }))
	assert.ErrorContains(t, err, "WithEstimator returned nil")
}

func TestTimeout_BeginsAtMaxOrAsTold(t *testing.T) {
	assert.Equal(t, 5*time.Second, build(t).Value())
	assert.Equal(t, time.Second, build(t, WithInitial(time.Second)).Value())
	assert.Equal(t, 2*time.Second, build(t, WithInitial(time.Second), WithRule(Fixed(2*time.Second))).Value())
	assert.Equal(t, Cold, build(t).Snapshot().State)
}

// A call that has less time left than the median one takes is refused at once, and no
// guard further out takes that for a sign of a sick dependency.
func TestBegin_TooLittleTimeLeft(t *testing.T) {
	to := settled(t)
	median := to.cur.Load().median
	require.InEpsilon(t, float64(20*ms), float64(median), 0.125)
	begin := func(now int64, left time.Duration) error {
		a, err := to.begin(&caller{Context: t.Context(), deadline: now + int64(left)}, now)
		a.Cancel()
		return err
	}
	now := at(time.Second)
	require.NoError(t, begin(now, median), "just enough")
	require.NoError(t, begin(now, median-1), "one that goes all the same")
	err := begin(now, median-1)
	require.ErrorIs(t, err, ErrDeadlineTooShort)
	require.ErrorIs(t, err, sluice.ErrRejected)
	assert.NotErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, sluice.Ignored, sluice.Classify(t.Context(), err))
	refused, ok := errors.AsType[sluice.Rejection](err)
	require.True(t, ok)
	assert.Equal(t, "backend", refused.Resource())
	assert.Equal(t, "timeout", refused.Policy())
	assert.Equal(t, ReasonDeadline, refused.Reason())
	assert.Negative(t, refused.RetryAfter())
	assert.ErrorContains(t, err, `timeout "backend"`)
	assert.ErrorContains(t, err, median.String())
	require.ErrorIs(t, begin(now, -time.Hour), ErrDeadlineTooShort)
	require.ErrorIs(t, begin(now+int64(tickEvery)-1, 0), ErrDeadlineTooShort)
	require.NoError(t, begin(now+int64(tickEvery), 0), "and the next one")
	assert.EqualValues(t, 3, to.Snapshot().Totals.Refused)
	assert.EqualValues(t, 3, to.Snapshot().Totals.Ignored)
}

// If all callers are in a hurry, refusing them must not keep the median from being
// found out anew.
func TestBegin_TheMedianIsNotWrongForEver(t *testing.T) {
	client := newClient(t, 1, then(lognormal(300*ms, 0.2), time.Minute, lognormal(20*ms, 0.2)))
	client.deadline = func() time.Duration {
		if client.world.since() < time.Minute {
			return 0
		}
		return 100 * ms
	}
	slow, late := client.phase(time.Minute, 62*time.Second), client.phase(75*time.Second, 90*time.Second)
	client.load(100)
	client.world.run(90 * time.Second)
	assert.Greater(t, slow.refused, 150)
	assert.Zero(t, late.refused)
}

func TestBegin_ColdItRefusesNobody(t *testing.T) {
	to := build(t)
	for i := range 100 {
		a, err := to.begin(&caller{Context: t.Context(), deadline: at(0) + 1}, at(0))
		require.NoError(t, err, i)
		a.Cancel()
	}
}

func TestBegin_AContextThatIsDoneGetsItsOwnError(t *testing.T) {
	to := build(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := to.Begin(ctx)
	assert.Equal(t, context.Canceled, err)
	assert.Equal(t, context.Canceled, to.Do(ctx, func(context.Context) error { t.Error("called"); return nil }))
	assert.Zero(t, to.Snapshot().Totals)
}

func TestDo_PassesOnWhatTheCallReturns(t *testing.T) {
	to := sluice.Must(NewTimeout("x", ms, time.Second))
	assert.NoError(t, to.Do(t.Context(), func(context.Context) error { return nil }))
	assert.Equal(t, errRefused, to.Do(t.Context(), func(context.Context) error { return errRefused }))
	assert.PanicsWithValue(t, "down", func() { _ = to.Do(t.Context(), func(context.Context) error { panic("down") }) })
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = to.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil })
	})
	wg.Wait()
	assert.Equal(t, TimeoutTotalsSnapshot{Finished: 1, Failed: 3}, to.Snapshot().Totals)
}

// The limit ends the call at its time, its context says which limit that was, and
// who asks further out learns that the dependency is at fault.
func TestDo_TheLimitEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := sluice.Must(NewTimeout("payments", ms, time.Second, WithInitial(100*ms)))
		began := time.Now()
		err := to.Do(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			cause := context.Cause(ctx)
			assert.ErrorIs(t, cause, sluice.ErrTimeout)
			assert.ErrorIs(t, cause, context.DeadlineExceeded)
			limit, ok := errors.AsType[*TimeoutError](cause)
			if assert.True(t, ok) {
				assert.Equal(t, "payments", limit.Resource())
				assert.Equal(t, 100*ms, limit.Limit())
				assert.EqualError(t, limit, `timeout "payments": not answered within 100ms`)
				assert.True(t, limit.Timeout())
			}
			return ctx.Err()
		})
		assert.Equal(t, 100*ms, time.Since(began))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, sluice.Failure, sluice.Classify(t.Context(), err))
		assert.Equal(t, TimeoutTotalsSnapshot{TimedOut: 1}, to.Snapshot().Totals)
	})
}

// A deadline of the caller's has another cause, and is not ours.
func TestDo_TheCallersDeadlineIsToldFromTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := sluice.Must(NewTimeout("payments", ms, time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 50*ms)
		defer cancel()
		err := to.Do(ctx, func(inner context.Context) error {
			assert.Equal(t, ctx, inner, "the caller's own ends sooner anyway")
			<-inner.Done()
			assert.NotErrorIs(t, context.Cause(inner), sluice.ErrTimeout)
			return inner.Err()
		})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, TimeoutTotalsSnapshot{CutShort: 1}, to.Snapshot().Totals)
	})
}

// A limit further out is one too, and not ours either.
func TestDo_TwoLimitsInsideOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outer := sluice.Must(NewTimeout("outer", ms, time.Second, WithInitial(50*ms)))
		inner := sluice.Must(NewTimeout("inner", ms, time.Second, WithInitial(100*ms)))
		err := sluice.Chain(outer, inner).Do(t.Context(), func(ctx context.Context) error {
			<-ctx.Done()
			assert.ErrorContains(t, context.Cause(ctx), "outer")
			return ctx.Err()
		})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, TimeoutTotalsSnapshot{TimedOut: 1}, outer.Snapshot().Totals)
		assert.Equal(t, TimeoutTotalsSnapshot{CutShort: 1}, inner.Snapshot().Totals)
	})
}

// A breaker that is half-open must be able to close on a dependency that is slow.
func TestDo_TheProbeOfABreakerRunsWithMax(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := sluice.Must(NewTimeout("payments", ms, time.Second, WithInitial(100*ms)))
		err := to.Do(stage.WithProbe(t.Context()), func(ctx context.Context) error {
			require.True(t, sluice.IsProbe(ctx))
			select {
			case <-time.After(900 * ms):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		assert.NoError(t, err)
		err = to.Do(stage.WithProbe(t.Context()), func(ctx context.Context) error {
			<-ctx.Done()
			assert.ErrorContains(t, context.Cause(ctx), "within 1s")
			return ctx.Err()
		})
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, TimeoutTotalsSnapshot{Finished: 1, TimedOut: 1}, to.Snapshot().Totals)
	})
}

// The Timeout's own probes go only while it does not know what it cuts off: one in a
// hundred, and one a second at least.
func TestProbes(t *testing.T) {
	probes := func(to *Timeout, now int64, n int) (probes int) {
		for range n {
			a, err := to.begin(t.Context(), now)
			require.NoError(t, err)
			if a.Limit() == 5*time.Second {
				probes++
			}
			a.Cancel()
		}
		return probes
	}
	unresolved := func(opts ...TimeoutOption) *Timeout {
		to := settled(t, opts...)
		require.Less(t, to.Value(), time.Second)
		require.Zero(t, probes(to, at(time.Second), 1000), "resolved")
		cuts(t, to, at(time.Second), 100)
		cuts(t, to, at(time.Second)+int64(tickEvery), 1)
		require.True(t, to.Snapshot().Probing)
		return to
	}
	now := at(2 * time.Second)
	t.Run("at high traffic a share", func(t *testing.T) {
		assert.InDelta(t, 101, probes(unresolved(), now, 10_000), 1)
	})
	t.Run("at low traffic one a second", func(t *testing.T) {
		to := unresolved()
		for s := range 10 {
			assert.Equal(t, 1, probes(to, now+int64(s)*int64(time.Second), 9), s)
		}
		assert.EqualValues(t, 10, to.Snapshot().Totals.Probes)
	})
	t.Run("without a share one a second", func(t *testing.T) {
		assert.Equal(t, 1, probes(unresolved(WithProbeShare(0)), now, 10_000))
	})
}

func TestValue_StaysWithinTheBounds(t *testing.T) {
	for name, e := range map[string]struct{ limit, want time.Duration }{
		"below": {1, 10 * ms}, "above": {time.Hour, 5 * time.Second}, "within": {time.Second, time.Second},
		"none": {0, 300 * ms}, "negative": {-1, 300 * ms},
	} {
		to := build(t, WithInitial(300*ms), WithEstimator(func() Estimator { return always{Estimate{Limit: e.limit}} }))
		calls(t, to, at(time.Second), 1, ms)
		assert.Equal(t, e.want, to.Value(), name)
		assert.Equal(t, Resolved, to.Snapshot().State, name)
		assert.Equal(t, "own", to.Snapshot().Rule, name)
	}
}

// always is an Estimator that has made up its mind.
type always struct{ e Estimate }

func (always) Observe(Sample)                    {}
func (a always) Estimate(int64, Bounds) Estimate { return a.e }
