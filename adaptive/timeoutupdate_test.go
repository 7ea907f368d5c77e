package adaptive

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func update(t *testing.T, to *Timeout, change func(*TimeoutConfig)) {
	t.Helper()
	c := to.Config()
	change(&c)
	require.NoError(t, to.Update(c))
	require.Equal(t, c, to.Config())
}

// A change keeps what was learnt, and bounds apply at once (law 9).
func TestUpdate_KeepsWhatWasLearnt(t *testing.T) {
	to := settled(t)
	limit := to.Value()
	old, err := to.begin(t.Context(), at(time.Second))
	require.NoError(t, err)

	update(t, to, func(c *TimeoutConfig) { c.Base = 100 * ms })
	assert.Equal(t, 100*ms, to.Value())
	update(t, to, func(c *TimeoutConfig) { c.Base = ms })
	assert.Equal(t, 100*ms, to.Value(), "until it is worked out again")
	calls(t, to, at(2*time.Second), 1, 20*ms)
	assert.Equal(t, limit, to.Value())
	update(t, to, func(c *TimeoutConfig) { c.Max = time.Minute })
	calls(t, to, at(3*time.Second), 1, 20*ms)
	assert.Equal(t, limit, to.Value(), "the windows have another grid")
	update(t, to, func(c *TimeoutConfig) { c.Max = 20 * ms })
	assert.Equal(t, 20*ms, to.Value())
	update(t, to, func(c *TimeoutConfig) { c.Max = time.Minute; c.Margin = 2.5 })
	calls(t, to, at(4*time.Second), 1, 20*ms)
	assert.Equal(t, 2*limit, to.Value())

	assert.Equal(t, limit, old.Limit(), "an attempt under way keeps its limit")
	old.done(at(5*time.Second), nil)
	assert.EqualValues(t, 1005, to.snapshot(at(5*time.Second)).Totals.Finished)
}

// Another rule begins where the last one left off, and the totals go on.
func TestUpdate_AnotherRule(t *testing.T) {
	to := settled(t)
	limit := to.Value()
	for i, change := range []func(*TimeoutConfig){
		func(c *TimeoutConfig) { c.Rule = MeanMultiple(3) },
		func(c *TimeoutConfig) { c.Rule = Quantile(0.99, 2) },
		func(c *TimeoutConfig) { c.Compact = true },
		func(c *TimeoutConfig) { c.Rule = FalseTimeouts(0.01) },
		func(c *TimeoutConfig) { c.History = time.Hour },
	} {
		update(t, to, change)
		assert.Equal(t, limit, to.Value(), i)
		calls(t, to, at(time.Duration(i+1)*time.Second), 1, 20*ms)
		assert.Equal(t, limit, to.Value(), i)
		assert.EqualValues(t, 1002+i, to.snapshot(at(time.Minute)).Totals.Finished, i)
	}
	update(t, to, func(c *TimeoutConfig) { c.Rule = Fixed(time.Second) })
	assert.Equal(t, time.Second, to.Value(), "at once")
	update(t, to, func(c *TimeoutConfig) { c.Rule = RFC6298() })
	cuts(t, to, at(time.Minute), 1)
	assert.Equal(t, 2*time.Second, to.Value(), "from where it was")
}

func TestUpdate_RulesThatStayKeepWhatTheyKnow(t *testing.T) {
	for _, rule := range []Rule{MeanMultiple(3), Quantile(0.99, 2), RFC6298()} {
		to := settled(t, WithRule(rule))
		limit := to.Value()
		require.Less(t, limit, time.Second)
		update(t, to, func(c *TimeoutConfig) { c.Max = time.Minute })
		calls(t, to, at(time.Second), 1, 20*ms)
		assert.InEpsilon(t, float64(limit), float64(to.Value()), 0.3, rule)
	}
	to, seen := watch(t)
	update(t, to, func(c *TimeoutConfig) { c.Rule = RFC6298() })
	calls(t, to, at(0), 1, ms)
	assert.Len(t, seen.samples, 1, "an Estimator of one's own stays")
}

func TestUpdate_EqualOrInvalidChangesNothing(t *testing.T) {
	to := settled(t)
	before := to.cur.Load()
	require.NoError(t, to.Update(to.Config()))
	c := to.Config()
	c.Margin = 0
	require.ErrorContains(t, to.Update(c), "Margin 0")
	assert.Same(t, before, to.cur.Load())
	assert.InDelta(t, 1.25, to.Config().Margin, 0)
	var none *Timeout
	assert.ErrorContains(t, none.Update(c), "Margin 0")
}

// Whatever comes in between, a limit is within the bounds of the configuration that
// is in force.
func TestUpdate_WhileCallsEnd(t *testing.T) {
	to := build(t)
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		all.Go(func() {
			now := at(0)
			for {
				select {
				case <-stop:
					return
				default:
					calls(t, to, now, 1, 20*ms)
					now += int64(tickEvery)
				}
			}
		})
	}
	for i := range 300 {
		c := to.Config()
		c.Base, c.Max = time.Duration(1+i%2)*100*ms, time.Second
		require.NoError(t, to.Update(c))
		require.GreaterOrEqual(t, to.Value(), c.Base)
	}
	close(stop)
	all.Wait()
}
