package adaptive

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Hosts that died in an outage and never came back once kept their Timeouts for ever, and
// all new keys had to share one.
func TestTimeoutGroup_TheLostAreLetGoInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGroup(t, WithMaxKeys(5))
		dead := func() (all []*Timeout) {
			for i := range 5 {
				all = append(all, g.Get(fmt.Sprint("dead ", i)))
			}
			return all
		}
		for range 100 {
			var out [5]Attempt
			for i, lost := range dead() {
				var err error
				out[i], err = lost.Begin(t.Context())
				require.NoError(t, err)
			}
			time.Sleep(g.Config().Max)
			for i := range out {
				out[i].Done(context.DeadlineExceeded)
			}
		}
		for _, lost := range dead() {
			require.Equal(t, Outage, lost.Snapshot().State)
		}
		shared, _ := g.Overflow()
		time.Sleep(g.Config().History - time.Second)
		assert.Same(t, shared, g.Get("too early"), "they may come back")
		time.Sleep(time.Second)
		assert.NotSame(t, shared, g.Get("new"))
	})
}

// The number of calls between two probes once went over what fits, and then each call was
// one.
func TestTimeout_ATinyProbeShare(t *testing.T) {
	for share, want := range map[float64]uint32{
		0: 0, 1: 1, 0.01: 100, 1.0 / (1 << 31): 1 << 31,
		1.0 / (1 << 32): math.MaxUint32, 1.0 / (1<<32 + 1): math.MaxUint32, math.SmallestNonzeroFloat64: math.MaxUint32,
	} {
		assert.Equal(t, want, build(t, WithProbeShare(share)).plan.Load().probeEvery, share)
	}
}

// As everywhere in JSON, null leaves what was there: it once switched a rule off, or made
// another one invalid.
func TestConfigs_NullInJSON(t *testing.T) {
	for text, c := range map[string]interface {
		json.Unmarshaler
		Validate() error
	}{
		`{"mode":null,"queue_delay":null,"load1":null,"cpu":null,"entry_qps":null}`:           new(DefaultSystemConfig()),
		`{"rule":null,"min":null,"window":null,"shares":null,"newest_first":null}`:            new(DefaultLimiterConfig()),
		`{"base":null,"initial":null,"rule":null,"margin":null,"window":null,"compact":null}`: new(DefaultTimeoutConfig(ms, time.Second)),
	} {
		before, err := json.Marshal(c)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal([]byte(text), c), text)
		after, err := json.Marshal(c)
		require.NoError(t, err)
		assert.JSONEq(t, string(before), string(after), text)
		assert.NoError(t, c.Validate(), text)
	}
}

// Two delays of three hundred years were once less than nothing.
func TestSystem_ObserveDelayOfAnyLength(t *testing.T) {
	s := newSystem(t)
	for range 3 {
		s.ObserveDelay(math.MaxInt64)
		s.ObserveDelay(math.MaxInt64)
		assert.Equal(t, known(time.Hour.Seconds()), s.delays.take())
		s.ObserveDelay(math.MinInt64)
		assert.Equal(t, known(0), s.delays.take())
	}
}

// A second Run begins to learn of the calls anew; it once took all that had been sampled
// before for those of its first tenth of a second.
func TestSystem_ASecondRunKnowsNoMix(t *testing.T) {
	s := newSystem(t)
	for range 2 {
		s.tick(t0, sight{})
		assert.Zero(t, s.judge.mix.seen)
		s.sample(0)
		s.sample(2)
		s.tick(t0+int64(tickSystem), sight{})
		assert.Equal(t, [classes]float64{1, 0, 1}, s.judge.mix.seen)
		s.rest()
	}
}

// A bucket of a window counts to 16 million; beyond that its mean was once anything. So a
// window ends before.
func TestLimiter_AWindowOfVeryManyCalls(t *testing.T) {
	w := newWorld(1)
	s := &script{}
	l := newTestLimiter(t, w, s.option(), WithLimitWindow(time.Minute))
	now := passes(t, l, w.now, 20, 10*ms, nil)
	require.Empty(t, s.seen)
	window := l.window.Load()
	for i := range window.took {
		window.took[i].Store(window.took[i].Load() << 18) // the counts, and what goes with them
	}
	passes(t, l, now, 700, 10*ms, nil)
	require.Len(t, s.seen, 1)
	assert.Less(t, s.seen[0].Span, 20*time.Second)
	assert.InEpsilon(t, float64(10*ms), float64(s.seen[0].Took), 0.01)
}
