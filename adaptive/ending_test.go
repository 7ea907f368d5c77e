package adaptive

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// seen is an Estimator that keeps what it is shown.
type seen struct {
	mu      sync.Mutex
	samples []Sample
	asked   []int64
}

func (s *seen) Observe(sample Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples = append(s.samples, sample)
}

func (s *seen) Estimate(now int64, b Bounds) Estimate {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, now)
	return Estimate{}
}

// watch returns a Timeout with a limit of a second, and what its estimator sees.
func watch(t testing.TB, opts ...TimeoutOption) (*Timeout, *seen) {
	s := new(seen)
	return build(t, append([]TimeoutOption{WithInitial(time.Second), WithEstimator(func() Estimator { return s })}, opts...)...), s
}

// timeoutError is what a connection returns whose own time limit is over.
var timeoutError = &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}

// Who ended a call decides what it is a sample of, if of anything (law 6).
func TestEnding_WhatIsLearntFromACall(t *testing.T) {
	const none = End(0)
	late, soon := 1010*ms, 400*ms
	for name, c := range map[string]struct {
		took     time.Duration
		deadline time.Duration // of the caller, 0 for none
		gone     error         // the caller's ctx
		err      error
		end      End
		totals   TimeoutTotalsSnapshot
	}{
		"answered":                       {took: soon, end: Finished, totals: TimeoutTotalsSnapshot{Finished: 1}},
		"answered late":                  {took: late, end: Finished, totals: TimeoutTotalsSnapshot{Finished: 1}},
		"answered to one who has left":   {took: soon, gone: context.Canceled, end: Finished, totals: TimeoutTotalsSnapshot{Finished: 1}},
		"a success by mark":              {took: soon, err: sluice.Mark(errRefused, sluice.Success), end: Finished, totals: TimeoutTotalsSnapshot{Finished: 1}},
		"cut off by the limit":           {took: late, err: context.DeadlineExceeded, end: TimedOut, totals: TimeoutTotalsSnapshot{TimedOut: 1}},
		"to the nanosecond":              {took: time.Second, err: context.DeadlineExceeded, end: TimedOut, totals: TimeoutTotalsSnapshot{TimedOut: 1}},
		"with an error of its own":       {took: late, err: errRefused, end: TimedOut, totals: TimeoutTotalsSnapshot{TimedOut: 1}},
		"then the caller has left":       {took: late, gone: context.Canceled, err: context.Canceled, end: TimedOut, totals: TimeoutTotalsSnapshot{TimedOut: 1}},
		"the caller left":                {took: soon, gone: context.Canceled, err: context.Canceled, end: CutShort, totals: TimeoutTotalsSnapshot{CutShort: 1}},
		"and the call has failed":        {took: soon, gone: context.Canceled, err: errRefused, end: CutShort, totals: TimeoutTotalsSnapshot{CutShort: 1}},
		"past the caller's deadline":     {took: soon, deadline: soon, gone: context.DeadlineExceeded, err: context.DeadlineExceeded, end: CutShort, totals: TimeoutTotalsSnapshot{CutShort: 1}},
		"and noticed late":               {took: late, deadline: soon, gone: context.DeadlineExceeded, err: context.DeadlineExceeded, end: CutShort, totals: TimeoutTotalsSnapshot{CutShort: 1}},
		"the limit before that deadline": {took: late, deadline: 1001 * ms, err: context.DeadlineExceeded, end: TimedOut, totals: TimeoutTotalsSnapshot{TimedOut: 1}},
		"a limit further in":             {took: soon, err: fmt.Errorf("dial: %w", context.DeadlineExceeded), end: CutShort, totals: TimeoutTotalsSnapshot{CutShort: 1}},
		"a limit of the connection":      {took: soon, err: timeoutError, end: CutShort, totals: TimeoutTotalsSnapshot{CutShort: 1}},
		"failed":                         {took: soon, err: errRefused, end: none, totals: TimeoutTotalsSnapshot{Failed: 1}},
		"failed at once":                 {took: 0, err: errRefused, end: none, totals: TimeoutTotalsSnapshot{Failed: 1}},
		"throttled":                      {took: soon, err: sluice.Mark(errRefused, sluice.Throttled), end: none, totals: TimeoutTotalsSnapshot{Throttled: 1}},
		"throttled late":                 {took: late, err: sluice.Mark(errRefused, sluice.Throttled), end: none, totals: TimeoutTotalsSnapshot{Throttled: 1}},
		"ignored":                        {took: soon, err: sluice.Ignore(errRefused), end: none, totals: TimeoutTotalsSnapshot{Ignored: 1}},
		"ignored late":                   {took: late, err: sluice.Ignore(errRefused), end: none, totals: TimeoutTotalsSnapshot{Ignored: 1}},
		"refused further in":             {took: soon, err: fmt.Errorf("limiter: %w", sluice.ErrRejected), end: none, totals: TimeoutTotalsSnapshot{Ignored: 1}},
		"refused, and the caller left":   {took: late, gone: context.Canceled, err: sluice.ErrRejected, end: none, totals: TimeoutTotalsSnapshot{Ignored: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			to, seen := watch(t)
			ctx := &caller{Context: t.Context()}
			if c.deadline > 0 {
				ctx.deadline = at(c.deadline)
			}
			a, err := to.begin(ctx, at(0))
			require.NoError(t, err)
			ctx.gone = c.gone
			a.done(at(c.took), c.err)
			a.done(at(c.took), nil) // later settlings do nothing
			a.Close()
			if c.end == none {
				assert.Empty(t, seen.samples)
			} else {
				assert.Equal(t, []Sample{{At: at(c.took), Took: c.took, Limit: time.Second, End: c.end}}, seen.samples)
			}
			assert.Equal(t, c.totals, to.snapshot(at(c.took)).Totals)
		})
	}
}

func TestEnding_BySettlingAndByCancelling(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(a *Attempt, now int64)
		took   time.Duration
		gone   error
		totals TimeoutTotalsSnapshot
		sample bool
	}{
		"success":                 {func(a *Attempt, now int64) { a.settle(now, sluice.Success) }, ms, nil, TimeoutTotalsSnapshot{Finished: 1}, true},
		"no opinion":              {func(a *Attempt, now int64) { a.settle(now, 0) }, ms, nil, TimeoutTotalsSnapshot{Finished: 1}, true},
		"failure":                 {func(a *Attempt, now int64) { a.settle(now, sluice.Failure) }, ms, nil, TimeoutTotalsSnapshot{Failed: 1}, false},
		"failure at the limit":    {func(a *Attempt, now int64) { a.settle(now, sluice.Failure) }, time.Second, nil, TimeoutTotalsSnapshot{TimedOut: 1}, true},
		"failure of one gone":     {func(a *Attempt, now int64) { a.settle(now, sluice.Failure) }, ms, context.DeadlineExceeded, TimeoutTotalsSnapshot{CutShort: 1}, true},
		"throttled":               {func(a *Attempt, now int64) { a.settle(now, sluice.Throttled) }, ms, nil, TimeoutTotalsSnapshot{Throttled: 1}, false},
		"ignored":                 {func(a *Attempt, now int64) { a.settle(now, sluice.Ignored) }, ms, nil, TimeoutTotalsSnapshot{Ignored: 1}, false},
		"ignored, for one gone":   {func(a *Attempt, now int64) { a.settle(now, sluice.Ignored) }, ms, context.Canceled, TimeoutTotalsSnapshot{CutShort: 1}, true},
		"a number":                {func(a *Attempt, now int64) { a.settle(now, 77) }, ms, nil, TimeoutTotalsSnapshot{Ignored: 1}, false},
		"cancelled":               {func(a *Attempt, _ int64) { a.Cancel() }, time.Second, nil, TimeoutTotalsSnapshot{Ignored: 1}, false},
		"closed":                  {func(a *Attempt, _ int64) { a.Close() }, time.Second, nil, TimeoutTotalsSnapshot{Failed: 1}, false},
		"closed, the caller gone": {func(a *Attempt, _ int64) { a.Close() }, time.Second, context.Canceled, TimeoutTotalsSnapshot{Ignored: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			to, seen := watch(t)
			ctx := &caller{Context: t.Context()}
			a, err := to.begin(ctx, at(0))
			require.NoError(t, err)
			ctx.gone = c.gone
			c.end(&a, at(c.took))
			a.Cancel()
			assert.Equal(t, c.totals, to.snapshot(at(c.took)).Totals)
			assert.Equal(t, c.sample, len(seen.samples) == 1)
		})
	}
}

func TestEnding_AClassifierKnowsBetter(t *testing.T) {
	errNoRows, errBusy := errors.New("no rows"), errors.New("busy")
	to, seen := watch(t, WithClassifier(func(_ context.Context, err error) sluice.Outcome {
		assert.NotErrorIs(t, err, sluice.ErrRejected, "never shown to a classifier")
		switch {
		case errors.Is(err, errNoRows):
			return sluice.Success
		case errors.Is(err, errBusy):
			panic("cannot tell")
		}
		return 0
	}))
	end := func(err error) {
		a, _ := to.begin(t.Context(), at(0))
		defer a.Close()
		a.done(at(ms), err)
	}
	end(errNoRows)
	end(fmt.Errorf("lookup: %w", errNoRows))
	end(errRefused)
	end(sluice.ErrRejected)
	assert.PanicsWithValue(t, "cannot tell", func() { end(errBusy) })
	assert.Len(t, seen.samples, 2)
	assert.Equal(t, TimeoutTotalsSnapshot{Finished: 2, Failed: 2, Ignored: 1}, to.snapshot(at(ms)).Totals)
}

// An Estimator is asked by the call that ends, every 250 ms, and not while nothing
// happens.
func TestEstimator_IsAskedEvery250ms(t *testing.T) {
	to, seen := watch(t)
	for i := range 101 {
		calls(t, to, at(time.Duration(i)*10*ms), 1, ms)
	}
	assert.Equal(t, []int64{at(0), at(250 * ms), at(500 * ms), at(750 * ms), at(1000 * ms)}, seen.asked)
	calls(t, to, at(time.Hour), 1, ms)
	assert.Len(t, seen.asked, 6)
}

// One that panics ends the call that asked it, and no other.
func TestEstimator_ThatPanics(t *testing.T) {
	to := build(t, WithEstimator(func() Estimator { return broken{} }))
	for i := range 3 {
		assert.Panics(t, func() { calls(t, to, at(time.Duration(i)*time.Second), 1, ms) })
		assert.NotPanics(t, func() { calls(t, to, at(time.Duration(i)*time.Second), 1, ms) })
	}
	assert.Equal(t, 5*time.Second, to.Value())
}

type broken struct{}

func (broken) Observe(Sample)                  {}
func (broken) Estimate(int64, Bounds) Estimate { panic("no idea") }
