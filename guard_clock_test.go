package sluice_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Guards of this module that stand next to one another share one reading of the
// clock on the way in and one on the way out, also across the bounds of nested
// chains. Here time passes in between, and nobody notices.
func TestChain_ReadsTheClockOnceInAndOnceOut(t *testing.T) {
	for name, guard := range map[string]func(a, b, c sluice.Guard) sluice.Guard{
		"flat":   func(a, b, c sluice.Guard) sluice.Guard { return sluice.Chain(a, b, c) },
		"nested": func(a, b, c sluice.Guard) sluice.Guard { return sluice.Chain(a, nil, sluice.Chain(sluice.Chain(b), c)) },
	} {
		for _, through := range []func(context.Context, sluice.Guard, func(context.Context) error) error{do, callThrough} {
			synctest.Test(t, func(t *testing.T) {
				j := &journal{began: clock.Now()}
				idle := func(context.Context, int64) { time.Sleep(time.Minute) }
				a, b, c := j.toll("a"), j.toll("b"), j.toll("c")
				a.hears, b.hears, c.hears = idle, idle, idle
				require.NoError(t, through(t.Context(), guard(a, b, c), j.doing(pass)), name)
				assert.Equal(t, []string{
					"a admits at 0s", "b admits at 0s", "c admits at 0s", "call at 3m0s",
					"c settles: ok at 1h3m0s", "b settles: ok at 1h3m0s", "a settles: ok at 1h3m0s",
				}, j.lines, name)
			})
		}
	}
}

// do and callThrough are the two ways through a Guard.
func do(ctx context.Context, g sluice.Guard, call func(context.Context) error) error {
	return g.Do(ctx, call)
}

func callThrough(ctx context.Context, g sluice.Guard, call func(context.Context) error) error {
	_, err := sluice.Call(ctx, g, func(ctx context.Context) (int, error) { return 0, call(ctx) })
	return err
}

// A stage that waited says so by its ticket, and those further in begin then: its
// waiting does not make them slow.
func TestChain_PassesOnWhenAStageAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{began: clock.Now()}
		queue, second := j.toll("queue"), j.toll("second")
		queue.waits, second.waits = time.Minute, time.Second
		guard := sluice.Chain(j.toll("a"), queue, j.toll("b"), second, j.toll("c"))
		require.NoError(t, guard.Do(t.Context(), j.doing(pass)))
		assert.Equal(t, []string{
			"a admits at 0s", "queue admits at 0s", "b admits at 1m0s", "second admits at 1m0s", "c admits at 1m1s", "call at 1m1s",
			"c settles: ok at 1h1m1s", "second settles: ok at 1h1m1s", "b settles: ok at 1h1m1s", "queue settles: ok at 1h1m1s", "a settles: ok at 1h1m1s",
		}, j.lines)
	})
}

// timeless is a stage whose tickets carry no time.
type timeless struct{ *toll }

func (s timeless) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	t, err := s.toll.Admit(ctx, now)
	t.At = 0
	return t, err
}

func TestChain_TimeNeverGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		j := &journal{began: clock.Now()}
		require.NoError(t, sluice.Chain(timeless{j.toll("a")}, j.toll("b")).Do(t.Context(), j.doing(pass)))
		assert.Equal(t, "b admits at 0s", j.lines[1])
	})
}

// A foreign guard may take its time, so the clock is read again behind it.
func TestChain_ReadsTheClockAgainBehindAForeignGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := &journal{began: clock.Now()}
		guard := sluice.Chain(j.toll("a"), dawdles{}, j.toll("b"))
		require.NoError(t, guard.Do(t.Context(), j.doing(pass)))
		assert.Equal(t, []string{
			"a admits at 0s", "b admits at 1m0s", "call at 1m0s", "b settles: ok at 1h1m0s", "a settles: ok at 1h2m0s",
		}, j.lines)
	})
}

// dawdles is a Guard that takes a minute on the way in and one on the way out.
type dawdles struct{}

func (dawdles) Do(ctx context.Context, call func(context.Context) error) error {
	time.Sleep(time.Minute)
	defer time.Sleep(time.Minute)
	return call(ctx)
}
