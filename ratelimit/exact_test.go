package ratelimit

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

func exact(t *testing.T, rate Rate, opts ...KeyedExactOption) *KeyedExact {
	t.Helper()
	k, err := NewKeyedExact("tenants", rate, opts...)
	require.NoError(t, err)
	return k
}

func TestKeyedExact_EachKeyHasALimiterOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := exact(t, PerSecond(1), WithBurst(2), WithKey("acme", PerSecond(10), WithBurst(20)), WithKey("free", Unlimited()), WithKey("gone", Blocked()))
		assert.True(t, k.Allow("a"))
		assert.True(t, k.Allow("a"))
		assert.False(t, k.Allow("a"))
		assert.True(t, k.Allow("b"))
		d := k.Take("acme", 15)
		assert.True(t, d.OK())
		assert.EqualValues(t, 5, d.Remaining())
		assert.Equal(t, "tenants/acme", d.Resource())
		assert.Equal(t, PerSecond(10), d.Limit())
		assert.True(t, k.Take("free", 1000).OK())
		assert.True(t, k.Take("gone", 1).Never())
		k.Refund("acme", d)
		assert.EqualValues(t, 20, k.Peek("acme", 0).Remaining())
		assert.EqualValues(t, 17, k.Debit("acme", 3).Remaining())
		assert.Equal(t, 5, k.Len())

		began := time.Now()
		require.NoError(t, k.Wait(t.Context(), "a"))
		require.NoError(t, k.WaitN(t.Context(), "a", 2))
		assert.Equal(t, 3*time.Second, time.Since(began))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, k.WaitN(ctx, "a", 2), context.DeadlineExceeded)
	})
}

func TestKeyedExact_KeysOfTwoParts(t *testing.T) {
	k := exact(t, PerHour(1), WithBurst(1), WithKey("GET /orders", PerHour(1), WithBurst(3)))
	d := k.Take2("GET", "/orders", 2)
	assert.EqualValues(t, 1, d.Remaining())
	assert.EqualValues(t, 1, k.Peek("GET /orders", 0).Remaining(), "that is its name")
	assert.EqualValues(t, 1, k.Peek2("GET", "/orders", 0).Remaining())
	k.Refund2("GET", "/orders", d)
	assert.True(t, k.Debit2("GET", "/orders", 3).OK())
	assert.False(t, k.Allow2("GET", "/orders"))
	assert.True(t, TakeAll(1, k.By2("GET", "/"+strings.Repeat("long", 100)), k.By("x")).OK())
	assert.Contains(t, k.Snapshot().Keys, "GET /orders")
}

func TestKeyedExact_TheNilOneLetsEverythingPass(t *testing.T) {
	var k *KeyedExact
	assert.True(t, k.Allow("a"))
	assert.True(t, k.Allow2("a", "b"))
	assert.True(t, k.Take("a", math.MaxInt64).OK())
	assert.True(t, k.Take2("a", "b", 1).OK())
	assert.True(t, k.Peek("a", 1).OK())
	assert.True(t, k.Peek2("a", "b", 1).OK())
	assert.True(t, k.Debit("a", 1).OK())
	assert.True(t, k.Debit2("a", "b", 1).OK())
	k.Refund("a", Decision{})
	k.Refund2("a", "b", Decision{})
	require.NoError(t, k.Wait(t.Context(), "a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, k.Wait(ctx, "a"), context.Canceled)
	assert.True(t, TakeAll(1, k.By("a"), k.By2("a", "b")).OK())
	assert.Zero(t, k.Len())
	assert.Zero(t, k.Config())
	require.Error(t, k.Update(KeyedExactConfig{}))
	assert.Empty(t, k.Name())
	assert.Zero(t, k.Snapshot())
	k.Collect(nil)
	assert.Equal(t, k.Snapshot(), k.View())
}

// Whoever is over his limit stays, and the longest full one goes.
func TestKeyedExact_LetsFullOnesGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := exact(t, PerSecond(1), WithBurst(60), WithMaxKeys(3))
		k.Take("greedy", 60)
		k.Take("old", 1)
		time.Sleep(time.Second)
		k.Take("young", 1)
		time.Sleep(2 * time.Second)
		k.Take("new 1", 60)
		assert.NotContains(t, k.Snapshot().Keys, "old")
		k.Take("new 2", 60)
		assert.NotContains(t, k.Snapshot().Keys, "young")
		d := k.Take("new 3", 60)
		assert.True(t, d.OK())
		assert.Equal(t, "tenants/_overflow", d.Resource())
		assert.False(t, k.Allow("new 4"), "they share")
		assert.EqualValues(t, 2, k.Snapshot().Overflows)
		time.Sleep(time.Hour)
		for i := range 1000 {
			assert.True(t, k.Allow(fmt.Sprint(i)))
			assert.LessOrEqual(t, k.Len(), 3)
			time.Sleep(time.Minute)
		}
	})
}

// A key may be let go between being found and being taken from. Then it is held again.
func TestKeyedExact_WhoTakesIsHeldAgain(t *testing.T) {
	for name, take := range map[string]func(e *exactKey){
		"take":  func(e *exactKey) { e.Take(4) },
		"debit": func(e *exactKey) { e.Debit(4) },
		"layer": func(e *exactKey) { TakeAll(4, e.Layer()) },
		"wait":  func(e *exactKey) { _ = e.WaitN(context.Background(), 4) },
	} {
		t.Run(name, func(t *testing.T) {
			k := exact(t, PerDay(10), WithMaxKeys(1))
			found := k.get("a")
			k.Take("b", 1)
			require.NotContains(t, k.Snapshot().Keys, "a", "it was full, and let go")
			take(found)
			found = nil
			_ = found
			for range 3 {
				runtime.GC()
			}
			assert.Contains(t, k.Snapshot().Keys, "a")
			assert.EqualValues(t, 6, k.Peek("a", 0).Remaining())
		})
	}
}

func TestKeyedExact_AFloodForgetsNobody(t *testing.T) {
	heap := inUse()
	k := exact(t, PerDay(10), WithMaxKeys(100))
	for range 11 {
		k.Allow("greedy")
	}
	for i := range rounds(100_000, 10_000) {
		k.Allow(fmt.Sprint("made up ", i))
	}
	assert.False(t, k.Allow("greedy"))
	assert.Equal(t, 100, k.Len())
	assert.Positive(t, k.Snapshot().Overflows)
	assert.Less(t, inUse()-heap, int64(2<<20))
	runtime.KeepAlive(k)
}

// A bucket of one token, which its holder gives back, is a lock. Forty keys take the
// place of each other, and none is ever held by two, except by one outside.
func TestKeyedExact_ATokenHasOneHolder(t *testing.T) {
	const keys = 40
	k := exact(t, PerDay(1), WithBurst(1), WithMaxKeys(6))
	var holders [keys]atomic.Int64
	var twice, held atomic.Int64
	together(func(r *rand.Rand) {
		for range rounds(20_000, 4_000) {
			i := r.IntN(keys)
			key := fmt.Sprint("key ", i)
			d := k.Take(key, 1)
			if !d.OK() {
				continue
			}
			if d.Resource() == "tenants/_overflow" {
				k.overflow.Refund(d) // it is another lock
				continue
			}
			held.Add(1)
			if holders[i].Add(1) > 1 {
				twice.Add(1)
			}
			if r.IntN(4) == 0 {
				runtime.Gosched()
			}
			holders[i].Add(-1)
			k.Refund(key, d)
		}
	})
	assert.Positive(t, held.Load())
	assert.Zero(t, twice.Load())
}

func TestKeyedExact_Update(t *testing.T) {
	k := exact(t, PerHour(1), WithBurst(10), WithKey("acme", PerHour(1), WithBurst(100)), WithMaxKeys(2))
	k.Take("a", 4)
	k.Take("acme", 40)
	k.Take("c", 1) // to the overflow limiter
	c := k.Config()
	c.Burst = 8
	c.Keys[0].Burst = 50
	require.NoError(t, k.Update(c))
	assert.True(t, c.Equal(k.Config()))
	assert.EqualValues(t, 6, k.Peek("a", 0).Remaining(), "what was there")
	assert.EqualValues(t, 50, k.Peek("acme", 0).Remaining(), "as far as it can hold it")
	assert.EqualValues(t, 8, k.Peek("c", 0).Capacity())
	c = k.Config()
	c.Keys = nil
	require.NoError(t, k.Update(c))
	assert.EqualValues(t, 8, k.Peek("acme", 0).Remaining())
	require.NoError(t, k.Update(c))
	c.MaxKeys = 7
	require.ErrorContains(t, k.Update(c), "MaxKeys 7 is not 2")
	c.MaxKeys, c.Burst = 2, 0
	require.ErrorContains(t, k.Update(c), "Burst 0")
	assert.EqualValues(t, 8, k.Config().Burst)
}

func TestKeyedExact_EveryComplaintAtOnce(t *testing.T) {
	_, err := NewKeyedExact("", PerSecond(1), WithBurst(0), WithMaxKeys(0), nil,
		WithKey("a", Rate{}, nil), WithKey("b", PerSecond(1), WithBurst(0), WithoutTotals()), WithKey("b", PerSecond(1)))
	require.Error(t, err)
	for _, complaint := range []string{
		"name is empty", "Burst 0 is less than 1", "MaxKeys 0", "option 2 is nil", `key "a": ratelimit: option 0 is nil`, `Keys[0], of "a"`, `Keys[1], of "b"`,
		`Keys[2].Key "b" stands there twice`, "WithoutTotals is for all keys",
	} {
		assert.ErrorContains(t, err, complaint)
	}
	_, err = NewKeyedExact("x", PerSecond(1), WithKeyedExactConfig(KeyedExactConfig{Config: Config{Rate: PerSecond(2)}}))
	assert.ErrorContains(t, err, "Rate 2/s of the configuration is not the 1/s")
}

func TestKeyedExact_ConfigJSON(t *testing.T) {
	c := DefaultKeyedExactConfig()
	c.Rate, c.Keys = PerMinute(60), []KeyConfig{{"acme", func() Config { c := DefaultConfig(); c.Rate, c.Burst = PerSecond(10), 20; return c }()}}
	data, err := json.Marshal(c)
	require.NoError(t, err)
	assert.JSONEq(t, `{"rate":"60/m","burst":"auto","initial":"auto","max_wait":"auto","max_waiters":10000,"max_debt":"auto","max_keys":1024,
		"keys":[{"key":"acme","rate":"10/s","burst":20,"initial":"auto","max_wait":"auto","max_waiters":10000,"max_debt":"auto"}]}`, string(data))
	var back KeyedExactConfig
	require.NoError(t, json.Unmarshal(data, &back))
	assert.True(t, c.Equal(back))
	shared := back
	require.NoError(t, json.Unmarshal([]byte(`{"max_wait":"2s","keys":[{"key":"x","rate":"1/s"}]}`), &back))
	assert.Equal(t, "acme", shared.Keys[0].Key)
	assert.Equal(t, 2*time.Second, back.MaxWait)
	assert.Equal(t, DefaultConfig().MaxWaiters, back.Keys[0].MaxWaiters)
	before := back.Clone()
	for bad, path := range map[string]string{`{"keys":[{"key":"x","rates":"1/s"}]}`: "keys[0].rates", `{"rate":"fast"}`: "rate", `{"maxkeys":1}`: "maxkeys", `{"max_wait":5}`: "max_wait"} {
		err := json.Unmarshal([]byte(bad), &back)
		require.ErrorContains(t, err, path)
		assert.Equal(t, before, back)
	}
	for i, change := range []func(*KeyedExactConfig){func(c *KeyedExactConfig) { c.Burst++ }, func(c *KeyedExactConfig) { c.MaxKeys++ }, func(c *KeyedExactConfig) { c.Keys = nil }} {
		d := c.Clone()
		change(&d)
		assert.False(t, c.Equal(d), i)
	}
}

func TestKeyedExact_Metrics(t *testing.T) {
	k := exact(t, PerHour(1), WithBurst(1), WithMaxKeys(2))
	for _, key := range []string{"a", "a", "b", "c"} {
		k.Allow(key)
	}
	var set metrics.Set
	require.NoError(t, set.Add("tenants", k))
	got := map[string]float64{}
	set.Collect(func(s metrics.Sample) bool {
		require.NoError(t, s.Desc.Validate())
		got[fmt.Sprint(s.Desc.Name, s.Labels)] = s.Value
		return true
	})
	for sample, want := range map[string]float64{
		"ratelimit_admitted[tenants/a token_bucket]": 1, "rejected[tenants/a token_bucket limited]": 1, "ratelimit_admitted[tenants/b token_bucket]": 1,
		"ratelimit_admitted[tenants/_overflow token_bucket]": 1, "group_keys[tenants]": 2, "group_overflows[tenants]": 1,
	} {
		value, ok := got[sample]
		assert.True(t, ok, sample)
		assert.InDelta(t, want, value, 0, sample)
	}
	for most := range 20 {
		n := 0
		k.Collect(func(metrics.Sample) bool { n++; return n < most })
		assert.Equal(t, max(1, most), n, "it stops when told to")
	}
	_, err := json.Marshal(k.View())
	require.NoError(t, err)
}

func TestKeyedExact_AllocatesNothing(t *testing.T) {
	rich, poor := exact(t, PerSecond(1_000_000_000)), exact(t, PerDay(1), WithBurst(1))
	full, global := exact(t, PerDay(1), WithMaxKeys(1)), sluice.Must(New("global", PerSecond(1_000_000_000)))
	for range 5 {
		poor.Allow("acme")
		full.Allow("acme")
		rich.Allow("acme")
		rich.Allow2("GET", "/orders/and/a/path/of/some/length")
	}
	for name, do := range map[string]func(){
		"admitted":            func() { rich.Take("acme", 1) },
		"admitted, two parts": func() { rich.Take2("GET", "/orders/and/a/path/of/some/length", 1) },
		"refused":             func() { poor.Allow("acme") },
		"refund":              func() { rich.Refund("acme", rich.Take("acme", 1)) },
		"peek and debit":      func() { rich.Peek("acme", 1); rich.Debit("acme", 1) },
		"layers": func() {
			TakeAll(1, rich.By("acme"), rich.By2("GET", "/orders/and/a/path/of/some/length"), global.Layer())
		},
		"layers, refused": func() { TakeAll(1, rich.By("acme"), poor.By("acme"), global.Layer()) },
	} {
		assert.Zero(t, testing.AllocsPerRun(100, do), name)
	}
}
