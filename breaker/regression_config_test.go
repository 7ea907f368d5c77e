package breaker

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A change of configuration made a new breaker, and an open one was closed by it:
// https://github.com/resilience4j/resilience4j/issues/2325,
// https://github.com/resilience4j/resilience4j/pull/2365,
// https://github.com/resilience4j/resilience4j/issues/975,
// https://github.com/resilience4j/resilience4j/issues/299,
// https://github.com/App-vNext/Polly/issues/1578.
func TestT23_ChangeKeepsState(t *testing.T) {
	t.Run("a shorter open period acts at once", func(t *testing.T) {
		s := newStory(t, WithErrorCount(1), WithOpenFor(time.Minute)).tell(
			step{0, F, Open},
			step{10, updated(func(c *Config) { c.OpenFor = 50 * time.Second }), Open},
			step{49.9, R, Open},
			step{50, S, Closed},
		)
		assert.Equal(t, []State{Closed, Open, HalfOpen, Closed}, s.path())
	})
	t.Run("so short that it is over", func(t *testing.T) {
		newStory(t, WithErrorCount(1), WithOpenFor(time.Minute)).tell(
			step{0, F, Open},
			step{10, updated(func(c *Config) { c.OpenFor = 5 * time.Second }), HalfOpen},
			step{10, S, Closed},
		)
	})
	t.Run("a longer one acts next time", func(t *testing.T) {
		newStory(t, WithErrorCount(1)).tell(
			step{0, F, Open},
			step{1, updated(func(c *Config) { c.OpenFor = 50 * time.Second }), Open},
			step{5, S, Closed},
			step{1000, F, Open},
			step{1049.9, R, Open},
			step{1050, S, Closed},
		)
	})
	t.Run("with the backoff it has", func(t *testing.T) {
		newStory(t, WithErrorCount(1), WithOpenFor(10*time.Second)).tell(
			step{0, F, Open},
			step{10, F, Open}, // for 20 s
			step{11, updated(func(c *Config) { c.OpenFor = 5 * time.Second }), Open},
			step{19.9, R, Open},
			step{20, S, Closed}, // 10 + 2 · 5
		)
	})
	t.Run("a lower count judges what is there", func(t *testing.T) {
		newStory(t, WithErrorCount(10)).tell(
			step{0, times(9, F), Closed},
			step{1, updated(func(c *Config) { c.Rules[0].Count = 9 }), Closed},
			step{2, F, Open},
		)
	})
	t.Run("a call from before ends as ever", func(t *testing.T) {
		s := newStory(t, WithErrorCount(3)).tell(
			step{0, times(2, F), Closed},
			step{0, A("call"), Closed},
			step{1, updated(func(c *Config) { c.OpenFor = time.Minute }), Closed},
			step{2, done("call", errDown), Open},
		)
		assert.Equal(t, time.Minute, s.last().OpenFor)
	})
	t.Run("another window starts anew, in the same state", func(t *testing.T) {
		s := newStory(t, WithErrorCount(3)).tell(
			step{0, times(2, F), Closed},
			step{0, A("call"), Closed},
			step{1, updated(func(c *Config) { c.Window = time.Minute }), Closed},
		)
		assert.Zero(t, s.snap().Window.Total)
		s.tell(step{1, done("call", errDown), Closed})
		assert.EqualValues(t, 1, s.snap().Window.Failures, "the call counts in the new one")
		s.tell(step{2, F, Closed}, step{40, F, Open})
		assert.EqualValues(t, 5, s.snap().Totals.Failure, "and nothing is forgotten")
	})
	t.Run("a slow limit that changes forgets no failures", func(t *testing.T) {
		newStory(t, WithErrorCount(3), WithSlowCallRatio(time.Second, 0.5, MinRequests(100))).tell(
			step{0, times(2, F), Closed},
			step{1, updated(func(c *Config) { c.Rules[1].SlowerThan = 2 * time.Second }), Closed},
			step{2, F, Open},
		)
	})
	t.Run("a rule that is added or taken away forgets no failures", func(t *testing.T) {
		slow := Rule{Kind: SlowCallRatio, Ratio: 0.5, SlowerThan: time.Second, MinRequests: 100}
		newStory(t, WithErrorCount(3)).tell(
			step{0, F, Closed},
			step{1, updated(func(c *Config) { c.Rules = append(c.Rules, slow) }), Closed},
			step{1, F, Closed},
			step{2, updated(func(c *Config) { c.Rules = c.Rules[:1] }), Closed},
			step{2, F, Open},
		)
	})
	t.Run("a probe out keeps its seat", func(t *testing.T) {
		newStory(t, WithErrorCount(1), WithProbes(2)).tell(
			step{0, F, Open},
			step{5, A("probe"), HalfOpen},
			step{5, updated(func(c *Config) { c.OpenFor = time.Minute }), HalfOpen},
			step{5, A("other"), HalfOpen},
			step{5, R, HalfOpen},
			step{6, done("probe", nil), HalfOpen},
			step{6, done("other", nil), Closed},
		)
	})
}

// A configuration that does not validate changes nothing, and one that is the same
// touches nothing.
func TestS20_RefusedOrEqualChangeTouchesNothing(t *testing.T) {
	s := newStory(t, WithErrorCount(3), WithOpenFor(time.Minute)).tell(step{0, times(2, F), Closed})
	before := s.timeless()
	c := s.b.Config()
	c.OpenFor, c.Probes = -time.Second, nil
	err := s.b.Update(c)
	require.Error(t, err)
	assert.Contains(t, err.Error(), "OpenFor")
	assert.Contains(t, err.Error(), "Probes", "all complaints at once")
	assert.Equal(t, before, s.timeless())
	require.NoError(t, s.b.Update(s.b.Config()))
	assert.Equal(t, before, s.timeless())

	s.tell(step{1, F, Open}, step{5, updated(func(*Config) {}), Open})
	assert.Len(t, s.events, 1)
	s.tell(step{60.9, R, Open}, step{61, S, Closed})
}

// What goes in and comes out is a copy: a list changed in place was compared with
// itself, found equal and never applied.
func TestS20_ConfigIsCopiedInAndOut(t *testing.T) {
	c := DefaultConfig()
	c.Rules = []Rule{{Kind: ErrorCount, Count: 2}}
	c.Jitter = 0
	s := newStory(t, WithConfig(c))
	c.Rules[0].Count = 1
	s.tell(step{0, F, Closed})
	got := s.b.Config()
	assert.Equal(t, 2, got.Rules[0].Count)
	got.Rules[0].Count, got.Probes[0] = 1, 7
	assert.Equal(t, 2, s.b.Config().Rules[0].Count)
	assert.Equal(t, []int{1}, s.b.Config().Probes)
	require.NoError(t, s.b.Update(got))
	got.Rules[0].Count = 100
	s.tell(step{1, F, Open})
}

// A timeout that was read twice could be two timeouts:
// https://github.com/cep21/circuit/pull/159. While the configuration flips between
// two, each trip is by one of them whole.
func TestT40_EachDecisionIsByOneConfiguration(t *testing.T) {
	configs := make([]Config, 2)
	for i := range configs {
		configs[i] = DefaultConfig()
		configs[i].Jitter = 0
		configs[i].Rules = []Rule{{Kind: ErrorCount, Count: 3 + i}}
		configs[i].OpenFor = time.Duration(3+i) * time.Hour
		configs[i].BackoffFactor = 1
		configs[i].BackoffMax = 4 * time.Hour
	}
	trips := map[int]int{}
	b := build(t, WithConfig(configs[0]), WithOnChange(func(e Event) {
		if e.To == Open {
			trips[e.Cause.Rule.Count]++
			assert.Equal(t, time.Duration(e.Cause.Rule.Count)*time.Hour, e.OpenFor)
		}
	}))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				assert.NoError(t, b.Update(configs[i%2]))
			}
		}
	})
	for range 5000 {
		for b.State() == Closed {
			_ = b.Do(t.Context(), func(context.Context) error { return errDown })
		}
		b.Reset()
	}
	close(stop)
	wg.Wait()
	assert.Equal(t, 5000, trips[3]+trips[4])
}
