package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

var errDown = errors.New("connection refused")

func TestOutcome_Text(t *testing.T) {
	for o, want := range map[sluice.Outcome]string{
		0:                "none",
		sluice.Success:   "success",
		sluice.Failure:   "failure",
		sluice.Ignored:   "ignored",
		sluice.Throttled: "throttled",
		9:                "Outcome(9)",
	} {
		assert.Equal(t, want, o.String())
		text, err := json.Marshal(o)
		require.NoError(t, err)
		assert.Equal(t, `"`+want+`"`, string(text))
	}
}

// A condition is a way for the ctx of a call to be when the call returns. Each is
// made inside a bubble, and the timers that it needs have fired.
type condition struct {
	name string
	make func(*testing.T) context.Context
	// want is what an error that says nothing itself means there.
	want sluice.Outcome
}

// after waits for a ctx that ends by itself.
func after(t *testing.T, ctx context.Context, stop context.CancelFunc) context.Context {
	t.Helper()
	t.Cleanup(stop)
	<-ctx.Done()
	return ctx
}

var conditions = []condition{
	{"alive", func(t *testing.T) context.Context {
		return t.Context()
	}, sluice.Failure},
	{"alive, with a deadline to come", func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		t.Cleanup(cancel)
		return ctx
	}, sluice.Failure},
	{"alive, while a time limit of ours further in has ended the call's own ctx", func(t *testing.T) context.Context {
		inner, cancel := context.WithTimeoutCause(t.Context(), time.Second, sluice.ErrTimeout)
		after(t, inner, cancel)
		return t.Context()
	}, sluice.Failure},
	{"alive, while the call's own ctx was cancelled further in", func(t *testing.T) context.Context {
		_, cancel := context.WithCancel(t.Context())
		cancel()
		return t.Context()
	}, sluice.Failure},

	{"cancelled", func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return ctx
	}, sluice.Ignored},
	{"cancelled, with a cause", func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(errDown)
		return ctx
	}, sluice.Ignored},
	{"cancelled, with the caller's deadline as cause", func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(context.DeadlineExceeded)
		return ctx
	}, sluice.Ignored},
	{"cancelled before the caller's deadline, which has passed since", func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		cancel()
		time.Sleep(time.Minute)
		return ctx
	}, sluice.Ignored},
	{"cancelled before a time limit of ours, which has passed since", func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, sluice.ErrTimeout)
		cancel()
		time.Sleep(time.Minute)
		return ctx
	}, sluice.Ignored},

	{"cancelled with the cause ErrTimeout", func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(sluice.ErrTimeout)
		return ctx
	}, sluice.Failure},
	{"cancelled with a cause that wraps ErrTimeout", func(t *testing.T) context.Context {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(fmt.Errorf("attempt 2: %w", sluice.ErrTimeout))
		return ctx
	}, sluice.Failure},
	{"past a time limit of ours", func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, sluice.ErrTimeout)
		return after(t, ctx, cancel)
	}, sluice.Failure},
	{"past a deadline of ours", func(t *testing.T) context.Context {
		ctx, cancel := context.WithDeadlineCause(t.Context(), time.Now().Add(time.Second), sluice.ErrTimeout)
		return after(t, ctx, cancel)
	}, sluice.Failure},
	{"child of one past a time limit of ours", func(t *testing.T) context.Context {
		parent, stop := context.WithTimeoutCause(t.Context(), time.Second, sluice.ErrTimeout)
		t.Cleanup(stop)
		ctx, cancel := context.WithCancel(parent)
		return after(t, ctx, cancel)
	}, sluice.Failure},
	{"past a time limit of ours, and cancelled since", func(t *testing.T) context.Context {
		parent, hangUp := context.WithCancel(t.Context())
		ctx, cancel := context.WithTimeoutCause(parent, time.Second, sluice.ErrTimeout)
		after(t, ctx, cancel)
		hangUp()
		return ctx
	}, sluice.Failure},

	{"past the caller's deadline", func(t *testing.T) context.Context {
		ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Second))
		return after(t, ctx, cancel)
	}, sluice.Failure},
	{"past the caller's deadline, with a cause of its own", func(t *testing.T) context.Context {
		ctx, cancel := context.WithDeadlineCause(t.Context(), time.Now().Add(time.Second), errDown)
		return after(t, ctx, cancel)
	}, sluice.Failure},
	{"past the caller's deadline, whose cause is a cancellation", func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, context.Canceled)
		return after(t, ctx, cancel)
	}, sluice.Failure},
}

// Who ended the call decides, in this order: no error, a mark, a local refusal,
// and then the ctx, whatever the error says.
func TestClassify_WhoEndedTheCallDecides(t *testing.T) {
	undecided := map[string]error{
		"the dependency's":   errDown,
		"Canceled":           context.Canceled,
		"DeadlineExceeded":   fmt.Errorf("get user: %w", context.DeadlineExceeded),
		"ErrTimeout":         sluice.ErrTimeout,
		"with a Retry-After": sluice.WithRetryAfter(errDown, time.Second),
		"marked with zero":   sluice.Mark(errDown, 0),
	}
	decided := map[string]struct {
		err  error
		want sluice.Outcome
	}{
		"none":                           {nil, sluice.Success},
		"a mark of nothing":              {sluice.Mark(nil, sluice.Failure), sluice.Success},
		"marked Success":                 {sluice.Mark(errDown, sluice.Success), sluice.Success},
		"marked Failure":                 {sluice.Mark(context.Canceled, sluice.Failure), sluice.Failure},
		"marked Ignored":                 {sluice.Ignore(errDown), sluice.Ignored},
		"marked Throttled":               {sluice.Mark(errDown, sluice.Throttled), sluice.Throttled},
		"a refusal":                      {sluice.ErrRejected, sluice.Ignored},
		"a wrapped refusal":              {fmt.Errorf("get user: %w", &rejection{}), sluice.Ignored},
		"a refusal, marked":              {sluice.Mark(sluice.ErrRejected, sluice.Failure), sluice.Failure},
		"a refusal, marked with zero":    {sluice.Mark(sluice.ErrRejected, 0), sluice.Ignored},
		"a refusal beside another":       {errors.Join(errDown, sluice.ErrRejected), sluice.Ignored},
		"a refusal beside a mark":        {errors.Join(sluice.ErrRejected, sluice.Mark(errDown, sluice.Failure)), sluice.Failure},
		"a refusal around a mark":        {fmt.Errorf("%w: %w", sluice.ErrRejected, sluice.Mark(errDown, sluice.Throttled)), sluice.Throttled},
		"a refusal because of a timeout": {fmt.Errorf("%w: %w", sluice.ErrRejected, sluice.ErrTimeout), sluice.Ignored},
	}
	for _, c := range conditions {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := c.make(t)
				for name, err := range undecided {
					assert.Equal(t, c.want, sluice.Classify(ctx, err), "error: "+name)
				}
				for name, d := range decided {
					assert.Equal(t, d.want, sluice.Classify(ctx, d.err), "error: "+name)
				}
			})
		})
	}
}

// timedOut is an error as drivers make them: it says with a method of its own
// what it is, and has no sentinel within.
type timedOut struct{}

func (timedOut) Error() string        { return "driver: i/o timeout" }
func (timedOut) Timeout() bool        { return true }
func (timedOut) Is(target error) bool { return target == errDown }

func TestMark_NilStaysNil(t *testing.T) {
	for _, o := range []sluice.Outcome{0, sluice.Success, sluice.Failure, sluice.Ignored, sluice.Throttled} {
		assert.NoError(t, sluice.Mark(nil, o))
	}
	assert.NoError(t, sluice.Ignore(nil))
}

func TestMark_IsTransparent(t *testing.T) {
	for _, o := range []sluice.Outcome{0, sluice.Success, sluice.Failure, sluice.Ignored, sluice.Throttled} {
		cause := fmt.Errorf("query: %w", timedOut{})
		err := sluice.Mark(cause, o)
		assert.EqualError(t, err, cause.Error())
		require.ErrorIs(t, err, cause)
		require.ErrorIs(t, err, errDown, "an Is method further in is asked")
		var found timedOut
		require.ErrorAs(t, err, &found)
		assert.True(t, found.Timeout())
		assert.NotErrorIs(t, err, context.Canceled)
	}
	marked := sluice.Ignore(errDown)
	assert.Same(t, errDown, errors.Unwrap(marked))
	assert.Equal(t, "connection refused", fmt.Sprint(marked))
}

func TestMark_IsFoundThroughAnyWrapping(t *testing.T) {
	throttled := sluice.Mark(errDown, sluice.Throttled)
	for name, err := range map[string]error{
		"bare":                    throttled,
		"%w":                      fmt.Errorf("get user: %w", throttled),
		"%w twice":                fmt.Errorf("a: %w", fmt.Errorf("b: %w", throttled)),
		"one of two %w":           fmt.Errorf("%w: %w", context.Canceled, throttled),
		"joined":                  errors.Join(context.Canceled, throttled),
		"joined, deep":            errors.Join(errDown, fmt.Errorf("x: %w", errors.Join(errDown, throttled))),
		"WithRetryAfter":          sluice.WithRetryAfter(throttled, time.Second),
		"within a mark with zero": sluice.Mark(fmt.Errorf("get user: %w", throttled), 0),
	} {
		assert.Equal(t, sluice.Throttled, sluice.Classify(t.Context(), err), name)
	}
}

// If an error is marked more than once, the outermost mark counts: the code
// further out knows more. Among errors that were joined it is the first.
func TestMark_OutermostCounts(t *testing.T) {
	success := sluice.Mark(errDown, sluice.Success)
	for name, c := range map[string]struct {
		err  error
		want sluice.Outcome
	}{
		"twice":                 {sluice.Mark(success, sluice.Throttled), sluice.Throttled},
		"twice, wrapped":        {sluice.Mark(fmt.Errorf("x: %w", success), sluice.Throttled), sluice.Throttled},
		"three times":           {sluice.Ignore(sluice.Mark(success, sluice.Throttled)), sluice.Ignored},
		"zero outermost":        {sluice.Mark(success, 0), sluice.Success},
		"zero twice":            {sluice.Mark(sluice.Mark(success, 0), 0), sluice.Success},
		"zero in between":       {sluice.Mark(sluice.Mark(success, 0), sluice.Throttled), sluice.Throttled},
		"zero innermost":        {sluice.Mark(sluice.Mark(errDown, 0), sluice.Throttled), sluice.Throttled},
		"joined, both marked":   {errors.Join(success, sluice.Ignore(errDown)), sluice.Success},
		"joined, then marked":   {sluice.Ignore(errors.Join(success, errDown)), sluice.Ignored},
		"joined, first unclear": {errors.Join(errDown, sluice.Ignore(errDown)), sluice.Ignored},
		"joined, first zero":    {errors.Join(sluice.Mark(errDown, 0), sluice.Ignore(errDown)), sluice.Ignored},
	} {
		assert.Equal(t, c.want, sluice.Classify(t.Context(), c.err), name)
	}
}
