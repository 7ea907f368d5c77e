package retry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

var errDown = errors.New("connection refused")

// refusal is a local refusal, as guards further in give it.
type refusal struct{ name string }

func (r *refusal) Error() string             { return r.name + " is open" }
func (r *refusal) Is(target error) bool      { return target == sluice.ErrRejected }
func (r *refusal) Resource() string          { return r.name }
func (r *refusal) Policy() string            { return "breaker" }
func (r *refusal) Reason() string            { return "open" }
func (r *refusal) RetryAfter() time.Duration { return time.Millisecond }

var errOpen = &refusal{"payments"}

// build makes a policy that leaves nothing to chance.
func build(t testing.TB, opts ...Option) *Policy {
	t.Helper()
	p, err := New("payments", append([]Option{WithJitter(0)}, opts...)...)
	require.NoError(t, err)
	return p
}

// A dependency ends its calls as it is told, the last way over and over, and writes
// down when they came.
type dependency struct {
	takes   time.Duration
	answers []error
	began   time.Time
	calls   []time.Duration
	ctx     []context.Context
}

// answering makes one whose clock starts now.
func answering(answers ...error) *dependency {
	return &dependency{answers: answers, began: time.Now()}
}

func (d *dependency) call(ctx context.Context) error {
	d.calls = append(d.calls, time.Since(d.began))
	d.ctx = append(d.ctx, ctx)
	time.Sleep(d.takes)
	return d.answers[min(len(d.calls), len(d.answers))-1]
}

// since is how long it has been there.
func (d *dependency) since() time.Duration { return time.Since(d.began) }

// gaveUp is the *Error in err.
func gaveUp(t *testing.T, err error) *Error {
	t.Helper()
	var e *Error
	require.ErrorAs(t, err, &e)
	require.ErrorIs(t, err, ErrGaveUp)
	return e
}

const tick = time.Millisecond

func TestDo_RepeatsUntilItSucceeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := build(t), answering(errDown, errDown, nil)
		require.NoError(t, p.Do(t.Context(), d.call))
		assert.Equal(t, []time.Duration{0, 50 * tick, 150 * tick}, d.calls)
		assert.Equal(t, t.Context(), d.ctx[0], "the first attempt has the ctx that was given")
		s := p.Snapshot()
		assert.EqualValues(t, 2, s.Retries)
		assert.EqualValues(t, 1, s.Recovered)
		assert.Equal(t, GivenUpSnapshot{}, s.GivenUp)
	})
}

func TestDo_WaitsGrowUpToTheLongest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := build(t, WithAttempts(7), WithBackoff(100*tick, time.Second), WithBackoffFactor(3)), answering(errDown)
		err := p.Do(t.Context(), d.call)
		assert.Equal(t, []time.Duration{0, 100 * tick, 400 * tick, 1300 * tick, 2300 * tick, 3300 * tick, 4300 * tick}, d.calls)
		e := gaveUp(t, err)
		assert.Equal(t, "payments", e.Name())
		assert.Equal(t, 7, e.Attempts())
		assert.Equal(t, ReasonAttempts, e.Reason())
		assert.NoError(t, e.Refusal())
		assert.Equal(t, errDown, errors.Unwrap(err))
		assert.EqualError(t, err, `retry "payments": gave up after 7 attempts: connection refused`)
	})
}

// Full jitter draws from the whole wait, half of it from the longer half.
func TestDo_JitterIsTakenOff(t *testing.T) {
	for _, c := range []struct {
		jitter, random float64
		want           time.Duration
	}{
		{1, 0, 100 * tick}, {1, 0.25, 75 * tick}, {1, 1 - 1.0/(1<<53), 1}, {0.5, 0.5, 75 * tick}, {0.5, 1, 50 * tick}, {0, 0.9, 100 * tick},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, d := build(t, WithBackoff(100*tick, time.Second), WithJitter(c.jitter)), answering(errDown, nil)
			p.random = func() float64 { return c.random }
			require.NoError(t, p.Do(t.Context(), d.call))
			assert.InDeltaf(t, c.want, d.calls[1], 1, "%+v", c)
		})
	}
	// Without being told, chance is there: two in a thousand waits are not alike.
	synctest.Test(t, func(t *testing.T) {
		p, err := New("payments", WithBudget(nil), WithAttempts(1000), WithBackoffFactor(1))
		require.NoError(t, err)
		d := answering(errDown)
		require.ErrorIs(t, p.Do(t.Context(), d.call), errDown)
		assert.InDelta(t, 999*25*tick, d.since(), float64(4000*tick))
	})
}

// What is not worth another attempt comes back as it was.
func TestDo_ReturnsAsItIs(t *testing.T) {
	for name, c := range map[string]struct {
		opts []Option
		err  error
	}{
		"an answer":                {nil, sluice.Mark(errDown, sluice.Success)},
		"ignored":                  {nil, sluice.Ignore(errDown)},
		"refused":                  {nil, errOpen},
		"refused, wrapped":         {nil, fmt.Errorf("calling: %w", errOpen)},
		"a policy of one attempt":  {[]Option{WithAttempts(1)}, errDown},
		"says the classifier":      {[]Option{WithClassifier(func(context.Context, error) sluice.Outcome { return sluice.Ignored })}, errDown},
		"a number that is none":    {[]Option{WithClassifier(func(context.Context, error) sluice.Outcome { return 99 })}, errDown},
		"an answer, to classifier": {[]Option{WithClassifier(func(context.Context, error) sluice.Outcome { return sluice.Success })}, io.EOF},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, d := build(t, c.opts...), answering(c.err)
				assert.Equal(t, c.err, p.Do(t.Context(), d.call))
				assert.Len(t, d.calls, 1)
				assert.Zero(t, d.since())
				s := p.Snapshot()
				assert.Zero(t, s.Retries)
				assert.Equal(t, GivenUpSnapshot{}, s.GivenUp)
			})
		})
	}
}

// A classifier may want what the default does not, is shown no refusal, and may leave
// the rest to the default.
func TestDo_Classifier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		p := build(t, WithClassifier(func(ctx context.Context, err error) sluice.Outcome {
			asked++
			assert.Equal(t, t.Context(), ctx)
			assert.NotErrorIs(t, err, sluice.ErrRejected)
			if errors.Is(err, io.EOF) {
				return sluice.Failure
			}
			return 0
		}))
		d := answering(sluice.Ignore(io.EOF), errDown, nil)
		require.NoError(t, p.Do(t.Context(), d.call))
		assert.Len(t, d.calls, 3)
		assert.Equal(t, 2, asked)
		assert.Equal(t, errOpen, p.Do(t.Context(), answering(errOpen).call))
		assert.Equal(t, 2, asked)
	})
}

// An answer to a further attempt is the answer to the call.
func TestDo_AnAnswerAfterAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := build(t)
		answer := sluice.Mark(io.EOF, sluice.Success)
		assert.Equal(t, answer, p.Do(t.Context(), answering(errDown, answer).call))
		ignored := sluice.Ignore(io.EOF)
		assert.Equal(t, ignored, p.Do(t.Context(), answering(errDown, ignored).call))
		s := p.Snapshot()
		assert.EqualValues(t, 2, s.Retries)
		assert.EqualValues(t, 1, s.Recovered)
	})
}

// A wait that the dependency asks for is kept in full, with the ordinary one on top so
// that those who were told the same do not come back together; beyond the cap there is
// none.
func TestDo_RetryAfter(t *testing.T) {
	asks := func(d time.Duration) error {
		return fmt.Errorf("calling: %w", sluice.WithRetryAfter(sluice.Mark(errDown, sluice.Throttled), d))
	}
	for _, c := range []struct {
		asks, wait time.Duration
		gives      bool
	}{
		{asks: 0, wait: 50 * tick},
		{asks: 3 * time.Second, wait: 3050 * tick},
		{asks: 10 * time.Second, wait: 10050 * tick},
		{asks: 10*time.Second + 1, gives: true},
		{asks: time.Hour, gives: true},
		{asks: 484289 * time.Hour, gives: true}, // https://github.com/hashicorp/go-retryablehttp/issues/247
	} {
		synctest.Test(t, func(t *testing.T) {
			p, d := build(t), answering(asks(c.asks), nil)
			err := p.Do(t.Context(), d.call)
			if c.gives {
				e := gaveUp(t, err)
				assert.Equal(t, ReasonRetryAfter, e.Reason())
				assert.Equal(t, 1, e.Attempts())
				assert.ErrorIs(t, err, errDown)
				assert.ErrorContains(t, err, "asked to wait for "+c.asks.String())
				assert.Zero(t, d.since())
				after, ok := sluice.RetryAfter(err)
				assert.True(t, ok)
				assert.Equal(t, c.asks, after, "the caller can see it too")
				assert.EqualValues(t, 1, p.Snapshot().GivenUp.RetryAfter)
				assert.Zero(t, p.Snapshot().Budget.Withdrawals, "and nothing was charged")
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.wait, d.calls[1])
		})
	}
}

// A Failure may ask for a wait as well, and a cap of 0 allows none.
func TestDo_RetryAfterOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := sluice.WithRetryAfter(errDown, 1)
		p, d := build(t, WithMaxRetryAfter(0)), answering(err)
		assert.Equal(t, ReasonRetryAfter, gaveUp(t, p.Do(t.Context(), d.call)).Reason())
		p, d = build(t), answering(err, nil)
		require.NoError(t, p.Do(t.Context(), d.call))
		assert.Equal(t, 50*tick+1, d.calls[1])
	})
}

// https://github.com/hashicorp/go-retryablehttp/issues/272: it slept a second although
// the caller's deadline was a tenth of that, and then told of the deadline and not of
// what had gone wrong.
func TestDo_EndsAtOnceIfTheDeadlineCannotBeMet(t *testing.T) {
	for _, c := range []struct {
		deadline time.Duration
		calls    int
	}{
		{100 * tick, 1}, {1000 * tick, 1}, {1000*tick + 1, 2}, {2999 * tick, 2}, {3000 * tick, 2}, {3001 * tick, 3}, {time.Hour, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			defer cancel()
			p, d := build(t, WithBackoff(time.Second, time.Minute)), answering(errDown)
			err := p.Do(ctx, d.call)
			require.Len(t, d.calls, c.calls)
			assert.Equal(t, d.calls[c.calls-1], d.since(), "no wait after the last")
			e := gaveUp(t, err)
			assert.Equal(t, c.calls, e.Attempts())
			assert.ErrorIs(t, err, errDown)
			assert.NotErrorIs(t, err, context.DeadlineExceeded, "it was not")
			if c.calls < 3 {
				assert.Equal(t, ReasonDeadline, e.Reason())
				assert.ErrorContains(t, err, "no time for another")
				assert.EqualValues(t, 1, p.Snapshot().GivenUp.Deadline)
			}
			assert.EqualValues(t, c.calls-1, p.Snapshot().Budget.Withdrawals)
		})
	}
}

// https://github.com/gojek/heimdall/issues/145: the wait went on to its end although
// the caller had gone away. Here he gets an answer at once, which still tells what had
// gone wrong; and the retry that was not made is not charged.
func TestDo_CtxEndsDuringAWait(t *testing.T) {
	errCause := errors.New("the user pressed stop")
	cancelled := func(ctx context.Context) (context.Context, func()) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(70*tick, func() { cancel(errCause) })
		return ctx, func() { cancel(nil) }
	}
	limited := func(ctx context.Context) (context.Context, func()) { // by us, without a deadline that can be seen
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(70*tick, func() { cancel(sluice.ErrTimeout) })
		return ctx, func() { cancel(nil) }
	}
	for name, c := range map[string]struct {
		ctx  func(context.Context) (context.Context, func())
		is   []error
		text string
	}{
		"cancelled": {cancelled, []error{context.Canceled, errCause}, `gave up after 2 attempts (context canceled: the user pressed stop): connection refused`},
		"limited":   {limited, []error{context.Canceled, sluice.ErrTimeout}, `gave up after 2 attempts (context canceled: sluice: time limit exceeded): connection refused`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := c.ctx(t.Context())
				defer cancel()
				p, d := build(t), answering(errDown)
				err := p.Do(ctx, d.call)
				assert.Equal(t, 70*tick, d.since())
				e := gaveUp(t, err)
				assert.Equal(t, ReasonEnded, e.Reason())
				assert.Equal(t, 2, e.Attempts())
				assert.ErrorContains(t, err, c.text)
				for _, is := range append(c.is, errDown) {
					assert.ErrorIs(t, err, is)
				}
				s := p.Snapshot()
				assert.EqualValues(t, 1, s.GivenUp.Ended)
				assert.EqualValues(t, 1, s.Retries)
				assert.EqualValues(t, 2, s.Budget.Withdrawals)
				assert.EqualValues(t, 1, s.Budget.Returned)
			})
		})
	}
}

// https://github.com/temporalio/temporal/pull/4403: the end of the time hid what had
// failed before it.
func TestDo_CtxEndsDuringAFurtherAttempt(t *testing.T) {
	for name, second := range map[string]func(context.Context) error{
		"which says so":          func(ctx context.Context) error { <-ctx.Done(); return fmt.Errorf("calling: %w", ctx.Err()) },
		"which says why":         func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
		"and it fails by itself": func(ctx context.Context) error { <-ctx.Done(); return io.ErrUnexpectedEOF },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 100*tick)
				defer cancel()
				p, attempts := build(t), 0
				err := p.Do(ctx, func(ctx context.Context) error {
					attempts++
					if attempts == 1 {
						return errDown
					}
					return second(ctx)
				})
				e := gaveUp(t, err)
				assert.Equal(t, ReasonEnded, e.Reason())
				assert.Equal(t, 2, e.Attempts())
				assert.ErrorIs(t, err, context.DeadlineExceeded)
				if name == "and it fails by itself" {
					assert.Equal(t, io.ErrUnexpectedEOF, errors.Unwrap(err))
				} else {
					assert.Equal(t, errDown, errors.Unwrap(err))
				}
				assert.Equal(t, sluice.Failure, sluice.Classify(ctx, err))
			})
		})
	}
}

// With nothing to tell but the end of the ctx, the call's own error is it.
func TestDo_CtxEndsDuringTheFirstAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*tick)
		defer cancel()
		p := build(t)
		err := p.Do(ctx, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		assert.Equal(t, context.DeadlineExceeded, err)
		assert.Equal(t, GivenUpSnapshot{}, p.Snapshot().GivenUp)
	})
}

// A ctx that is done already is answered with its own error, and nothing is spent.
func TestDo_CtxDoneBefore(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := build(t)
	err := p.Do(ctx, func(context.Context) error { t.Error("called"); return nil })
	assert.Equal(t, context.Canceled, err)
	_, err = p.Begin(ctx)
	assert.Equal(t, context.Canceled, err)
	assert.Zero(t, p.Snapshot().Budget.Deposits)
}

// A further attempt that is refused further in ends the call: with what the dependency
// said before, because that is what happened, and nothing is charged for it.
func TestDo_AFurtherAttemptIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := build(t), answering(errDown, fmt.Errorf("calling: %w", errOpen))
		err := p.Do(t.Context(), d.call)
		assert.Len(t, d.calls, 2)
		e := gaveUp(t, err)
		assert.Equal(t, ReasonRefused, e.Reason())
		assert.Equal(t, 1, e.Attempts(), "the other was not made")
		assert.Equal(t, errDown, errors.Unwrap(err))
		assert.ErrorIs(t, e.Refusal(), sluice.ErrRejected)
		assert.EqualError(t, err, `retry "payments": gave up after 1 attempt (calling: payments is open): connection refused`)
		assert.NotErrorIs(t, err, sluice.ErrRejected, "a call was made")
		s := p.Snapshot()
		assert.EqualValues(t, 1, s.GivenUp.Refused)
		assert.Zero(t, s.Retries)
		assert.EqualValues(t, 1, s.Budget.Withdrawals)
		assert.EqualValues(t, 1, s.Budget.Returned)
	})
}

func TestDo_BudgetIsUsedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := NewBudget("payments", WithMinPerSecond(0.1), WithRatio(0.1))
		require.NoError(t, err)
		p := build(t, WithBudget(b))
		assert.Same(t, b, p.Budget())
		d := answering(errDown)
		err = p.Do(t.Context(), d.call)
		e := gaveUp(t, err)
		assert.Equal(t, ReasonBudget, e.Reason())
		assert.Equal(t, 2, e.Attempts())
		assert.EqualError(t, err, `retry "payments": gave up after 2 attempts, the budget is used up: connection refused`)
		assert.Equal(t, 50*tick, d.since(), "at once")
		assert.NotErrorIs(t, err, sluice.ErrRejected, "a call was made")
		assert.EqualValues(t, 1, p.Snapshot().GivenUp.Budget)
	})
}

// What a call deposits: one, whatever becomes of it, unless it was not made.
func TestDo_DepositsEachCallOnce(t *testing.T) {
	for name, c := range map[string]struct {
		answers []error
		want    uint64
	}{
		"success":            {[]error{nil}, 1},
		"after two failures": {[]error{errDown, errDown, nil}, 1},
		"given up":           {[]error{errDown}, 1},
		"an answer":          {[]error{sluice.Mark(errDown, sluice.Success)}, 1},
		"ignored":            {[]error{sluice.Ignore(errDown)}, 1},
		"refused":            {[]error{errOpen}, 0},
		"refused later":      {[]error{errDown, errOpen}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := build(t)
				_ = p.Do(t.Context(), answering(c.answers...).call)
				assert.Equal(t, c.want, p.Snapshot().Budget.Deposits)
			})
		})
	}
}

// A breaker further out judges by the last real error: a failure is one, a dependency
// that wants less is throttled, a caller who has gone away proves nothing.
func TestError_IsClassifiedByItsCause(t *testing.T) {
	throttled := sluice.Mark(errDown, sluice.Throttled)
	for name, c := range map[string]struct {
		answers []error
		want    sluice.Outcome
	}{
		"failures":             {[]error{errDown}, sluice.Failure},
		"throttled":            {[]error{errDown, throttled}, sluice.Throttled},
		"then refused":         {[]error{errDown, errOpen}, sluice.Failure},
		"throttled, refused":   {[]error{throttled, errOpen}, sluice.Throttled},
		"refused at once":      {[]error{errOpen}, sluice.Ignored},
		"ignored at last":      {[]error{errDown, sluice.Ignore(errDown)}, sluice.Ignored},
		"asked for a long one": {[]error{sluice.WithRetryAfter(throttled, time.Hour)}, sluice.Throttled},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := build(t).Do(t.Context(), answering(c.answers...).call)
				assert.Equal(t, c.want, sluice.Classify(t.Context(), err))
				_, isRejection := errors.AsType[sluice.Rejection](err)
				assert.Equal(t, c.want == sluice.Ignored && c.answers[0] == errOpen, isRejection)
			})
		})
	}
}

// The cause of a ctx may be the refusal of another call, as errgroup has it, or carry a
// mark. That says nothing about this call.
func TestError_TakesNoVerdictFromTheCauseOfACtx(t *testing.T) {
	for name, cause := range map[string]error{
		"a refusal": fmt.Errorf("another call: %w", errOpen),
		"a mark":    sluice.Mark(io.EOF, sluice.Success),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				p := build(t)
				err := p.Do(ctx, func(context.Context) error {
					time.AfterFunc(tick, func() { cancel(cause) })
					return errDown
				})
				assert.Equal(t, ReasonEnded, gaveUp(t, err).Reason())
				assert.ErrorIs(t, err, errDown)
				assert.ErrorIs(t, err, context.Canceled)
				assert.NotErrorIs(t, err, sluice.ErrRejected)
				assert.Equal(t, sluice.Failure, sluice.Classify(context.Background(), err))
			})
		})
	}
}

func TestDo_Nil(t *testing.T) {
	var p *Policy
	assert.Equal(t, errDown, p.Do(t.Context(), func(context.Context) error { return errDown }))
	v, err := sluice.Call(t.Context(), p, func(context.Context) (int, error) { return 7, nil })
	assert.NoError(t, err)
	assert.Equal(t, 7, v)
}

// A result comes from the attempt that succeeded.
func TestCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, attempts := build(t), 0
		v, err := sluice.Call(t.Context(), p, func(context.Context) (int, error) {
			attempts++
			if attempts < 3 {
				return 0, errDown
			}
			return attempts, nil
		})
		require.NoError(t, err)
		assert.Equal(t, 3, v)
		v, err = sluice.CallOr(t.Context(), p,
			func(context.Context) (int, error) { return 0, errDown },
			func(_ context.Context, cause error) (int, error) { return 42, nil })
		require.NoError(t, err)
		assert.Equal(t, 42, v)
	})
}

// A panic goes on and is not repeated, and so does the end of a goroutine, in a first
// attempt and in a further one, with a limit of time and without.
func TestDo_PanicAndGoexit(t *testing.T) {
	for name, opts := range map[string][]Option{"plain": nil, "limited": {WithAttemptTimeout(time.Second)}} {
		for failures := range 2 {
			t.Run(fmt.Sprintf("%s, after %d failures", name, failures), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					p := build(t, opts...)
					calls := 0
					var last context.Context
					do := func(end func()) func() {
						return func() {
							calls = 0
							_ = p.Do(t.Context(), func(ctx context.Context) error {
								last = ctx
								if calls++; calls <= failures {
									return errDown
								}
								end()
								return nil
							})
						}
					}
					assert.PanicsWithValue(t, "no", do(func() { panic("no") }))
					assert.Equal(t, failures+1, calls)
					exited := make(chan bool)
					go func() {
						defer func() { exited <- recover() == nil }()
						do(runtime.Goexit)()
						t.Error("it went on")
					}()
					assert.True(t, <-exited)
					assert.Equal(t, failures+1, calls)
					if name == "limited" {
						assert.Error(t, last.Err(), "its ctx has ended")
					}
				})
			})
		}
	}
}

// A change holds for calls that begin after it.
func TestPolicy_Update(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, d := build(t), answering(errDown)
		c := p.Config()
		c.Attempts, c.Backoff = 2, tick
		err := p.Do(t.Context(), func(ctx context.Context) error {
			require.NoError(t, p.Update(c))
			return d.call(ctx)
		})
		assert.Equal(t, 3, gaveUp(t, err).Attempts(), "as it began")
		assert.Equal(t, 150*tick, d.since())
		d = answering(errDown)
		assert.Equal(t, 2, gaveUp(t, p.Do(t.Context(), d.call)).Attempts())
		assert.Equal(t, tick, d.since())
		assert.EqualValues(t, 3, p.Snapshot().Retries, "what was counted stays")

		bad := c
		bad.Attempts = 0
		assert.ErrorContains(t, p.Update(bad), "Attempts 0")
		assert.Equal(t, c, p.Config())
	})
}
