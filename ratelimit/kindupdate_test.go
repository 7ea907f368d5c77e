package ratelimit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSlidingWindow_UpdateKeepsTheCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := NewSlidingWindow("test", Rate{10, time.Second})
		require.NoError(t, err)
		set := func(limit Rate) {
			c := w.Config()
			c.Limit = limit
			require.NoError(t, w.Update(c))
		}
		left := func() int64 { return w.Peek(0).Remaining() }
		d := w.Take(6)
		set(Rate{100, time.Second})
		assert.EqualValues(t, 94, left())
		set(Rate{5, time.Second})
		assert.Zero(t, left())
		w.Refund(d)
		assert.EqualValues(t, 5, left(), "of another limit, but of the same windows")

		set(Rate{10, time.Second})
		w.Take(8)
		time.Sleep(1500 * time.Millisecond) // 4 of them count
		d = w.Take(1)
		set(Rate{20, time.Minute})
		assert.EqualValues(t, 15, left())
		time.Sleep(24 * time.Second)
		assert.EqualValues(t, 17, left(), "they count less and less")
		w.Refund(d)
		assert.EqualValues(t, 17, left(), "and it is not known any more which is which")
		time.Sleep(36 * time.Second)
		assert.EqualValues(t, 20, left())

		w.Take(20)
		for _, none := range []Rate{Blocked(), Unlimited()} {
			set(none)
			assert.Equal(t, none.IsUnlimited(), w.Allow())
			set(Rate{20, time.Minute})
			assert.False(t, w.Allow(), "what was counted is not forgotten while there was no limit")
		}
		time.Sleep(2 * time.Minute)
		assert.EqualValues(t, 20, left())
	})
}

func TestLine_FrontLooksAgainAfterRefundAndUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := NewSlidingWindow("test", Rate{1, time.Hour})
		require.NoError(t, err)
		l, err := NewSlidingLog("test", Rate{1, time.Hour})
		require.NoError(t, err)
		u, err := NewWarmUp("test", Every(time.Hour), 0)
		require.NoError(t, err)
		for name, tc := range map[string]struct {
			k      kind
			update func() error
		}{
			"SlidingWindow": {w, func() error { return w.Update(windowConfigOf(Rate{1, time.Second})) }},
			"SlidingLog":    {l, func() error { return l.Update(SlidingLogConfig(windowConfigOf(Rate{1, time.Second}))) }},
			"WarmUp":        {u, func() error { return u.Update(warmConfigOf(PerSecond(1), 0)) }},
		} {
			d, j := tc.k.Take(1), &journal{began: time.Now()}
			for _, who := range []string{"first", "second"} {
				go func() {
					assert.NoError(t, tc.k.Wait(t.Context()))
					j.write(who)
				}()
				synctest.Wait()
			}
			time.Sleep(time.Minute)
			tc.k.Refund(d)
			synctest.Wait()
			assert.Equal(t, []string{"first at 1m0s"}, j.read(), name)
			require.NoError(t, tc.update())
			synctest.Wait()
			time.Sleep(2 * time.Second)
			assert.Len(t, j.read(), 2, name)
		}
	})
}

// What can never be had any more after an Update is refused, to those too who wait.
func TestLine_NeverAfterUpdate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := NewSlidingWindow("test", Rate{5, time.Hour})
		require.NoError(t, err)
		w.Take(5)
		go func() { assert.ErrorIs(t, w.WaitN(t.Context(), 4), ErrExceedsCapacity) }()
		synctest.Wait()
		go func() { assert.NoError(t, w.Wait(t.Context())) }()
		synctest.Wait()
		require.NoError(t, w.Update(windowConfigOf(Rate{3, time.Second})))
		time.Sleep(time.Minute)
		assert.EqualValues(t, 1, w.Snapshot().Refused.ExceedsCapacity)
	})
}

func TestLine_Bounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, err := NewSlidingWindow("test", Rate{1, time.Second}, WithMaxWaiters(2), WithMaxWait(5*time.Second))
		require.NoError(t, err)
		w.Allow()
		for range 2 {
			go func() { assert.NoError(t, w.Wait(t.Context())) }()
		}
		synctest.Wait()
		err = w.Wait(t.Context())
		assert.Equal(t, ReasonMaxWaiters, err.(*LimitError).Reason())
		assert.Equal(t, RefusedSnapshot{MaxWaiters: 1}, w.Snapshot().Refused)
		assert.EqualValues(t, 2, w.Snapshot().Waiting)
		time.Sleep(time.Minute)

		// He stands behind one who takes longer than he may wait.
		slow, err := NewSlidingLog("test", Rate{2, 4 * time.Second}, WithMaxWait(5*time.Second))
		require.NoError(t, err)
		slow.Take(2)
		go func() { assert.NoError(t, slow.WaitN(t.Context(), 2)) }()
		synctest.Wait()
		began := time.Now()
		err = slow.WaitN(t.Context(), 2)
		assert.Equal(t, ReasonMaxWait, err.(*LimitError).Reason())
		assert.LessOrEqual(t, time.Since(began), 5*time.Second)
		time.Sleep(time.Minute)
	})
}

// Whoever stands behind others, and could not be let in in time even if nobody did, is
// told so at once.
func TestLine_RefusesAtOnceBehindOthers(t *testing.T) {
	forKinds(t, func(t *testing.T, name string, build func(Rate, ...Option) kind) {
		synctest.Test(t, func(t *testing.T) {
			k := build(Rate{1, 10 * time.Second})
			k.Allow()
			go func() { assert.NoError(t, k.Wait(t.Context())) }()
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			began := time.Now()
			assert.ErrorIs(t, k.Wait(ctx), ErrLimited)
			assert.Equal(t, began, time.Now())
			time.Sleep(time.Hour)
		})
	})
}

// A limiter may be made outside of a bubble and used within, and the other way round.
func TestKinds_AcrossBubbles(t *testing.T) {
	forKinds(t, func(t *testing.T, name string, build func(Rate, ...Option) kind) {
		k := build(Rate{1, time.Second})
		synctest.Test(t, func(t *testing.T) {
			for range 3 {
				go func() { assert.NoError(t, k.Wait(t.Context())) }()
				synctest.Wait()
			}
			time.Sleep(time.Hour)
			k = build(Rate{1000, time.Second})
			assert.NoError(t, k.WaitN(t.Context(), 1))
		})
		for range 3 {
			assert.NoError(t, k.Wait(t.Context()))
		}
	})
}

func TestWarmUp_UpdateKeepsHeatAndTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, err := NewWarmUp("test", PerSecond(100), 10*time.Second, WithBurst(20))
		require.NoError(t, err)
		for range 5_000 {
			time.Sleep(time.Millisecond)
			u.Allow()
		}
		half := u.Snapshot()
		require.InDelta(t, 0.5, half.Heat, 0.01)
		require.InDelta(t, 0.447, half.Share, 0.005)
		c := u.Config()
		c.Rate, c.Period = PerSecond(1000), time.Minute
		require.NoError(t, u.Update(c))
		assert.InDelta(t, half.Heat, u.Snapshot().Heat, 1e-6)
		assert.InDelta(t, half.Level, u.Snapshot().Level, 1e-3)
		for range 1_000 {
			time.Sleep(time.Millisecond)
			u.Allow()
			u.Allow()
		}
		assert.InDelta(t, half.Heat+1.0/60, u.Snapshot().Heat, 0.001, "and gets warmer from there")
		c.Period = 0
		require.NoError(t, u.Update(c))
		assert.Equal(t, 1.0, u.Snapshot().Heat)
		c.Period = time.Second
		require.NoError(t, u.Update(c))
		assert.Equal(t, 1.0, u.Snapshot().Heat)
		c.Rate = Unlimited()
		require.NoError(t, u.Update(c))
		assert.True(t, u.AllowN(1<<40))
		c.Rate = PerSecond(1)
		require.NoError(t, u.Update(c))
		assert.Zero(t, u.Snapshot().Heat)
		c.Rate = Blocked()
		require.NoError(t, u.Update(c))
		c.Rate = PerSecond(1)
		require.NoError(t, u.Update(c))
		assert.False(t, u.Allow())
	})
}

func TestPacer_UpdateKeepsWhatWasPromised(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, rate := range map[string]Rate{"faster": PerSecond(1000), "slower": PerSecond(2)} {
			p, err := NewPacer("test", PerSecond(10), WithMaxWait(time.Minute))
			require.NoError(t, err)
			j := &journal{began: time.Now()}
			wait := func(who string) {
				go func() {
					assert.NoError(t, p.Wait(t.Context()))
					j.write(who)
				}()
				synctest.Wait()
			}
			for _, who := range []string{"a", "b", "c"} {
				wait(who)
			}
			c := p.Config()
			for _, c.Rate = range []Rate{Blocked(), Unlimited(), rate} {
				require.NoError(t, p.Update(c))
			}
			wait("d")
			wait("e")
			time.Sleep(time.Minute)
			after := 300*time.Millisecond + rate.Per/time.Duration(rate.Tokens)
			assert.Equal(t, []string{"a at 0s", "b at 100ms", "c at 200ms", "d at 300ms", "e at " + after.String()}, j.read(), name)
		}
	})
}

func TestPacer_UpdateKeepsTheSlack(t *testing.T) {
	p := pacerOf(PerSecond(10), func(c *PacerConfig) { c.Slack = 4 })
	require.True(t, p.take(0, 1, 1).OK())
	require.True(t, p.take(0, 1, 1).OK())
	next := newPacePlan("test", PacerConfig{PerSecond(1000), 10, 0}, 1)
	p.cur.Load().handOver(next, 1)
	p.cur.Store(next)
	assert.EqualValues(t, 3, p.peek(0, 0, 1).Remaining())
	less := newPacePlan("test", PacerConfig{PerSecond(7), 1, 0}, 1)
	next.handOver(less, 1)
	p.cur.Store(less)
	assert.EqualValues(t, 2, p.peek(0, 0, 1).Remaining())
}

// After four years a scale begins anew, and nobody notices.
func TestKinds_Renew(t *testing.T) {
	const late = maxSpan + 100
	p := pacerOf(Every(10), func(c *PacerConfig) { c.Slack = 2 })
	require.True(t, p.take(0, 1, late-50).OK())
	for now := int64(late - 40); now < late+60; now += 10 {
		d, at := p.reserve(1, now, now)
		require.True(t, d.OK())
		require.Equal(t, now, at)
	}
	assert.EqualValues(t, 2, p.take(0, 1, late+60).Remaining())
	assert.Equal(t, "pacer", p.peek(0, 0, late).Policy())

	u := warmOf(Every(time.Millisecond), 0, burst1)
	for now := maxSpan - 10*ms; now < maxSpan+10*ms; now += ms {
		require.True(t, u.take(0, 1, now).OK())
		require.False(t, u.take(0, 1, now+ms-1).OK())
	}

	w := strictOf(Rate{2, 1000}, 0.5)
	for now := int64(late - 5000); now < late+5000; now += 500 {
		d := w.bucket.take(0, 1, now)
		require.True(t, d.OK())
		require.Equal(t, []any{"strict_window", Rate{2, 1000}}, []any{d.Policy(), d.Limit()})
	}
}
