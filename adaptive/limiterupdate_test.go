package adaptive

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func nan() float64 { return math.NaN() }
func inf() float64 { return math.Inf(1) }

// What has been learnt survives an Update (law 9).
func TestLimiter_UpdateKeepsWhatIsLearnt(t *testing.T) {
	w := newWorld(1)
	l := newTestLimiter(t, w, WithInitialLimit(2))
	now := passes(t, l, w.now, 500, 10*ms, nil)
	learnt, limit := l.snapshot(now), l.Limit()
	require.Equal(t, 10*ms, learnt.Baseline.Round(ms))
	p := l.plan.Load()

	require.NoError(t, l.Update(l.Config()))
	assert.Same(t, p, l.plan.Load(), "an equal one touches nothing")

	c := l.Config()
	c.Rule.MaxHealthy, c.Max = time.Second, 500
	require.NoError(t, l.Update(c))
	assert.Same(t, p.tracker, l.plan.Load().tracker)
	assert.Equal(t, limit, l.Limit())
	assert.Equal(t, 10*ms, l.plan.Load().tracker.finding().baseline.Round(ms))

	c.Min = limit + 5
	c.Initial = limit + 5
	require.NoError(t, l.Update(c))
	assert.Equal(t, limit+5, l.Limit(), "within new bounds at once")
	c.Min, c.Max, c.Initial = 1, 3, 3
	require.NoError(t, l.Update(c))
	assert.Equal(t, 3, l.Limit())
	c.Rule = FixedLimit(2)
	require.NoError(t, l.Update(c))
	assert.Equal(t, 2, l.Limit())
	c.Rule = FixedLimit(3)
	require.NoError(t, l.Update(c))
	assert.Equal(t, 3, l.Limit())
	c.Rule, c.Max = AIMD(0), 1000
	require.NoError(t, l.Update(c))
	assert.Equal(t, 3, l.Limit(), "another rule goes on from there")
	assert.IsType(t, new(aimd), l.plan.Load().tracker)

	bad := c
	bad.Window = 0
	assert.Error(t, l.Update(bad))
	assert.Equal(t, c, l.Config())
}

// A higher limit lets those that wait in; under a lower one calls under way stay, and
// permits remain valid.
func TestLimiter_UpdateWhileCallsAreUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := few(t, 1, WithQueue(5, time.Minute))
		first, err := l.Acquire(t.Context())
		require.NoError(t, err)
		in, end := make(chan bool), make(chan bool)
		for range 2 {
			go func() {
				assert.NoError(t, l.Do(t.Context(), func(context.Context) error {
					in <- true
					<-end
					return nil
				}))
			}()
		}
		synctest.Wait()
		c := l.Config()
		c.Rule = FixedLimit(3)
		require.NoError(t, l.Update(c))
		<-in
		<-in
		c.Rule = FixedLimit(1)
		require.NoError(t, l.Update(c))
		assert.Equal(t, 3, l.InFlight())
		first.Done(nil)
		end <- true
		synctest.Wait()
		assert.Equal(t, 1, l.InFlight())
		_, err = l.TryAcquire(t.Context())
		assert.ErrorIs(t, err, ErrLimited)
		end <- true
		synctest.Wait()
		assert.NoError(t, l.Do(t.Context(), nothingToDo))
	})
}

// An Update that comes while the limit is being worked out has the last word on bounds.
func TestLimiter_UpdateDuringALook(t *testing.T) {
	var l *Limiter
	l = buildLimiter(t, WithLimitAlgorithm(func() LimitAlgorithm {
		return &script{says: func(LimitWindow) float64 {
			c := l.Config()
			c.Max, c.Initial = 10, 10
			assert.NoError(t, l.Update(c))
			return 500
		}}
	}))
	passes(t, l, l.window.Load().began, 101, 10*ms, nil)
	assert.Equal(t, 10, l.Limit())
}

// A panic of an algorithm's goes on, and leaves nothing taken or stuck.
func TestLimiter_APanicInTheAlgorithm(t *testing.T) {
	panics := true
	l := buildLimiter(t, WithLimitAlgorithm(func() LimitAlgorithm {
		return &script{says: func(LimitWindow) float64 {
			if panics {
				panic("boom")
			}
			return 7
		}}
	}))
	now := l.window.Load().began
	assert.Panics(t, func() { passes(t, l, now, 101, 10*ms, nil) })
	panics = false
	passes(t, l, now+int64(time.Second), 102, 10*ms, nil)
	assert.Equal(t, 7, l.Limit())
	assert.Zero(t, l.InFlight())
	assert.NoError(t, l.Do(context.Background(), nothingToDo))
}
