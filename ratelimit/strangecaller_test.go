package ratelimit

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// hollow is a ctx whose Done is closed although its Err is nil.
type hollow struct{ context.Context }

func (hollow) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// To whom such a ctx says that he need not wait any more, he has not got a token: a
// Limiter and a Pacer let him go at once, and the others asked again without end.
func TestWait_AContextThatIsDoneWithoutAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, w := range map[string]interface {
			Allow() bool
			Wait(context.Context) error
		}{
			"Limiter":       sluice.Must(New("a", PerMinute(1))),
			"StrictWindow":  sluice.Must(NewStrictWindow("a", PerMinute(2))),
			"SlidingWindow": sluice.Must(NewSlidingWindow("a", PerMinute(1))),
			"SlidingLog":    sluice.Must(NewSlidingLog("a", PerMinute(1))),
			"WarmUp":        sluice.Must(NewWarmUp("a", PerMinute(1), time.Second)),
			"Pacer":         sluice.Must(NewPacer("a", PerMinute(1), WithMaxWait(time.Hour))),
			"Shared":        sluice.Must(NewShared("a", newMemoryStore(t, 16), Global(PerMinute(1)))),
		} {
			require.True(t, w.Allow(), name)
			began := clock.Now()
			assert.Error(t, w.Wait(hollow{context.Background()}), name)
			assert.Equal(t, began, clock.Now(), name)
			time.Sleep(time.Hour)
			assert.True(t, w.Allow(), "and nothing is lost: %s", name)
		}
	})
}

// The rate became none between a refusal and the waiting for it. He who waited was in
// no queue, so nobody woke him, and what he left it in was not one.
func TestWait_UnlimitedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := sluice.Must(New("a", PerMinute(1)))
		require.True(t, l.Allow())
		now, c := clock.Now(), l.Config()
		c.Rate = Unlimited()
		require.NoError(t, l.Update(c))
		d, err := l.wait(t.Context(), 1, now)
		require.NoError(t, err)
		assert.True(t, d.OK())
		assert.Zero(t, l.Snapshot().Waiting)
		assert.EqualValues(t, 2, l.Snapshot().Totals.Admitted)
	})
}

// He who is late gets a slot that is there, or none: he was told yes and got none.
func TestPacer_WhoIsLateGetsWhatIsThere(t *testing.T) {
	const second = int64(time.Second)
	p := newPacePlan("a", PacerConfig{Rate: PerSecond(1), MaxWait: time.Hour}, 1)
	d, at, ok := p.take(1, 1+9*second, 1+10*second)
	require.True(t, ok)
	require.True(t, d.OK())
	assert.Equal(t, 1+10*second, at)
	assert.Equal(t, p.at(1+11*second), p.next.Load(), "it is taken")
}

// Tokens without a limit are counted, too, and the sum of what cannot be larger is not
// negative.
func TestTotals_DoNotOverflow(t *testing.T) {
	l := sluice.Must(New("a", Unlimited()))
	last := int64(0)
	for range 100 {
		l.Take(math.MaxInt64)
		l.Take(1 << 40)
		tokens := l.Snapshot().Totals.Tokens
		require.GreaterOrEqual(t, tokens, last, "counters never go down")
		last = tokens
	}
	assert.Greater(t, last, int64(1<<62))
}

// Those in line ask for what they could have before the Update; in the new units that
// was negative, and new callers passed them.
func TestWarmUp_ALineOfBeforeAnUpdateDoesNotOverflow(t *testing.T) {
	const many = 80_000_000_000
	u := sluice.Must(NewWarmUp("a", PerSecond(1_000_000), 0, WithBurst(many)))
	for _, ahead := range []int64{many, 2 * many, 3 * many, 777 * many} {
		u.line.ahead.Store(ahead)
		for _, r := range []Rate{PerDay(1), Every(23 * time.Hour), PerMinute(1), PerSecond(1_000_000)} {
			c := u.Config()
			c.Rate, c.Burst = r, 1
			require.NoError(t, u.Update(c))
			for range 3 {
				require.False(t, u.Take(1).OK(), "%d ahead at %v", ahead, r)
				require.False(t, u.Peek(1).OK(), "%d ahead at %v", ahead, r)
				require.Positive(t, u.Take(1).RetryAfter())
			}
		}
	}
}

// To cancel the last of many reservations took as many steps as there were, with the
// lock held that all others wait for: seven seconds for 40 000.
func TestReserve_ManyAreCancelledInFewSteps(t *testing.T) {
	l := sluice.Must(New("a", PerSecond(1000)))
	require.True(t, l.AllowN(1000))
	all := make([]Reservation, rounds(100_000, 20_000))
	for i := range all {
		var err error
		all[i], err = l.Reserve(1, time.Hour)
		require.NoError(t, err)
	}
	last := l.cur.Load().own.used.Load()
	for i := len(all) - 1; i >= len(all)/2; i-- {
		all[i].Cancel()
	}
	assert.Equal(t, last-int64(len(all)-len(all)/2)*l.cur.Load().own.unit, l.cur.Load().own.used.Load())
	for i := range len(all) / 2 {
		all[i].Cancel()
	}
	assert.Zero(t, l.queued.Load())
	assert.Nil(t, l.queue.first)
}

// A limiter whose nodes have all died without a goodbye was remembered for ever.
func TestMemoryStore_ForgetsLimitersOfTheDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemoryStore(t, 16)
		for i := range 1000 {
			_, err := s.Beat(t.Context(), fmt.Sprint("limiter ", i), "node", time.Second)
			require.NoError(t, err)
			n, err := s.Beat(t.Context(), "alive", "node", 10*time.Second)
			require.NoError(t, err)
			require.EqualValues(t, 1, n)
			time.Sleep(time.Second)
		}
		assert.Less(t, len(s.nodes), 20)
		assert.Contains(t, s.nodes, "alive")
	})
}
