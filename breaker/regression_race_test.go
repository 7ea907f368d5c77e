package breaker

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

// A move was once made of the plan that its goroutine had read before it got the
// mutex. An Update in between was lost: the breaker closed with windows in which a
// rule found nothing to look at, and never tripped again.
func TestAMoveIsMadeOfThePlanInForce(t *testing.T) {
	b := build(t, WithSlowCallRatio(time.Second, 0.5), WithMinRequests(1), WithOpenFor(1), WithBackoff(1, Auto))
	require.NoError(t, b.Trip(1))
	p, err := b.Allow(t.Context())
	require.NoError(t, err)
	c := b.Config()
	c.Rules[0].SlowerThan, c.Window, c.OpenFor = time.Millisecond, time.Minute, time.Hour
	b.mu.Lock() // an Update that has got the mutex
	var settled sync.WaitGroup
	settled.Go(func() { p.Done(nil) })
	for range 1000 {
		runtime.Gosched()
	}
	b.plan.Store(b.plan.Load().withConfig(c.Clone()))
	b.mu.Unlock()
	settled.Wait()
	require.Equal(t, Closed, b.State())
	now := b.cur.Load().began
	slow, err := b.allow(t.Context(), now)
	require.NoError(t, err)
	slow.done(now+int64(time.Second), nil)
	assert.Equal(t, Open, b.cur.Load().state)
	assert.Equal(t, time.Hour, b.snapshot(now+int64(time.Second)).OpenFor)
}

// A listener that forces the breaker open at the half-open event once did not stop
// the very call that had caused it.
func TestForcedOpenInTheListenerStopsTheProbe(t *testing.T) {
	var b *Breaker
	b = build(t, WithErrorCount(1), WithOpenFor(1), WithOnChange(func(e Event) {
		if e.To == HalfOpen {
			assert.NoError(t, b.Force(ForcedOpen, 0))
		}
	}))
	failOnce(t, b)
	assert.ErrorIs(t, b.Do(t.Context(), func(context.Context) error { t.Error("sent"); return nil }), ErrOpen)
}

// A group that is full lets go of an idle breaker; one that opens in that moment must
// stay.
func TestAGroupDoesNotLetGoOfOneThatOpens(t *testing.T) {
	for i := range rounds(400) {
		g := newGroup(t, WithMaxKeys(1), WithErrorCount(1), WithOpenFor(time.Hour), WithWindow(10*time.Second, 5_000))
		b := g.Get("a")
		var both sync.WaitGroup
		both.Go(func() {
			for range i % 400 * 20 {
				_ = b.Peek()
			}
			_ = b.Trip(time.Hour)
		})
		both.Go(func() { g.Get("b") })
		both.Wait()
		require.Same(t, b, held(g, "a"))
	}
}

// What a breaker that has been let go has to lose brings it back: an override, a
// failure, a configuration of its own.
func TestWhatThereIsToLoseBringsABreakerBack(t *testing.T) {
	for name, happens := range map[string]func(b *Breaker){
		"an override":     func(b *Breaker) { assert.NoError(t, b.Force(ForcedOpen, 0)) },
		"a failure":       func(b *Breaker) { failOnce(t, b) },
		"a configuration": func(b *Breaker) { c := b.Config(); c.MinRequests = 7; assert.NoError(t, b.Update(c)) },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, WithMaxKeys(1))
			b := g.Get("a")
			g.Get("b")
			require.Nil(t, held(g, "a"), "let go")
			happens(b)
			assert.Same(t, b, held(g, "a"))
		})
	}
}

// brokenError panics when it is looked into: the typed nil that a func returns as an
// error.
type brokenError struct{ inner error }

func (e *brokenError) Error() string { return "broken" }
func (e *brokenError) Unwrap() error { return e.inner }

// An error whose methods panic once left its permit unsettled: no failure was
// counted, and the place of a probe was taken for its whole lease.
func TestAnErrorThatPanicsIsAFailure(t *testing.T) {
	for name, do := range map[string]func(b *Breaker, call func(context.Context) error) error{
		"Do":   func(b *Breaker, call func(context.Context) error) error { return b.Do(t.Context(), call) },
		"Call": func(b *Breaker, call func(context.Context) error) error { return sluice.Chain(b).Do(t.Context(), call) },
	} {
		t.Run(name, func(t *testing.T) {
			b := build(t, WithErrorCount(3))
			for range 3 {
				assert.Panics(t, func() {
					_ = do(b, func(context.Context) error { var e *brokenError; return e })
				})
			}
			assert.Equal(t, Open, b.State())
			assert.EqualValues(t, 3, b.Snapshot().Totals.Failure)
		})
	}
}

// An override is applied again at every new key, so it must not share what its
// caller goes on to change.
func TestAnOverrideSharesNothingWithItsCaller(t *testing.T) {
	c, probes, steps := DefaultConfig(), []int{1, 2}, []Step{{0.5, time.Second}}
	g := newGroup(t, WithOverride("k", WithConfig(c), WithProbes(probes...), WithRecovery(steps...)))
	c.Rules[0].Ratio, probes[0], steps[0].Share = 7, 0, 9
	assert.NoError(t, g.Get("k").Config().Validate())
}

// A rule was once known by its place in the list, so another order of the same rules
// shortened a running open period.
func TestTheOrderOfRulesDoesNotShortenAnOpenPeriod(t *testing.T) {
	b := build(t, WithErrorRatio(0.5, OpenFor(time.Minute), MinRequests(1)), WithErrorRatio(0.9, OpenFor(time.Second), MinRequests(5)))
	failOnce(t, b)
	c := b.Config()
	c.Rules[0], c.Rules[1] = c.Rules[1], c.Rules[0]
	require.NoError(t, b.Update(c))
	assert.Equal(t, time.Minute, b.Snapshot().OpenFor)
}

// The seconds spent open end at the deadline, whenever the next call comes, and never
// go down.
func TestOpenSecondsEndAtTheDeadlineAndNeverGoDown(t *testing.T) {
	b := build(t)
	read := func() (seconds float64) {
		b.Collect(func(s metrics.Sample) bool {
			if s.Desc == &descOpen {
				seconds = s.Value
			}
			return true
		})
		return seconds
	}
	require.NoError(t, b.Trip(time.Nanosecond))
	open := read()
	assert.LessOrEqual(t, open, 1e-9)
	b.reset(b.cur.Load().began) // a move whose time is older than the reading
	assert.GreaterOrEqual(t, read(), open)
}

// panickyBudget gives leave, and panics when told how the probe ended.
type panickyBudget struct{}

func (panickyBudget) Take(string, time.Duration) (uint64, bool) { return 1, true }
func (panickyBudget) Settle(string, uint64, sluice.Outcome)     { panic("budget") }

// A budget that panics keeps no event from the listeners, and a logger that panics
// none either.
func TestForeignPanicsHideNoEvent(t *testing.T) {
	var heard []State
	b := build(t, WithErrorCount(1), WithOpenFor(1), WithProbeBudget(panickyBudget{}), WithLogger(slog.New(panickyLog{})),
		WithOnChange(func(e Event) { heard = append(heard, e.To) }))
	failOnce(t, b)
	assert.Panics(t, func() { _ = b.Do(t.Context(), func(context.Context) error { return nil }) })
	assert.Equal(t, []State{Open, HalfOpen, Closed}, heard)
	assert.EqualValues(t, 3, b.Snapshot().Panics)
}

type panickyLog struct{}

func (panickyLog) Enabled(context.Context, slog.Level) bool  { return true }
func (panickyLog) Handle(context.Context, slog.Record) error { panic("log") }
func (l panickyLog) WithAttrs([]slog.Attr) slog.Handler      { return l }
func (l panickyLog) WithGroup(string) slog.Handler           { return l }

// A rule with a window of its own keeps it when the breaker's changes its shape.
func TestARulesOwnWindowOutlivesTheBreakers(t *testing.T) {
	b := build(t, WithErrorRatio(0.9), WithErrorCount(2, Over(20*time.Second)))
	failOnce(t, b)
	c := b.Config()
	c.CountWindow = 100
	require.NoError(t, b.Update(c))
	failOnce(t, b)
	assert.Equal(t, Open, b.State())
}
