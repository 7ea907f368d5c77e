package ratelimit

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

func TestSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(10), WithBurst(5))
		d := l.Take(3)
		l.Take(3)
		l.Take(6)
		l.Take(-1)
		l.Peek(2)
		l.Take(0)
		l.Debit(4)
		l.Refund(d)
		time.Sleep(50 * time.Millisecond)
		s := l.Snapshot()
		assert.Equal(t, Snapshot{
			Name: "test", Rate: PerSecond(10), Burst: 5, Level: 1.5,
			Totals:  TotalsSnapshot{Admitted: 1, Tokens: 7, Refunded: 1},
			Refused: RefusedSnapshot{Limited: 1, ExceedsCapacity: 1, Invalid: 1},
		}, s)
		assert.Equal(t, s, l.View())
		out, err := json.Marshal(s)
		require.NoError(t, err)
		assert.Equal(t, `{"name":"test","rate":"10/s","burst":5,"level":1.5,"waiting":0,"queue":0,`+
			`"totals":{"admitted":1,"tokens":7,"refunded":1,"gone":0},`+
			`"refused":{"limited":1,"exceeds_capacity":1,"blocked":0,"invalid":1,"max_wait":0,"deadline":0,"max_waiters":0}}`, string(out))

		blind := build(t, PerSecond(10), WithoutTotals())
		blind.Refund(blind.Take(3))
		blind.Take(11)
		blind.Debit(1)
		assert.Equal(t, TotalsSnapshot{}, blind.Snapshot().Totals)
		assert.Equal(t, RefusedSnapshot{}, blind.Snapshot().Refused)
		assert.Equal(t, 9.0, blind.Snapshot().Level)

		assert.Equal(t, Snapshot{Name: "test", Rate: Blocked(), Refused: RefusedSnapshot{Blocked: 1}}, func() Snapshot {
			l := build(t, Blocked())
			l.Allow()
			return l.Snapshot()
		}())
	})
}

// What is collected: every family fits its Desc, and the counters are the totals.
func TestCollect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := build(t, PerSecond(10), WithBurst(5))
		l.Take(3)
		l.Take(3)
		q, err := NewPriorities("prio", PerSecond(100))
		require.NoError(t, err)
		q.Refund(q.Take(sluice.P0, 1))
		q.Take(sluice.P2, 1000)
		require.NoError(t, q.Do(t.Context(), nothing))

		var set metrics.Set
		require.NoError(t, set.Add("limiter", l))
		require.NoError(t, set.Add("priorities", q))
		got := map[string]float64{}
		for s := range set.Collect {
			require.NoError(t, s.Desc.Validate())
			got[s.Desc.Name+" "+strings.Join(s.Labels, " ")] = s.Value
		}
		for key, want := range map[string]float64{
			"ratelimit_admitted test token_bucket":        1,
			"ratelimit_tokens test token_bucket":          3,
			"ratelimit_refunds test token_bucket":         0,
			"ratelimit_waits_abandoned test token_bucket": 0,
			"ratelimit_level test token_bucket":           2,
			"ratelimit_capacity test token_bucket":        5,
			"ratelimit_waiting test token_bucket":         0,
			"rejected test token_bucket limited":          1,
			"rejected test token_bucket blocked":          0,
			"rejected test token_bucket max_waiters":      0,
			"priority_admitted prio P0":                   1,
			"priority_admitted prio any":                  1,
			"priority_rejected prio P2":                   1,
			"priority_level prio P0":                      20,
			"priority_level prio shared":                  64,
			"ratelimit_refunds prio priorities":           1,
			"rejected prio priorities exceeds_capacity":   1,
			"rejected prio priorities limited":            0,
		} {
			value, ok := got[key]
			assert.True(t, ok, key)
			assert.Equal(t, want, value, key)
		}
		for _, source := range []metrics.Source{l, q} {
			n := 0
			source.Collect(func(metrics.Sample) bool { n++; return n < 3 })
			assert.Equal(t, 3, n, "it stops when it is told to")
		}
		for _, none := range []metrics.Source{(*Limiter)(nil), (*Priorities)(nil)} {
			none.Collect(func(metrics.Sample) bool { t.Error("there is nothing to tell"); return true })
			none.View()
		}
	})
}

func TestPriorities_Snapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := NewPriorities("prio", PerSecond(100))
		require.NoError(t, err)
		q.Take(sluice.P1, 40)
		q.Take(sluice.P2, 50)
		out, err := json.Marshal(q.View())
		require.NoError(t, err)
		refused := `{"limited":0,"exceeds_capacity":0,"blocked":0,"invalid":0,"max_wait":0,"deadline":0,"max_waiters":0}`
		assert.Equal(t, `{"name":"prio","rate":"100/s","classes":[`+
			`{"own":{"level":20,"capacity":20},"admitted":0,"tokens":0,"refused":`+refused+`},`+
			`{"own":{"level":10,"capacity":10},"admitted":1,"tokens":40,"refused":`+refused+`},`+
			`{"own":{"level":5,"capacity":5},"admitted":0,"tokens":0,"refused":`+strings.Replace(refused, `capacity":0`, `capacity":1`, 1)+`}],`+
			`"shared":{"level":25,"capacity":65},"plenty":0,"refunded":0}`, string(out))
	})
}

func TestPriorities_Update(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := NewPriorities("prio", PerSecond(100))
		require.NoError(t, err)
		levels := func() (all [classes + 1]float64) {
			s := q.Snapshot()
			for i, class := range s.Classes {
				all[i] = class.Own.Level
			}
			all[classes] = s.Shared.Level
			return all
		}
		d := q.Take(sluice.P0, 60)
		require.Equal(t, [...]float64{20, 10, 5, 5}, levels())
		before := q.cur.Load()
		require.NoError(t, q.Update(q.Config()))
		assert.Same(t, before, q.cur.Load(), "an equal Config touches nothing")
		assert.Error(t, q.Update(PrioritiesConfig{}))
		assert.Same(t, before, q.cur.Load())

		c := q.Config()
		c.Rate, c.Burst = PerSecond(1000), 50
		c.Classes[1].Assured = 0
		require.NoError(t, q.Update(c))
		assert.Equal(t, [...]float64{10, 0, 2, 5}, levels(), "as much as there is room for; a class without a share has no bucket")
		q.Refund(d)
		assert.Equal(t, [...]float64{10, 0, 2, 38}, levels(), "what was taken before goes to the bucket that took its place")
		c.Classes[1].Assured = 0.1
		require.NoError(t, q.Update(c))
		assert.Equal(t, [...]float64{10, 0, 2, 33}, levels(), "who was assured nothing begins with none")

		require.NoError(t, q.Update(with2(c, Unlimited())))
		assert.True(t, q.Take(sluice.P2, 1<<40).OK())
		require.NoError(t, q.Update(with2(c, Blocked())))
		assert.False(t, q.Allow(sluice.P0))
		require.NoError(t, q.Update(c))
		assert.Equal(t, [...]float64{0, 0, 0, 0}, levels(), "where all was blocked, nothing is")
		require.NoError(t, q.Update(with2(c, Unlimited())))
		require.NoError(t, q.Update(c))
		assert.Equal(t, [...]float64{10, 5, 2, 33}, levels(), "where nothing was limited, all is")
	})
}

func with2(c PrioritiesConfig, r Rate) PrioritiesConfig {
	c.Rate = r
	return c
}

// The buckets of a Priorities go on beyond four years as a Limiter's does.
func TestPriorities_Renew(t *testing.T) {
	q := newPriorities("prio", prioritiesOf(PerSecond(100)), true, 1)
	require.True(t, q.take(0, 65, 1).OK())
	later := 1 + maxSpan + int64(time.Hour)
	assert.True(t, q.take(0, 65, later).OK())
	assert.True(t, q.take(0, 20, later).OK())
	assert.False(t, q.take(0, 20, later).OK())
	assert.Equal(t, later, q.cur.Load().buckets[0].epoch)
	assert.Zero(t, q.snapshot(later).Classes[0].Own.Level)
}

func TestNewPriorities(t *testing.T) {
	q, err := NewPriorities("api", PerMinute(60), WithBurst(40), WithClass(sluice.P0, 0.5, 0), WithClass(sluice.P2, 0, 0.5), WithKeep(0.5))
	require.NoError(t, err)
	assert.Equal(t, "api", q.Name())
	want := PrioritiesConfig{PerMinute(60), 40, [classes]PriorityClass{{0.5, 0}, {0.1, 0.1}, {0, 0.5}}, 0.5}
	assert.Equal(t, want, q.Config())
	blind, err := NewPriorities("api", PerMinute(60), WithoutTotals())
	require.NoError(t, err)
	blind.Refund(blind.Take(sluice.P0, 1))
	assert.Zero(t, blind.Snapshot().Refunded)
	again, err := NewPriorities("api", PerMinute(60), WithKeep(1), WithPrioritiesConfig(want))
	require.NoError(t, err)
	assert.Equal(t, want, again.Config())
	for _, tc := range []struct {
		name string
		opts []PrioritiesOption
		want string
	}{
		{"", nil, "ratelimit: the name is empty"},
		{"x", []PrioritiesOption{nil, WithKeep(2)}, "ratelimit: option 0 is nil\nratelimit: Keep 2 is not in [0, 1]"},
		{"x", []PrioritiesOption{WithInitial(3), WithMaxWait(0), WithMaxDebt(1), WithMaxWaiters(1), Option(nil)}, "ratelimit: an option is nil\n" +
			"ratelimit: WithMaxWait means nothing to a Priorities\nratelimit: WithInitial means nothing to a Priorities\n" +
			"ratelimit: WithMaxDebt means nothing to a Priorities\nratelimit: WithMaxWaiters means nothing to a Priorities"},
		{"x", []PrioritiesOption{WithClass(7, 0, 0)}, "ratelimit: WithClass(Priority(7)): the classes are P0, P1 and P2"},
		{"x", []PrioritiesOption{WithPrioritiesConfig(with2(want, PerDay(1)))}, "ratelimit: Rate 1/d of the configuration is not the 60/m given to the constructor"},
	} {
		_, err := NewPriorities(tc.name, PerMinute(60), tc.opts...)
		assert.EqualError(t, err, tc.want)
	}
}
