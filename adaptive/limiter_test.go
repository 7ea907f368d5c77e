package adaptive

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

func buildLimiter(t testing.TB, opts ...LimiterOption) *Limiter {
	t.Helper()
	l, err := NewLimiter("backend", opts...)
	require.NoError(t, err)
	return l
}

// few is a Limiter that stays at n.
func few(t testing.TB, n int, opts ...LimiterOption) *Limiter {
	t.Helper()
	return buildLimiter(t, append([]LimiterOption{WithLimits(1, max(n, 1000)), WithLimitRule(FixedLimit(n))}, opts...)...)
}

// script is a LimitAlgorithm that remembers what it was shown and says what it is told to.
type script struct {
	seen []LimitWindow
	says func(LimitWindow) float64
}

func (s *script) Next(w LimitWindow) float64 {
	s.seen = append(s.seen, w)
	if s.says == nil {
		return 0
	}
	return s.says(w)
}

func (s *script) option() LimiterOption {
	return WithLimitAlgorithm(func() LimitAlgorithm { return s })
}

// passes makes n calls from now on that take so long, one after another, and returns when
// the last has ended.
func passes(t testing.TB, l *Limiter, now int64, n int, took time.Duration, err error) int64 {
	t.Helper()
	for range n {
		require.True(t, l.places.TryAcquire(1))
		l.done(context.Background(), now, now+int64(took), err)
		now += int64(took)
	}
	return now
}

func TestLimiter_AdmitsAsManyAsTheLimit(t *testing.T) {
	l := few(t, 2)
	a, err := l.Acquire(t.Context())
	require.NoError(t, err)
	b, err := l.TryAcquire(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 2, l.InFlight())
	assert.Equal(t, 2, l.Limit())
	for _, ask := range []func(context.Context) (LimiterPermit, error){l.Acquire, l.TryAcquire} {
		_, err = ask(t.Context())
		assert.ErrorIs(t, err, ErrLimited)
		assert.ErrorIs(t, err, sluice.ErrRejected)
		var refusal sluice.Rejection
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, "backend", refusal.Resource())
		assert.Equal(t, "limiter", refusal.Policy())
		assert.Equal(t, ReasonLimit, refusal.Reason())
		assert.Zero(t, refusal.RetryAfter())
		assert.Equal(t, `limiter "backend": as many calls are under way as may`, err.Error())
	}
	a.Done(nil)
	a.Done(nil)
	a.Close()
	assert.Equal(t, 1, l.InFlight(), "settled once")
	b.Cancel()
	assert.Zero(t, l.InFlight())
	s := l.Snapshot()
	assert.Equal(t, LimiterTotalsSnapshot{Admitted: 2, Answered: 1, Ignored: 1}, s.Totals)
	assert.Equal(t, LimiterRefusedSnapshot{Limit: 2}, s.Refused)
}

func TestLimiter_ADoneContextIsItsOwnError(t *testing.T) {
	l := few(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.Acquire(ctx)
	assert.Equal(t, context.Canceled, err)
	_, err = l.TryAcquire(ctx)
	assert.Equal(t, context.Canceled, err)
	assert.Equal(t, context.Canceled, l.Do(ctx, nothingToDo))
	assert.Zero(t, l.Snapshot().Totals)
	assert.Zero(t, l.Snapshot().Refused)
}

func TestLimiter_TheNilLimiterLetsEverythingPass(t *testing.T) {
	var l *Limiter
	p, err := l.Acquire(t.Context())
	require.NoError(t, err)
	p.Done(nil)
	p, err = l.TryAcquire(t.Context())
	require.NoError(t, err)
	p.Settle(sluice.Throttled)
	p.Cancel()
	p.Close()
	assert.NoError(t, l.Do(t.Context(), nothingToDo))
	assert.NoError(t, sluice.Chain(l, l).Do(t.Context(), nothingToDo))
	assert.Zero(t, l.Limit())
	assert.Zero(t, l.InFlight())
	assert.Empty(t, l.Name())
	assert.Zero(t, l.Snapshot())
	assert.Zero(t, l.View())
	assert.Zero(t, l.Config())
	assert.NoError(t, l.Update(DefaultLimiterConfig()))
	assert.Error(t, l.Update(LimiterConfig{}))
	l.Collect(nil)
}

var errDown = errors.New("down")

// How a call ends decides what follows from it.
func TestLimiter_WhatACallSays(t *testing.T) {
	live := t.Context()
	gone, cancel := context.WithCancel(live)
	cancel()
	late := &caller{Context: live, deadline: 1, gone: context.DeadlineExceeded}
	cut, end := context.WithCancelCause(live)
	end(fmt.Errorf("cut off: %w", sluice.ErrTimeout))
	type ends struct{ answered, dropped, failed, ignored int64 }
	answered, dropped, failed, ignored := ends{answered: 1}, ends{dropped: 1}, ends{failed: 1}, ends{ignored: 1}
	for name, c := range map[string]struct {
		ctx    context.Context
		settle func(p *LimiterPermit)
		want   ends
	}{
		"no error":                   {live, func(p *LimiterPermit) { p.Done(nil) }, answered},
		"no error, but gone":         {gone, func(p *LimiterPermit) { p.Done(nil) }, answered},
		"an error":                   {live, func(p *LimiterPermit) { p.Done(errDown) }, failed},
		"an answer all the same":     {live, func(p *LimiterPermit) { p.Done(sluice.Mark(errDown, sluice.Success)) }, answered},
		"throttled":                  {live, func(p *LimiterPermit) { p.Done(sluice.Mark(errDown, sluice.Throttled)) }, dropped},
		"ignored":                    {live, func(p *LimiterPermit) { p.Done(sluice.Ignore(errDown)) }, ignored},
		"refused further in":         {live, func(p *LimiterPermit) { p.Done(fmt.Errorf("inner: %w", sluice.ErrRejected)) }, ignored},
		"a timeout further in":       {live, func(p *LimiterPermit) { p.Done(context.DeadlineExceeded) }, dropped},
		"a timeout further out":      {cut, func(p *LimiterPermit) { p.Done(context.Canceled) }, dropped},
		"the caller's own deadline":  {late, func(p *LimiterPermit) { p.Done(context.DeadlineExceeded) }, dropped},
		"the caller left":            {gone, func(p *LimiterPermit) { p.Done(errDown) }, ignored},
		"settled: success":           {live, func(p *LimiterPermit) { p.Settle(sluice.Success) }, answered},
		"settled: nothing":           {live, func(p *LimiterPermit) { p.Settle(0) }, answered},
		"settled: throttled":         {live, func(p *LimiterPermit) { p.Settle(sluice.Throttled) }, dropped},
		"settled: failure":           {live, func(p *LimiterPermit) { p.Settle(sluice.Failure) }, failed},
		"settled: failure, too late": {late, func(p *LimiterPermit) { p.Settle(sluice.Failure) }, dropped},
		"settled: ignored":           {live, func(p *LimiterPermit) { p.Settle(sluice.Ignored) }, ignored},
		"settled: no outcome":        {live, func(p *LimiterPermit) { p.Settle(99) }, ignored},
		"cancelled":                  {live, func(p *LimiterPermit) { p.Cancel() }, ignored},
		"closed":                     {live, func(p *LimiterPermit) { p.Close() }, failed},
		"closed, but gone":           {gone, func(p *LimiterPermit) { p.Close() }, ignored},
	} {
		t.Run(name, func(t *testing.T) {
			l := few(t, 1)
			p, err := l.Acquire(live)
			require.NoError(t, err)
			p.ctx = c.ctx
			c.settle(&p)
			totals := l.Snapshot().Totals
			assert.Equal(t, c.want, ends{totals.Answered, totals.Dropped, totals.Failed, totals.Ignored})
			assert.Zero(t, l.InFlight())
			seen := l.window.Load().see(clock.Now())
			assert.Equal(t, int(c.want.answered), seen.Calls)
			assert.Equal(t, int(c.want.dropped), seen.Drops)
		})
	}
}

func TestLimiter_PanicsAndGoexitGiveThePlaceBack(t *testing.T) {
	l := few(t, 1)
	assert.Panics(t, func() { _ = l.Do(t.Context(), func(context.Context) error { panic("boom") }) })
	var wait sync.WaitGroup
	wait.Go(func() {
		_ = l.Do(t.Context(), func(context.Context) error {
			runtime.Goexit()
			return nil
		})
	})
	wait.Wait()
	chain := sluice.Chain(l)
	assert.Panics(t, func() {
		_, _ = sluice.Call(t.Context(), chain, func(context.Context) (int, error) { panic("boom") })
	})
	assert.Zero(t, l.InFlight())
	assert.EqualValues(t, 3, l.Snapshot().Totals.Failed)
}

func TestLimiter_DoReturnsTheCallsError(t *testing.T) {
	l := few(t, 1)
	assert.Equal(t, errDown, l.Do(t.Context(), func(context.Context) error {
		assert.Equal(t, 1, l.InFlight())
		assert.ErrorIs(t, l.Do(t.Context(), nothingToDo), ErrLimited)
		return errDown
	}))
}

// However a call in a chain ends, the place is free again, and what is refused further in
// leaves no trace.
func TestLimiter_InAChain(t *testing.T) {
	outer, inner := few(t, 2), few(t, 1)
	chain := sluice.Chain(outer, inner)
	assert.NoError(t, chain.Do(t.Context(), func(ctx context.Context) error {
		assert.ErrorIs(t, chain.Do(ctx, nothingToDo), ErrLimited)
		assert.Equal(t, 1, outer.InFlight())
		return nil
	}))
	v, err := sluice.Call(t.Context(), chain, func(context.Context) (int, error) { return 7, errDown })
	assert.Equal(t, 7, v)
	assert.Equal(t, errDown, err)
	assert.Equal(t, LimiterTotalsSnapshot{Admitted: 3, Answered: 1, Ignored: 1, Failed: 1}, outer.Snapshot().Totals)
	assert.Equal(t, LimiterTotalsSnapshot{Admitted: 2, Answered: 1, Failed: 1}, inner.Snapshot().Totals)
	(*Limiter)(nil).Settle(stage.Ticket{}, t.Context(), 1, nil, true)
}

// The time that a call has waited for leave is not its own: neither here nor further in.
func TestLimiter_WaitingIsNoLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := few(t, 1, WithQueue(10, time.Hour))
		nap := func(context.Context) error { time.Sleep(time.Second); return nil }
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { assert.NoError(t, l.Do(t.Context(), nap)) })
			all.Go(func() {
				p, err := l.Acquire(t.Context())
				assert.NoError(t, err)
				_ = nap(t.Context())
				p.Done(nil)
			})
			all.Go(func() { assert.NoError(t, sluice.Chain(l, l2{}).Do(t.Context(), nap)) })
		}
		all.Wait()
		assert.Equal(t, time.Second, l.window.Load().see(clock.Now()).Took.Round(ms))
		s := l.Snapshot()
		assert.EqualValues(t, 8, s.Totals.Waited)
		assert.Equal(t, 36*time.Second, s.Totals.WaitTime)

		first, err := l.Admit(t.Context(), clock.Now())
		require.NoError(t, err)
		came := clock.Now()
		time.AfterFunc(time.Second, func() { l.Settle(first, t.Context(), clock.Now(), nil, true) })
		second, err := l.Admit(t.Context(), came)
		require.NoError(t, err)
		assert.Equal(t, came+int64(time.Second), second.At, "nobody further in takes the wait for the call's")
		l.Settle(second, t.Context(), clock.Now(), nil, true)
	})
}

// l2 is a Guard of somebody else's.
type l2 struct{}

func (l2) Do(ctx context.Context, call func(context.Context) error) error { return call(ctx) }

func TestLimiter_WhoWaitsAndHowItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := few(t, 1, WithQueue(1, time.Second))
		p, err := l.Acquire(t.Context())
		require.NoError(t, err)
		reason := func(err error) string {
			var refusal *LimitError
			require.ErrorAs(t, err, &refusal)
			return refusal.Reason()
		}
		_, err = l.Acquire(t.Context())
		assert.Equal(t, ReasonMaxWait, reason(err))
		ctx, cancel := context.WithTimeout(t.Context(), ms)
		defer cancel()
		_, err = l.Acquire(ctx)
		assert.Equal(t, context.DeadlineExceeded, err)
		waits := make(chan error)
		go func() { waits <- l.Do(t.Context(), nothingToDo) }()
		synctest.Wait()
		_, err = l.Acquire(t.Context())
		assert.Equal(t, ReasonQueueFull, reason(err))
		_, err = l.TryAcquire(t.Context())
		assert.Equal(t, ReasonLimit, reason(err), "it would not have waited")
		assert.Equal(t, 1, l.Snapshot().Waiting)
		p.Done(nil)
		assert.NoError(t, <-waits)
		s := l.Snapshot()
		assert.Equal(t, LimiterRefusedSnapshot{Limit: 1, QueueFull: 1, MaxWait: 1}, s.Refused)
		assert.EqualValues(t, 1, s.Totals.GaveUp)
		assert.EqualValues(t, 1, s.Totals.Waited)
	})
}

// The more important call goes first, and takes the room of another one; a place that is
// free is given to whoever comes, whatever the priority.
func TestLimiter_Priorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := few(t, 1, WithQueue(2, time.Minute))
		p, err := l.Acquire(sluice.WithPriority(t.Context(), sluice.P2))
		require.NoError(t, err)
		served := make(chan sluice.Priority, 10)
		refused := make(chan sluice.Priority, 10)
		for _, priority := range []sluice.Priority{sluice.P2, sluice.P1, sluice.P0} {
			go func() {
				err := l.Do(sluice.WithPriority(t.Context(), priority), func(context.Context) error { served <- priority; return nil })
				if err != nil {
					refused <- priority
				}
			}()
			time.Sleep(ms)
		}
		assert.Equal(t, sluice.P2, <-refused, "P0 took its room")
		p.Done(nil)
		assert.Equal(t, sluice.P0, <-served)
		assert.Equal(t, sluice.P1, <-served)
	})
}

// A queue that evens out no bursts any more makes every call late by its whole length.
// With CoDel those that are served have hardly waited; the newest first helps most of them.
func TestLimiter_QueueInOverload(t *testing.T) {
	waits := func(opts ...LimiterOption) (p50, p95 time.Duration) {
		g := newGuarded(t, 1, 16, mean10, append([]LimiterOption{WithLimits(1, 1000), WithLimitRule(FixedLimit(20)), WithQueue(1000, time.Second)}, opts...)...)
		p := g.phase(5*time.Second, 30*time.Second)
		g.arriveAt(step(1.5*capacity, 0, 1.5*capacity, time.Hour, 0))
		g.run(31 * time.Second)
		require.GreaterOrEqual(t, p.rate(), 0.97*capacity, "nothing is lost")
		return p.quantile(0.5), p.quantile(0.95)
	}
	p50, _ := waits()
	assert.Greater(t, p50, 500*ms, "no measures")
	p50, p95 := waits(WithCoDel(10*ms, 100*ms))
	assert.Less(t, p50, 150*ms, "CoDel")
	assert.Less(t, p95, 250*ms, "CoDel")
	p50, _ = waits(WithNewestFirst(true))
	assert.Less(t, p50, 20*ms, "newest first")
}

// A window ends after its time, and not before it says something.
func TestLimiter_Windows(t *testing.T) {
	w := newWorld(1)
	s := &script{}
	l := newTestLimiter(t, w, s.option(), WithInitialLimit(8))
	passes(t, l, w.now, 99, 10*ms, nil)
	require.Empty(t, s.seen, "990 ms")
	now := passes(t, l, w.now+990*int64(ms), 2, 10*ms, nil)
	require.Len(t, s.seen, 1)
	seen := s.seen[0]
	assert.Equal(t, now, seen.At)
	assert.Equal(t, 1010*ms, seen.Span, "as somebody looks every tenth of it, the first time after 10 ms")
	assert.Equal(t, 101, seen.Calls)
	assert.Equal(t, 10*ms, seen.Took)
	assert.Equal(t, 1, seen.InFlight)
	assert.Equal(t, [3]float64{8, 1, 1000}, [3]float64{seen.Limit, float64(seen.Min), float64(seen.Max)})
	assert.InEpsilon(t, float64(10*ms), float64(seen.Quantile(0.9)), 0.13)

	// Few calls: the window goes on until there are ten.
	now = passes(t, l, now+int64(time.Hour), 11, 10*ms, nil)
	require.Len(t, s.seen, 2, "with the one before")
	now = passes(t, l, now, 9, 500*ms, nil)
	require.Len(t, s.seen, 2)
	now = passes(t, l, now, 1, 500*ms, nil)
	require.Len(t, s.seen, 3, "ten calls in five seconds")
	// Slow calls, of which 20 end in each second: ten times as long as one.
	for range 700 {
		require.True(t, l.places.TryAcquire(1))
		now += int64(50 * ms)
		l.done(t.Context(), now-int64(3*time.Second), now, nil)
	}
	require.Len(t, s.seen, 4)
	assert.InDelta(t, 30*time.Second, s.seen[3].Span, float64(200*ms))
}

// Fifty calls of which most have waited for others end a window after a tenth of it, and
// so do drops; fifty ordinary ones do not.
func TestLimiter_UrgentWindows(t *testing.T) {
	for name, c := range map[string]struct {
		took   time.Duration
		err    error
		urgent bool
	}{
		"as ever": {10 * ms, nil, false},
		"slow":    {40 * ms, nil, true},
		"drops":   {10 * ms, context.DeadlineExceeded, true},
	} {
		w := newWorld(1)
		l := newTestLimiter(t, w)
		now := passes(t, l, w.now, 200, 10*ms, nil)
		before := l.Limit()
		for range before {
			require.True(t, l.places.TryAcquire(1))
		}
		now += int64(ms)
		for range 60 {
			now += int64(2 * ms)
			l.done(t.Context(), now-int64(c.took), now, c.err)
			l.places.TryAcquire(1)
		}
		assert.Equal(t, c.urgent, l.Limit() < before, "%s: %d → %d", name, before, l.Limit())
	}
}

// A limit of an algorithm's is kept within the bounds and counted in whole calls; what is
// no number leaves it.
func TestLimiter_OwnAlgorithm(t *testing.T) {
	w := newWorld(1)
	says := 0.0
	s := &script{says: func(LimitWindow) float64 { return says }}
	l := newTestLimiter(t, w, s.option(), WithLimits(2, 50))
	now := w.now
	for _, c := range []struct {
		says  float64
		limit int
	}{{7.9, 7}, {0, 7}, {-3, 7}, {nan(), 7}, {1, 2}, {1e18, 50}, {inf(), 50}, {2.5, 2}} {
		says = c.says
		now = passes(t, l, now, 101, 10*ms, nil)
		assert.Equal(t, c.limit, l.Limit(), "%v", c.says)
	}
	assert.InDelta(t, 2.5, l.fraction(), 0)
	assert.Equal(t, "own", l.Snapshot().Rule)
	assert.Len(t, s.seen, 8)

	_, err := NewLimiter("x", WithLimitAlgorithm(func() LimitAlgorithm { return nil }))
	assert.ErrorIs(t, err, errNoAlgorithm)
}

// Foreign code runs with no lock held: it may use the Limiter that called it (law 8).
func TestLaw8_ForeignCodeMayUseTheLimiter(t *testing.T) {
	var l *Limiter
	use := func() {
		_ = l.Snapshot()
		c := l.Config()
		c.Max++
		_ = l.Update(c)
		_ = l.Do(t.Context(), nothingToDo)
	}
	l = buildLimiter(t, WithLimitAlgorithm(func() LimitAlgorithm { return &script{says: func(LimitWindow) float64 { use(); return 5 }} }),
		WithLimiterClassifier(func(context.Context, error) sluice.Outcome { use(); return 0 }))
	assert.Equal(t, errDown, l.Do(t.Context(), func(context.Context) error { return errDown }))
	assert.Equal(t, 1001, l.Config().Max)
	passes(t, l, clock.Now(), 200, 10*ms, nil)
	assert.Greater(t, l.Config().Max, 1001)
	assert.Equal(t, 5, l.Limit())
	assert.Zero(t, l.InFlight())
}

func TestLimiter_Classifier(t *testing.T) {
	unavailable := errors.New("503")
	boom := errors.New("boom")
	shown := 0
	l := few(t, 1, WithLimiterClassifier(func(_ context.Context, err error) sluice.Outcome {
		shown++
		switch err {
		case unavailable:
			return sluice.Throttled
		case boom:
			panic(err)
		}
		return 0
	}))
	for _, err := range []error{unavailable, errDown, sluice.ErrRejected} {
		assert.Equal(t, err, l.Do(t.Context(), func(context.Context) error { return err }))
	}
	assert.Equal(t, 2, shown, "not the refusal")
	assert.Panics(t, func() { _ = l.Do(t.Context(), func(context.Context) error { return boom }) })
	assert.Zero(t, l.InFlight())
	totals := l.Snapshot().Totals
	assert.Equal(t, [3]int64{1, 2, 1}, [3]int64{totals.Dropped, totals.Failed, totals.Ignored})
}

// Local refusals feed nothing, whoever refused (law 5).
func TestLaw5_LocalRefusalsDoNotMoveTheLimit(t *testing.T) {
	w := newWorld(1)
	s := &script{}
	l := newTestLimiter(t, w, s.option())
	passes(t, l, w.now, 1000, 100*ms, fmt.Errorf("inner: %w", sluice.ErrRejected))
	assert.Empty(t, s.seen)
	seen := l.window.Load().see(w.now)
	assert.Zero(t, seen.ended())
}

// Time is small and positive on both sides of a synctest bubble (law 1).
func TestLaw1_ALimiterMadeOutsideABubbleWorksInIt(t *testing.T) {
	for _, r := range []LimitRule{Vegas(), AIMD(0)} {
		l := buildLimiter(t, WithLimitRule(r))
		l.window.Load().began = int64(time.Hour) // the process is that old
		synctest.Test(t, func(t *testing.T) {
			for range 300 {
				require.NoError(t, l.Do(t.Context(), func(context.Context) error { time.Sleep(20 * ms); return nil }))
			}
			assert.Equal(t, 20*ms, l.Snapshot().Took.Round(ms), r)
		})
	}
}
