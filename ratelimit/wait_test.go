package ratelimit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// build makes a limiter within a test.
func build(t *testing.T, r Rate, opts ...Option) *Limiter {
	t.Helper()
	l, err := New("test", r, opts...)
	require.NoError(t, err)
	return l
}

// A journal writes down who came through when.
type journal struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

func (j *journal) write(who string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, who+" at "+time.Since(j.began).String())
}

func (j *journal) read() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.lines)
}

func TestWait_GoesInOrderWhenTheTokensAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, j := build(t, PerSecond(1), WithBurst(3)), &journal{began: time.Now()}
		for _, who := range []struct {
			name string
			n    int64
		}{{"first", 3}, {"second", 1}, {"large", 3}, {"small", 1}} {
			go func() {
				if assert.NoError(t, l.WaitN(t.Context(), who.n)) {
					j.write(who.name)
				}
			}()
			synctest.Wait()
		}
		assert.EqualValues(t, 3, l.Snapshot().Waiting)
		assert.Equal(t, 5*time.Second, l.Snapshot().Queue)
		assert.False(t, l.Allow(), "nobody passes those who wait")
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"first at 0s", "second at 1s", "large at 4s", "small at 5s"}, j.read())
		assert.Zero(t, l.Snapshot().Waiting)
		assert.EqualValues(t, 4, l.Snapshot().Totals.Admitted)
		assert.EqualValues(t, 8, l.Snapshot().Totals.Tokens)
	})
}

func TestWait_ThoseBehindMoveUpWhenOneGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, j := build(t, PerSecond(1), WithInitial(0)), &journal{began: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		for _, who := range []struct {
			name string
			ctx  context.Context
		}{{"first", t.Context()}, {"goes", ctx}, {"third", t.Context()}, {"goes too", ctx}, {"fifth", t.Context()}} {
			go func() {
				if err := l.Wait(who.ctx); err != nil {
					assert.Equal(t, context.Canceled, err, "the ctx's own error, not one of ours")
					j.write(who.name + " away")
					return
				}
				j.write(who.name)
			}()
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond)
		cancel()
		synctest.Wait()
		time.Sleep(time.Minute)
		assert.ElementsMatch(t, []string{"first at 1s", "goes away at 1.5s", "goes too away at 1.5s", "third at 2s", "fifth at 3s"}, j.read())
		assert.EqualValues(t, 2, l.Snapshot().Totals.Gone)
		assert.EqualValues(t, 3, l.Snapshot().Totals.Admitted)
	})
}

func TestWait_FirstLeavesAndTheNextWatchesTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, j := build(t, PerSecond(1), WithInitial(0)), &journal{began: time.Now()}
		ctx, cancel := context.WithTimeout(t.Context(), 1001*time.Millisecond)
		defer cancel()
		go func() { _ = l.Wait(ctx) }() // could go at 1 s
		synctest.Wait()
		go func() {
			assert.NoError(t, l.Wait(t.Context()))
			j.write("second")
		}()
		synctest.Wait()
		go func() {
			assert.NoError(t, l.Wait(t.Context()))
			j.write("third")
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"second at 1s", "third at 2s"}, j.read())
	})
}

// What is given back lets those who wait go sooner.
func TestWait_RefundWakesTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, j := build(t, PerSecond(1), WithBurst(10)), &journal{began: time.Now()}
		d := l.Take(10)
		for _, who := range []string{"first", "second", "third"} {
			go func() {
				assert.NoError(t, l.Wait(t.Context()))
				j.write(who)
			}()
			synctest.Wait()
		}
		time.Sleep(time.Second / 2)
		l.Refund(d)
		synctest.Wait()
		assert.Equal(t, []string{"first at 500ms", "second at 500ms", "third at 500ms"}, j.read())
		assert.EqualValues(t, 7, l.Peek(0).Remaining())
	})
}

func TestWait_RefusesAtOnceWhatItCannotGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		refused := func(l *Limiter, ctx context.Context, n int64, reason string) *LimitError {
			t.Helper()
			err := l.WaitN(ctx, n)
			var limited *LimitError
			require.ErrorAs(t, err, &limited)
			assert.Equal(t, reason, limited.Reason())
			assert.ErrorIs(t, err, ErrLimited)
			assert.ErrorIs(t, err, sluice.ErrRejected)
			assert.Equal(t, reason == ReasonDeadline, errors.Is(err, context.DeadlineExceeded))
			assert.Equal(t, began, time.Now(), "at once")
			return limited
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()

		l := build(t, PerSecond(1), WithBurst(2), WithInitial(0), WithMaxWait(3*time.Second))
		assert.Equal(t, time.Second, refused(l, ctx, 1, ReasonDeadline).RetryAfter(), "a token at the deadline is of no use")
		assert.EqualValues(t, -1, refused(l, ctx, 3, ReasonExceedsCapacity).RetryAfter())
		assert.EqualValues(t, -1, refused(l, ctx, -1, ReasonInvalid).RetryAfter())
		assert.NoError(t, l.WaitN(ctx, 0))
		blocked := build(t, Blocked())
		assert.EqualValues(t, -1, refused(blocked, t.Context(), 1, ReasonBlocked).RetryAfter())
		assert.NoError(t, build(t, Unlimited()).WaitN(t.Context(), 1<<40))

		for range 3 {
			go func() { assert.NoError(t, l.Wait(t.Context())) }()
		}
		synctest.Wait()
		assert.Equal(t, 4*time.Second, refused(l, t.Context(), 1, ReasonMaxWait).RetryAfter())
		assert.Equal(t, -3.0, l.Snapshot().Level, "who is refused has taken nothing")

		none := build(t, PerSecond(1), WithMaxWait(0), WithInitial(0))
		refused(none, t.Context(), 1, ReasonMaxWait)
		few := build(t, PerSecond(1), WithMaxWaiters(2), WithInitial(0))
		for range 2 {
			go func() { assert.NoError(t, few.Wait(t.Context())) }()
		}
		synctest.Wait()
		refused(few, t.Context(), 1, ReasonMaxWaiters)
		reserved, err := few.Reserve(1, time.Minute)
		require.NoError(t, err, "a reservation waits for nobody here")
		reserved.Cancel()
		assert.Equal(t, RefusedSnapshot{MaxWaiters: 1}, few.Snapshot().Refused)
		assert.Equal(t, RefusedSnapshot{Deadline: 1, ExceedsCapacity: 1, Invalid: 1, MaxWait: 1}, l.Snapshot().Refused)
		time.Sleep(time.Minute)
		few.Allow()
		assert.NoError(t, few.Wait(t.Context()), "the places are free again")
	})
}

// A nil limiter, and one that is asked by somebody who is gone.
func TestWait_LooksAtTheCtxFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l := build(t, PerSecond(1))
	for _, l := range []*Limiter{l, nil} {
		assert.Equal(t, context.Canceled, l.Wait(ctx))
		assert.Equal(t, context.Canceled, l.WaitN(ctx, 0))
	}
	assert.EqualValues(t, 1, l.Peek(0).Remaining())
	assert.NoError(t, (*Limiter)(nil).Wait(t.Context()))
}

// Many come and go at random; none hangs, and the rate is kept.
func TestWait_ManyComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 2_000
		l := build(t, PerSecond(100), WithBurst(10))
		began := time.Now()
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				if i%3 == 1 {
					time.AfterFunc(time.Duration(10+i)*time.Millisecond, cancel)
				}
				defer cancel()
				time.Sleep(time.Duration(i%7) * time.Millisecond)
				_ = l.WaitN(ctx, int64(1+i%3))
			})
		}
		wg.Wait()
		s := l.Snapshot()
		assert.EqualValues(t, callers, s.Totals.Admitted+s.Totals.Gone)
		assert.Positive(t, s.Totals.Gone)
		assert.LessOrEqual(t, float64(s.Totals.Tokens), 10+100*time.Since(began).Seconds())
		assert.GreaterOrEqual(t, float64(s.Totals.Tokens), 100*time.Since(began).Seconds()-10, "nothing was lost when some went away")
		assert.Zero(t, s.Waiting)
		assert.Zero(t, l.queued.Load())
	})
}

func TestReserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(1), WithBurst(2))
		now, err := l.Reserve(2, 0)
		require.NoError(t, err)
		assert.Zero(t, now.Delay())
		one, err := l.Reserve(1, time.Minute)
		require.NoError(t, err)
		two, err := l.Reserve(2, 3*time.Second)
		require.NoError(t, err)
		assert.Equal(t, time.Second, one.Delay())
		assert.Equal(t, 3*time.Second, two.Delay())

		_, err = l.Reserve(1, 4*time.Second-1)
		var limited *LimitError
		require.ErrorAs(t, err, &limited)
		assert.Equal(t, ReasonMaxWait, limited.Reason())
		assert.Equal(t, 4*time.Second, limited.RetryAfter(), "when it could be had without waiting")
		_, err = l.Reserve(3, time.Hour)
		assert.ErrorIs(t, err, ErrExceedsCapacity)
		_, err = l.Reserve(-1, time.Hour)
		assert.ErrorIs(t, err, ErrLimited)
		_, err = l.Reserve(1, -time.Hour)
		assert.ErrorIs(t, err, ErrLimited)

		time.Sleep(500 * time.Millisecond)
		one.Cancel()
		assert.Equal(t, 1500*time.Millisecond, two.Delay(), "it moves up")
		one.Cancel()
		assert.Equal(t, 1500*time.Millisecond, two.Delay(), "once")
		assert.Zero(t, one.Delay())
		time.Sleep(1500 * time.Millisecond)
		assert.Zero(t, two.Delay())
		assert.False(t, l.Allow())
		two.Cancel() // after the time to go
		two.Cancel()
		assert.EqualValues(t, 2, l.Peek(0).Remaining())
		assert.EqualValues(t, 2, l.Snapshot().Totals.Refunded)
		assert.Zero(t, (&Reservation{}).Delay())
		(&Reservation{}).Cancel()

		unlimited := build(t, Unlimited())
		any, err := unlimited.Reserve(1<<40, 0)
		require.NoError(t, err)
		assert.Zero(t, any.Delay())
		any.Cancel()
		_, err = build(t, Blocked()).Reserve(1, time.Hour)
		assert.ErrorIs(t, err, ErrLimited)
		nothing, err := unlimited.Reserve(0, 0)
		require.NoError(t, err)
		nothing.Cancel()
		l.Debit(3)
		_, err = l.Reserve(0, time.Hour)
		assert.ErrorIs(t, err, ErrLimited, "in debt")

		var none *Limiter
		free, err := none.Reserve(5, 0)
		require.NoError(t, err)
		assert.Zero(t, free.Delay())
		free.Cancel()
	})
}

// A deadline may have passed when a waiter comes to the queue, and tokens may have come
// in between. Then they are taken, or refused: never given without being taken.
func TestReserve_TooLateTakesWhatIsThere(t *testing.T) {
	b := &begun(PerSecond(10), nil).cur.Load().own
	now := 1 + int64(time.Second)
	end, lack, _ := b.reserve(4, 1, now)
	assert.Zero(t, lack)
	assert.Equal(t, b.at(now)-6*b.unit, end)
	level, _ := b.level(now)
	assert.Equal(t, 6*b.unit, level)
	_, lack, _ = b.reserve(7, 1, now)
	assert.Equal(t, b.unit, lack)
	level, _ = b.level(now)
	assert.Equal(t, 6*b.unit, level)
}

// A waiter behind a reservation goes in time, whether its holder went, or gave back.
func TestReserve_AmongWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, j := build(t, PerSecond(1), WithInitial(0)), &journal{began: time.Now()}
		first, err := l.Reserve(1, time.Minute)
		require.NoError(t, err)
		go func() {
			assert.NoError(t, l.Wait(t.Context()))
			j.write("waiter")
		}()
		synctest.Wait()
		last, err := l.Reserve(1, time.Minute)
		require.NoError(t, err)
		time.Sleep(time.Second / 2)
		assert.Equal(t, 2500*time.Millisecond, last.Delay())
		first.Cancel()
		assert.Equal(t, 1500*time.Millisecond, last.Delay())
		time.Sleep(time.Minute)
		assert.Equal(t, []string{"waiter at 1s"}, j.read())
		assert.Zero(t, last.Delay())
		assert.True(t, l.Allow())
	})
}
