package ratelimit

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

var errDown = errors.New("down")

// refuses is a guard further in.
type refuses struct{}

func (refuses) Do(context.Context, func(context.Context) error) error {
	return errors.Join(errDown, sluice.ErrRejected)
}

// guards are what is to behave alike.
func guards(t *testing.T) map[string]func() (g sluice.Guard, left func() int64) {
	return map[string]func() (sluice.Guard, func() int64){
		"Limiter": func() (sluice.Guard, func() int64) {
			l := build(t, Every(time.Hour), WithBurst(5))
			return l, func() int64 { return l.Peek(0).Remaining() }
		},
		"Priorities": func() (sluice.Guard, func() int64) {
			q, err := NewPriorities("test", Every(time.Hour), WithBurst(5), WithClass(sluice.P0, 0, 0), WithClass(sluice.P1, 0, 0), WithClass(sluice.P2, 0, 0))
			require.NoError(t, err)
			return q, func() int64 { return q.Peek(sluice.P0, 0).Remaining() }
		},
		"SlidingWindow": func() (sluice.Guard, func() int64) {
			return guardOf(NewSlidingWindow("test", Rate{5, time.Hour}))
		},
		"SlidingLog": func() (sluice.Guard, func() int64) {
			return guardOf(NewSlidingLog("test", Rate{5, time.Hour}))
		},
		"StrictWindow": func() (sluice.Guard, func() int64) {
			return guardOf(NewStrictWindow("test", Rate{5, time.Hour}, WithShare(1)))
		},
		"WarmUp": func() (sluice.Guard, func() int64) {
			return guardOf(NewWarmUp("test", Every(time.Hour), 0, WithBurst(5)))
		},
		"Pacer": func() (sluice.Guard, func() int64) {
			return guardOf(NewPacer("test", Every(time.Hour), WithSlack(4), WithMaxWait(0)))
		},
	}
}

func guardOf[K kind](k K, err error) (sluice.Guard, func() int64) {
	sluice.Must(k, err)
	return k, func() int64 { return k.Peek(0).Remaining() }
}

// Do, Call and a Chain are three ways to the same thing.
var ways = map[string]func(ctx context.Context, g sluice.Guard, call func(context.Context) error) error{
	"Do": func(ctx context.Context, g sluice.Guard, call func(context.Context) error) error {
		return g.Do(ctx, call)
	},
	"Call": func(ctx context.Context, g sluice.Guard, call func(context.Context) error) error {
		_, err := sluice.Call(ctx, g, func(ctx context.Context) (int, error) { return 0, call(ctx) })
		return err
	},
	"Chain": func(ctx context.Context, g sluice.Guard, call func(context.Context) error) error {
		return sluice.Chain(g).Do(ctx, call)
	},
}

func TestGuard(t *testing.T) {
	for name, build := range guards(t) {
		for way, through := range ways {
			t.Run(name+" "+way, func(t *testing.T) {
				g, left := build()
				assert.NoError(t, through(t.Context(), g, nothing))
				assert.EqualValues(t, 4, left())
				assert.Equal(t, errDown, through(t.Context(), g, func(context.Context) error { return errDown }), "as it is")
				assert.EqualValues(t, 3, left(), "a failure has been paid for")

				assert.ErrorIs(t, through(t.Context(), g, func(ctx context.Context) error { return refuses{}.Do(ctx, nothing) }), errDown)
				assert.EqualValues(t, 3, left(), "what was refused further in is given back")

				assert.Panics(t, func() { _ = through(t.Context(), g, func(context.Context) error { panic("boom") }) })
				assert.EqualValues(t, 2, left())
				done := make(chan struct{})
				go func() {
					defer close(done)
					_ = through(t.Context(), g, func(context.Context) error { runtime.Goexit(); return nil })
				}()
				<-done
				assert.EqualValues(t, 1, left())

				gone, cancel := context.WithCancel(t.Context())
				cancel()
				assert.Equal(t, context.Canceled, through(gone, g, nothing))
				assert.EqualValues(t, 1, left())

				assert.NoError(t, through(t.Context(), g, nothing))
				called := false
				err := through(t.Context(), g, func(context.Context) error { called = true; return nil })
				assert.ErrorIs(t, err, ErrLimited)
				assert.False(t, called)
			})
		}
	}
}

func TestChain_GivesBackWhenOneFurtherInRefuses(t *testing.T) {
	outer, inner := build(t, Every(time.Hour), WithBurst(3)), build(t, Blocked())
	for _, chain := range []sluice.Guard{sluice.Chain(outer, inner), sluice.Chain(outer, refuses{}), sluice.Chain(outer, refuses{}, inner)} {
		assert.ErrorIs(t, chain.Do(t.Context(), nothing), sluice.ErrRejected)
		assert.EqualValues(t, 3, outer.Peek(0).Remaining())
	}
	assert.EqualValues(t, 3, outer.Snapshot().Totals.Refunded)
}

func TestDo_WaitsIfItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(1), WithMaxWait(2*time.Second), WithInitial(0))
		for way, through := range ways {
			began := time.Now()
			assert.NoError(t, through(t.Context(), l, nothing))
			assert.Equal(t, time.Second, time.Since(began), way)
		}
		for range 2 {
			go func() { assert.NoError(t, l.Do(t.Context(), nothing)) }()
		}
		synctest.Wait()
		err := l.Do(t.Context(), nothing)
		assert.Equal(t, ReasonMaxWait, err.(*LimitError).Reason())
		ctx, cancel := context.WithCancel(t.Context())
		time.Sleep(1500 * time.Millisecond)
		time.AfterFunc(time.Second/4, cancel)
		began := time.Now()
		assert.Equal(t, context.Canceled, l.Do(ctx, nothing))
		assert.Equal(t, time.Second/4, time.Since(began))
		time.Sleep(time.Minute)

		began = time.Now()
		assert.NoError(t, l.Do(t.Context(), nothing))
		assert.ErrorIs(t, l.Do(t.Context(), func(ctx context.Context) error { return refuses{}.Do(ctx, nothing) }), errDown)
		assert.Equal(t, time.Second, time.Since(began), "it waited")
		assert.True(t, l.Allow(), "and gave back what it had waited for")
	})
}

// A priority counts only when there is not plenty for all.
func TestPriorities_DoReadsThePriority(t *testing.T) {
	q, err := NewPriorities("test", Every(time.Hour), WithBurst(20),
		WithClass(sluice.P0, 0, 0), WithClass(sluice.P1, 0, 0.25), WithClass(sluice.P2, 0, 0.5))
	require.NoError(t, err)
	for _, tc := range []struct {
		p        sluice.Priority
		admitted int
	}{{sluice.P2, 10}, {sluice.P1, 5}, {sluice.P0, 5}} {
		ctx := sluice.WithPriority(t.Context(), tc.p)
		for range tc.admitted {
			require.NoError(t, q.Do(ctx, nothing))
		}
		require.ErrorIs(t, q.Do(ctx, nothing), ErrLimited)
	}
	s := q.Snapshot()
	assert.EqualValues(t, 10, s.Plenty)
	assert.Equal(t, [classes]int64{5, 5, 0}, [classes]int64{s.Classes[0].Admitted, s.Classes[1].Admitted, s.Classes[2].Admitted})
	assert.Equal(t, [classes]int64{1, 1, 1}, [classes]int64{s.Classes[0].Refused.all(), s.Classes[1].Refused.all(), s.Classes[2].Refused.all()})
}
