package ratelimit

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/metrics"
)

func TestKeyed_UpdateKeepsWhatIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyed(t, PerSecond(1), WithBurst(10), WithKeyClass("gold", PerSecond(1), 100))
		gold := k.Class("gold")
		k.Take("used", 7)
		k.Take("full", 10)
		gold.Take("gold", 95)
		k.Debit("debt", 14)
		time.Sleep(time.Second)
		update := func(change func(*KeyedConfig)) {
			t.Helper()
			c := k.Config()
			change(&c)
			require.NoError(t, k.Update(c))
			assert.Equal(t, c, k.Config())
			assert.Equal(t, c, gold.Config())
		}
		left := func(k *Keyed, key string) int64 { return k.Peek(key, 0).Remaining() }
		time.Sleep(10 * time.Second) // used and full are full again
		k.Take("used", 7)
		update(func(c *KeyedConfig) { c.Rate, c.Burst = PerSecond(2), 20 })
		assert.EqualValues(t, 3, left(k, "used"))
		assert.EqualValues(t, 20, left(k, "full"))
		assert.EqualValues(t, 20, left(k, "new"))
		assert.EqualValues(t, 7, left(k, "debt"))
		assert.EqualValues(t, 16, left(gold, "gold"))
		time.Sleep(time.Second)
		assert.EqualValues(t, 5, left(k, "used"), "at the new rate, from the change on")
		update(func(c *KeyedConfig) { c.Burst = 4 })
		assert.EqualValues(t, 4, left(k, "used"), "as many as it can hold")
		assert.EqualValues(t, 2, k.Take("used", 2).Remaining())

		update(func(c *KeyedConfig) { c.Classes = nil })
		assert.EqualValues(t, 4, gold.Take("gold 2", 0).Capacity(), "the limit of all keys")
		assert.Same(t, gold, k.Class("gold"))
		update(func(c *KeyedConfig) { c.Rate = Unlimited() })
		assert.True(t, k.Take("used", 1000).OK())
		update(func(c *KeyedConfig) { c.Rate = PerSecond(1) })
		assert.EqualValues(t, 4, left(k, "used"))
		update(func(c *KeyedConfig) { c.WhenFull = DenyNew })
	})
}

// Each key is worked out when it is asked for, and it is as if all had been at the time
// of each change.
func TestKeyed_UpdatesThatNobodySaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, slept := keyed(t, PerSecond(1), WithBurst(10)), keyed(t, PerSecond(1), WithBurst(10))
		asked.Take("ann", 10)
		slept.Take("ann", 10)
		for i := range 20 {
			c := asked.Config()
			c.Rate, c.Burst = PerSecond([]int64{1, 2, 4, 5}[i%4]), int64(8+i%5)
			require.NoError(t, asked.Update(c))
			require.NoError(t, slept.Update(c))
			time.Sleep(100 * time.Millisecond)
			asked.Take("ann", 1)
			slept.Debit("ann", 0)
			if i%3 == 0 {
				asked.Debit("ann", 1)
				slept.Debit("ann", 1)
			}
			require.NoError(t, asked.Update(c), "the same again changes nothing")
		}
		d, e := asked.Peek("ann", 8), slept.Peek("ann", 8)
		assert.Less(t, d.lack-e.lack, int64(20*asked.Class("").rule.Load().own.unit))
	})
}

// A rule that is no longer in force is not taken by.
func TestKeyed_NobodyTakesByAnOldRule(t *testing.T) {
	k := keyed(t, PerHour(10))
	require.True(t, k.Allow("ann"))
	hash, old := k.space.hash("ann"), k.rule.Load()
	s, ok := k.space.table.find(hash, keyOf(hash, old.tag))
	require.True(t, ok)
	c := k.Config()
	c.Burst = 1
	require.NoError(t, k.Update(c))
	_, _, ok = s.take(keyOf(hash, old.tag), old, 5, 1000)
	assert.False(t, ok, "although the slot has not changed yet")
	assert.False(t, s.debit(keyOf(hash, old.tag), old, 5, 1000))
	d := k.Take("ann", 1)
	assert.True(t, d.OK())
	assert.Zero(t, d.Remaining())
	_, ok = k.space.table.find(hash, keyOf(hash, old.tag))
	assert.False(t, ok)
}

// There are 255 tags, and each change of a limit takes one.
func TestKeyed_ManyUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyed(t, PerHour(1), WithBurst(1000), WithMaxKeys(100), WithWhenFull(OverflowKey), WithKeyClass("gold", PerHour(1), 7))
		k.Take("asleep", 600)
		k.Class("gold").Take("golden", 3)
		for i := range 2000 {
			c := k.Config()
			c.Burst = int64(1000 + i%3)
			c.Classes[0].Burst = int64(7 + i%2)
			if i == 1500 {
				c.Classes[0].Rate = Unlimited()
			}
			require.NoError(t, k.Update(c))
			if i%100 == 0 {
				k.Take("awake", 1)
			}
		}
		assert.EqualValues(t, 400, k.Peek("asleep", 0).Remaining())
		assert.EqualValues(t, 980, k.Peek("awake", 0).Remaining())
		assert.EqualValues(t, 2, k.Snapshot().Keys.Held, "golden needs no slot any more")
		assert.Equal(t, k.space.rules[k.rule.Load().tag].Load(), k.rule.Load())
	})
}

func TestKeyed_UpdateRefuses(t *testing.T) {
	k := keyed(t, PerHour(1))
	before := k.Config()
	c := before.Clone()
	c.MaxKeys, c.TopRejected = 7, 9
	err := k.Update(c)
	require.ErrorContains(t, err, "MaxKeys 7 is not 65536")
	require.ErrorContains(t, err, "TopRejected 9 is not 0")
	require.ErrorContains(t, k.Update(KeyedConfig{}), "MaxKeys 0")
	for i := range 2 {
		c = before.Clone()
		for j := range 60 {
			c.Classes = append(c.Classes, KeyClass{fmt.Sprint(i, j), PerHour(1), 1, Auto})
		}
		err = k.Update(c)
	}
	require.ErrorContains(t, err, "Classes makes 120 names with those of before, more than 100")
	assert.Equal(t, "0 0", k.Config().Classes[0].Name, "and changes nothing")
}

// A scale ends after 4.5 years.
func TestKeyed_AfterTenYears(t *testing.T) {
	k := keyed(t, PerHour(10))
	hash := k.space.hash("ann")
	now := int64(1000)
	for range 10 {
		require.True(t, k.take(hash, 1, now).OK())
	}
	require.False(t, k.take(hash, 1, now).OK())
	now += tenYears
	require.True(t, k.take(hash, 10, now).OK())
	require.False(t, k.take(hash, 1, now).OK())
	assert.Equal(t, 6*time.Minute, k.peek(hash, 1, now).RetryAfter())
	now += tenYears
	assert.EqualValues(t, 10, k.peek(hash, 0, now).Remaining())
	k.debit(hash, 4, now)
	assert.EqualValues(t, 6, k.peek(hash, 0, now).Remaining())
}

// Whatever is given back, at whatever time, what is kept never exceeds the burst and
// what came, in no interval.
func TestKeyed_NoRefundMints(t *testing.T) {
	const burst = 10
	for seed := range uint64(rounds(3000, 300)) {
		r := rand.New(rand.NewPCG(seed, 9))
		k := keyed(t, PerSecond(1), WithBurst(burst), WithMaxKeys(1))
		type event struct {
			d    Decision
			at   int64
			kept bool
		}
		var all []event
		now := clockless(clock.Now())
		for range 40 {
			now += clockless(r.Int64N(int64(3 * time.Second)))
			if d := k.take(5<<40, 1+r.Int64N(burst), int64(now)); d.OK() {
				all = append(all, event{d, int64(now), true})
			}
			if i := r.IntN(len(all) + 2); i < len(all) && all[i].kept {
				all[i].kept = false
				s, held := k.space.table.search(5 << 40)
				require.True(t, held)
				rule := k.rule.Load()
				require.True(t, s.giveBack(keyOf(5<<40, rule.tag), rule, rule, all[i].d, now.now))
			}
		}
		for i := range all {
			sum := int64(0)
			for _, e := range all[i:] {
				if e.kept {
					sum += e.d.n
					require.LessOrEqual(t, float64(sum), burst+float64(e.at-all[i].at)/1e9)
				}
			}
		}
	}
}

// clockless is a clock that stands still.
type clockless int64

func (c clockless) now() int64 { return int64(c) }

func TestKeyed_ConfigJSON(t *testing.T) {
	c := DefaultKeyedConfig()
	c.Rate, c.WhenFull, c.TopRejected, c.MaxKeys = PerMinute(60), DenyNew, 5, 1000
	c.Classes = []KeyClass{{"gold", PerSecond(10), 20, Auto}, {"staff", Unlimited(), Auto, 7}}
	data, err := json.Marshal(c)
	require.NoError(t, err)
	assert.JSONEq(t, `{"rate":"60/m","burst":"auto","max_debt":"auto","classes":[
		{"name":"gold","rate":"10/s","burst":20,"max_debt":"auto"},{"name":"staff","rate":"unlimited","burst":"auto","max_debt":7}],
		"max_keys":1000,"when_full":"deny_new","top_rejected":5}`, string(data))
	var back KeyedConfig
	require.NoError(t, json.Unmarshal(data, &back))
	assert.True(t, c.Equal(back))

	shared := back
	require.NoError(t, json.Unmarshal([]byte(`{"burst": 9, "classes": [{"name": "x", "rate": "1/s"}]}`), &back))
	assert.Equal(t, []KeyClass{{"x", PerSecond(1), Auto, Auto}}, back.Classes)
	assert.Equal(t, "gold", shared.Classes[0].Name)
	assert.EqualValues(t, 9, back.Burst)
	assert.Equal(t, DenyNew, back.WhenFull)
	before := back.Clone()
	for _, bad := range []string{`{"rates": "1/s"}`, `{"when_full": "explode"}`, `{"classes": [{"nam": "x"}]}`, `{"burst": -1}`, `{"rate": 5}`, `{"max_keys": "many"}`} {
		require.Error(t, json.Unmarshal([]byte(bad), &back), bad)
		assert.Equal(t, before, back)
	}
	for w := EvictLeastDebt; w <= OverflowKey; w++ {
		var again WhenFull
		require.NoError(t, again.UnmarshalText([]byte(w.String())))
		assert.Equal(t, w, again)
	}
	assert.Equal(t, "WhenFull(9)", WhenFull(9).String())
}

// Equal sees every field there is.
func TestKeyed_ConfigEqual(t *testing.T) {
	for i, change := range []func(*KeyedConfig){
		func(c *KeyedConfig) { c.Rate = PerSecond(2) },
		func(c *KeyedConfig) { c.Burst++ },
		func(c *KeyedConfig) { c.MaxDebt++ },
		func(c *KeyedConfig) { c.MaxKeys++ },
		func(c *KeyedConfig) { c.WhenFull++ },
		func(c *KeyedConfig) { c.TopRejected++ },
		func(c *KeyedConfig) { c.Classes = append(c.Classes, KeyClass{}) },
	} {
		c := DefaultKeyedConfig()
		change(&c)
		assert.False(t, DefaultKeyedConfig().Equal(c), i)
	}
	assert.True(t, DefaultKeyedConfig().Equal(DefaultKeyedConfig()))
}

func TestKeyed_Metrics(t *testing.T) {
	k := filled(t, DenyNew)
	k.Take("0", 5)
	k.Take("0", -1)
	k.Take("1", 2)
	k.Refund("2", k.Take("2", 1))
	k.Allow("new")
	var set metrics.Set
	require.NoError(t, set.Add("users", k))
	got := map[string]float64{}
	set.Collect(func(s metrics.Sample) bool {
		require.NoError(t, s.Desc.Validate())
		got[fmt.Sprint(s.Desc.Name, s.Labels)] = s.Value
		return true
	})
	for sample, want := range map[string]float64{
		"ratelimit_admitted[users keyed]": 17, "ratelimit_tokens[users keyed]": 33, "ratelimit_refunds[users keyed]": 1,
		"rejected[users keyed limited]": 1, "rejected[users keyed exceeds_capacity]": 1, "rejected[users keyed invalid]": 1,
		"rejected[users keyed too_many_keys]": 1, "ratelimit_keys[users]": 16, "ratelimit_key_slots[users]": 16,
		"ratelimit_keys_settled[users]": 16, "ratelimit_keys_evicted[users]": 0,
	} {
		value, ok := got[sample]
		assert.True(t, ok, sample)
		assert.InDelta(t, want, value, 0, sample)
	}
	n := 0
	k.Collect(func(metrics.Sample) bool { n++; return n < 3 })
	assert.Equal(t, 3, n, "it stops when told to")
	_, err := json.Marshal(k.View())
	require.NoError(t, err)
}
