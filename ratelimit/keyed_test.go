package ratelimit

import (
	"fmt"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

func keyed(t *testing.T, rate Rate, opts ...KeyedOption) *Keyed {
	t.Helper()
	k, err := NewKeyed("users", rate, opts...)
	require.NoError(t, err)
	return k
}

func TestKeyed_EachKeyHasABucketOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyed(t, PerSecond(1), WithBurst(3))
		for range 3 {
			assert.True(t, k.Allow("ann"))
		}
		assert.False(t, k.Allow("ann"))
		assert.True(t, k.Allow("bob"))
		time.Sleep(time.Second)
		assert.True(t, k.Allow("ann"))
		assert.False(t, k.Allow("ann"))
		assert.EqualValues(t, 3, k.Peek("bob", 0).Remaining())
		assert.EqualValues(t, 3, k.Peek("nobody yet", 0).Remaining())
	})
}

func TestKeyed_Decision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyed(t, PerMinute(6), WithBurst(3))
		d := k.Take("ann", 2)
		assert.True(t, d.OK())
		assert.EqualValues(t, 2, d.Tokens())
		assert.EqualValues(t, 1, d.Remaining())
		assert.Equal(t, 20*time.Second, d.ResetAfter())
		assert.Equal(t, PerMinute(6), d.Limit())
		assert.EqualValues(t, 3, d.Capacity())
		assert.Equal(t, "users", d.Resource())
		assert.Equal(t, "keyed", d.Policy())
		require.NoError(t, d.Err())

		d = k.Take("ann", 2)
		assert.False(t, d.OK())
		assert.Equal(t, 10*time.Second, d.RetryAfter())
		require.ErrorIs(t, d.Err(), ErrLimited)
		require.ErrorIs(t, d.Err(), sluice.ErrRejected)
		var limited *LimitError
		require.ErrorAs(t, d.Err(), &limited)
		assert.Equal(t, ReasonLimited, limited.Reason())
		time.Sleep(10*time.Second - 1)
		assert.False(t, k.Take("ann", 2).OK(), "a nanosecond too early")
		time.Sleep(time.Nanosecond)
		assert.True(t, k.Take("ann", 2).OK())

		d = k.Take("ann", 4)
		assert.True(t, d.Never())
		require.ErrorIs(t, d.Err(), ErrExceedsCapacity)
		assert.True(t, k.Take("ann", -1).Never())
		assert.True(t, k.Take("ann", math.MaxInt64).Never())
		assert.True(t, k.Take("ann", math.MinInt64).Never())
		assert.True(t, k.Take("ann", 0).OK(), "it asks for nothing")
	})
}

func TestKeyed_PeekTakesNothing(t *testing.T) {
	k := keyed(t, PerHour(1), WithBurst(2))
	for range 10 {
		assert.True(t, k.Peek("ann", 2).OK())
		assert.False(t, k.Peek("ann", 3).OK())
	}
	assert.Zero(t, k.Snapshot().Keys.Held, "and needs no slot")
	assert.True(t, k.Take("ann", 2).OK())
	assert.False(t, k.Peek("ann", 1).OK())
	k.Refund("ann", k.Peek("ann", 0))
	assert.False(t, k.Peek("ann", 1).OK(), "there is nothing to give back")
	assert.Equal(t, TotalsSnapshot{Admitted: 1, Tokens: 2}, k.Snapshot().Totals, "nor to count")
}

func TestKeyed_Debit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyed(t, PerSecond(1), WithBurst(5), WithMaxDebt(10))
		assert.EqualValues(t, 1, k.Debit("ann", 4).Remaining())
		d := k.Debit("ann", 3)
		assert.False(t, d.OK(), "in debt")
		assert.Equal(t, 2*time.Second, d.RetryAfter())
		assert.False(t, k.Take("ann", 0).OK())
		k.Debit("ann", math.MaxInt64)
		assert.Equal(t, 11*time.Second, k.Peek("ann", 1).RetryAfter(), "no further than MaxDebt")
		assert.True(t, k.Debit("ann", -1).Never())
		time.Sleep(11 * time.Second)
		assert.True(t, k.Allow("ann"))
		assert.EqualValues(t, 5, k.Debit("bob", 0).Remaining())
	})
}

func TestKeyed_Refund(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyed(t, PerSecond(1), WithBurst(10))
		a := k.Take("ann", 4)
		k.Refund("ann", a)
		assert.EqualValues(t, 10, k.Peek("ann", 0).Remaining(), "all of it")

		a = k.Take("ann", 4)
		time.Sleep(time.Second)
		k.Refund("ann", a)
		assert.EqualValues(t, 10, k.Peek("ann", 0).Remaining(), "no more than it can hold")
		assert.True(t, k.Take("ann", 10).OK())
		assert.False(t, k.Allow("ann"))

		time.Sleep(20 * time.Second)
		a = k.Take("ann", 4)
		b := k.Take("ann", 6)
		time.Sleep(time.Second)
		k.Refund("ann", a)
		assert.EqualValues(t, 4, k.Peek("ann", 0).Remaining(), "1 that came, and 3 of 4 that cannot have come")
		k.Refund("ann", b)
		assert.EqualValues(t, 9, k.Peek("ann", 0).Remaining())

		k.Take("cleo", 6)
		c := k.Take("cleo", 4)
		time.Sleep(2 * time.Second)
		k.Refund("cleo", c)
		assert.EqualValues(t, 6, k.Peek("cleo", 0).Remaining(), "2 that came, and all 4, as nobody has taken since")

		k.Refund("bob", a)
		k.Refund("ann", k.Take("ann", 100))
		k.Refund("ann", Decision{})
		assert.EqualValues(t, 10, k.Peek("bob", 0).Remaining())
		assert.EqualValues(t, 10, k.Peek("ann", 0).Remaining())
	})
}

// A key of two parts is none of one, and no two of them are alike.
func TestKeyed_KeysOfTwoParts(t *testing.T) {
	k := keyed(t, PerHour(1), WithBurst(1))
	for _, key := range [][2]string{{"a", "bc"}, {"ab", "c"}, {"abc", ""}, {"", "abc"}, {"bc", "a"}, {"", ""}, {"x", "x"}} {
		assert.True(t, k.Take2(key[0], key[1], 1).OK(), key)
		assert.False(t, k.Allow2(key[0], key[1]), key)
		assert.False(t, k.Peek2(key[0], key[1], 1).OK(), key)
		assert.False(t, TakeAll(1, k.By2(key[0], key[1])).OK(), key)
	}
	assert.True(t, k.Allow("abc"))
	assert.True(t, k.Allow(""))
	d := k.Take2("ann", "/pay", 1)
	k.Refund2("ann", "/pay", d)
	assert.True(t, k.Debit2("ann", "/pay", 1).OK())
	assert.False(t, k.Allow2("ann", "/pay"))
}

func TestKeyed_TheNilKeyedLetsEverythingPass(t *testing.T) {
	var k *Keyed
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
	assert.True(t, TakeAll(1, k.By("a"), k.By2("a", "b"), k.Class("gold").By("a")).OK())
	assert.Zero(t, k.Config())
	require.NoError(t, k.Update(func() KeyedConfig { c := DefaultKeyedConfig(); c.Rate = PerSecond(1); return c }()))
	require.Error(t, k.Update(KeyedConfig{}))
	assert.Equal(t, "", k.Name())
	assert.Equal(t, Unlimited(), k.Snapshot().Rate)
	assert.Empty(t, k.TopRejected(3))
	k.Collect(nil)
	assert.Equal(t, k.Snapshot(), k.View())
}

func TestKeyed_RatesThatAreNone(t *testing.T) {
	all, none := keyed(t, Unlimited()), keyed(t, Blocked())
	for range 100 {
		assert.True(t, all.Take("a", math.MaxInt64).OK())
		assert.True(t, none.Take("a", 1).Never())
	}
	assert.True(t, all.Take("a", -1).Never())
	all.Refund("a", all.Take("a", 1))
	assert.True(t, all.Debit("a", 5).OK())
	assert.Equal(t, int64(math.MaxInt64), all.Peek("a", 0).Remaining())
	var limited *LimitError
	require.ErrorAs(t, none.Take("a", 1).Err(), &limited)
	assert.Equal(t, ReasonBlocked, limited.Reason())
	assert.Zero(t, all.Snapshot().Keys.Held+none.Snapshot().Keys.Held, "they need no slots")
}

func TestKeyed_Classes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyed(t, PerSecond(1), WithBurst(2), WithKeyClass("gold", PerSecond(10), 20), WithKeyClass("staff", Unlimited(), Auto), WithKeyClass("banned", Blocked(), Auto))
		gold := k.Class("gold")
		assert.Same(t, gold, k.Class("gold"))
		assert.Same(t, k, k.Class("no such class"))
		assert.Same(t, k, gold.Class("no such class"))
		assert.Equal(t, "users", gold.Name())
		assert.EqualValues(t, 20, gold.Take("ann", 1).Capacity())
		assert.EqualValues(t, 2, k.Take("bob", 1).Capacity())
		assert.True(t, k.Class("staff").Take("cleo", 1000).OK())
		assert.False(t, k.Class("banned").Allow("dan"))

		assert.EqualValues(t, 2, k.Peek("ann", 0).Remaining(), "as far as the burst can hold them")
		assert.EqualValues(t, 19, gold.Peek("ann", 0).Remaining(), "looking moves nobody")
		assert.True(t, k.Take("ann", 1).OK(), "but asking does")
		assert.EqualValues(t, 1, gold.Peek("ann", 0).Remaining())
		assert.True(t, gold.Allow("ann"))
		assert.False(t, gold.Allow("ann"))
		time.Sleep(time.Second)
		assert.EqualValues(t, 10, gold.Peek("ann", 0).Remaining())
		time.Sleep(2 * time.Second)
		assert.EqualValues(t, 20, gold.Peek("ann", 0).Remaining())
	})
}

// filled is a Keyed of 16 slots, one of which each of as many keys has taken.
func filled(t *testing.T, policy WhenFull, opts ...KeyedOption) *Keyed {
	t.Helper()
	k := keyed(t, PerSecond(1), append([]KeyedOption{WithMaxKeys(1), WithBurst(3), WithWhenFull(policy)}, opts...)...)
	for i := 0; k.Snapshot().Keys.Held < 16; i++ {
		require.Less(t, i, 16)
		k.Take(strconv.Itoa(i), 2)
	}
	return k
}

func TestKeyed_EvictLeastDebt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := filled(t, EvictLeastDebt)
		k.Refund("7", k.Take("7", 1)) // changes nothing
		for i := range 16 {
			if i != 7 {
				k.Take(strconv.Itoa(i), 1)
			}
		}
		assert.True(t, k.Allow("new"))
		assert.EqualValues(t, 1, k.Snapshot().Keys.Evicted)
		assert.EqualValues(t, 3, k.Peek("7", 0).Remaining(), "it had used the least")
		for i := range 16 {
			if i != 7 {
				assert.False(t, k.Allow(strconv.Itoa(i)), "and the others must still wait")
			}
		}
		time.Sleep(3 * time.Second)
		for i := range 16 {
			assert.True(t, k.Allow(fmt.Sprint("late ", i)))
		}
		assert.EqualValues(t, 1, k.Snapshot().Keys.Evicted, "they are full again, so nothing is lost")
		assert.EqualValues(t, 16, k.Snapshot().Keys.Held)
		assert.EqualValues(t, 33, k.Snapshot().Keys.Settled)
	})
}

func TestKeyed_DenyNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := filled(t, DenyNew)
		k.Take("7", 1)
		time.Sleep(time.Second)
		for range 100 {
			for _, d := range []Decision{k.Take("new", 1), k.Peek("new", 1), TakeAll(1, k.By("new")), k.Debit("new", 1)} {
				assert.False(t, d.OK())
				assert.Equal(t, time.Second, d.RetryAfter())
				assert.Equal(t, time.Second, d.ResetAfter())
				assert.Zero(t, d.Remaining())
				var limited *LimitError
				require.ErrorAs(t, d.Err(), &limited)
				assert.Equal(t, ReasonTooManyKeys, limited.Reason())
				require.ErrorIs(t, limited, ErrLimited)
			}
		}
		assert.True(t, k.Take("new", 4).Never())
		assert.EqualValues(t, 1, k.Peek("7", 0).Remaining())
		assert.EqualValues(t, 201, k.Snapshot().Keys.Denied)
		assert.EqualValues(t, 0, k.Snapshot().Refused.Limited)
		time.Sleep(time.Second - 1)
		assert.False(t, k.Allow("new"))
		time.Sleep(time.Nanosecond)
		assert.True(t, k.Allow("new"), "as it was promised")
		assert.EqualValues(t, 2, k.Peek("7", 0).Remaining(), "7 is not full yet")
	})
}

func TestKeyed_OverflowKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := filled(t, OverflowKey, WithKeyClass("gold", PerSecond(1), 9))
		first := k.Take("new 1", 1)
		assert.True(t, first.OK())
		assert.EqualValues(t, 2, first.Remaining())
		assert.EqualValues(t, 2, k.Peek("new 2", 0).Remaining(), "they share")
		assert.EqualValues(t, 9, k.Class("gold").Peek("new 2", 0).Remaining(), "but not with another class")
		k.Refund("new 1", first)
		assert.EqualValues(t, 3, k.Peek("new 3", 0).Remaining())
		assert.True(t, k.Take("new 4", 3).OK())
		assert.EqualValues(t, 0, k.Debit("new 4", 1).Remaining())
		d := k.Take("new 5", 1)
		assert.False(t, d.OK())
		assert.Equal(t, 2*time.Second, d.RetryAfter())
		var limited *LimitError
		require.ErrorAs(t, d.Err(), &limited)
		assert.Equal(t, ReasonTooManyKeys, limited.Reason())
		assert.EqualValues(t, 3, k.Snapshot().Keys.Shared)
		assert.EqualValues(t, 1, k.Snapshot().Refused.Limited)
		assert.EqualValues(t, 0, k.Snapshot().Keys.Evicted)

		time.Sleep(2 * time.Second)
		assert.EqualValues(t, 3, k.Peek("new 5", 0).Remaining(), "there is room again")
		assert.True(t, k.Take("new 5", 3).OK())
	})
}

// A client that is over its own limit must not use up what all share:
// https://github.com/symfony/symfony/pull/65796,
// https://github.com/milvus-io/milvus/issues/25597.
func TestScenario21_LayerOrderDrainsSharedQuota(t *testing.T) {
	perUser, perAPI := keyed(t, PerHour(1), WithBurst(1)), keyed(t, PerHour(100))
	global := sluice.Must(New("global", PerHour(10)))
	ask := func(user string) bool {
		return TakeAll(1, perUser.By(user), perAPI.By2("GET", "/orders"), global.Layer()).OK()
	}
	admitted := 0
	for range 20 {
		if ask("greedy") {
			admitted++
		}
	}
	assert.Equal(t, 1, admitted)
	for i := range 9 {
		assert.True(t, ask(fmt.Sprint("user ", i)))
	}
	assert.False(t, ask("one too many"))
	assert.True(t, perUser.Peek("one too many", 1).OK(), "it gets its own token back")
	assert.EqualValues(t, 90, perAPI.Peek2("GET", "/orders", 0).Remaining())
	d := TakeAll(1, perUser.By("another"), global.Layer())
	assert.Equal(t, "global", d.Resource())
	assert.Equal(t, "users", TakeAll(1, perUser.By("greedy")).Resource())
}

func TestKeyed_EveryComplaintAtOnce(t *testing.T) {
	_, err := NewKeyed("", Rate{}, WithBurst(0), WithMaxKeys(0), nil, WithWhenFull(9), WithTopRejected(-1),
		WithKeyClass("", PerSecond(1), 1), WithKeyClass("a", Rate{1, -7}, 1), WithKeyClass("a", PerSecond(1), 0), WithKeyedConfig(KeyedConfig{Rate: PerSecond(3)}))
	require.Error(t, err)
	for _, complaint := range []string{"name is empty", "option 2 is nil", "Rate 3/s of the configuration is not the 0/0s", "Rate.Tokens 0", "MaxKeys 0", "WhenFull 0"} {
		assert.ErrorContains(t, err, complaint)
	}
	_, err = NewKeyed("x", PerSecond(1), WithBurst(0), WithMaxDebt(-2), WithMaxKeys(0), WithWhenFull(9), WithTopRejected(-1),
		WithKeyClass("", PerSecond(1), 1), WithKeyClass("a", Rate{1, -7}, 1), WithKeyClass("a", PerSecond(1), 0))
	for _, complaint := range []string{
		"Burst 0 is less than 1", "MaxDebt -2 is less than 0", "MaxKeys 0 is not in [1, 100000000]", "WhenFull 9", "TopRejected -1",
		"Classes[0].Name is empty", "Classes[1].Rate", `Classes[2].Name "a" stands there twice`, "Classes[2].Burst 0",
	} {
		assert.ErrorContains(t, err, complaint)
	}
	_, err = NewKeyed("x", PerSecond(1), WithInitial(0), WithMaxWait(1), WithMaxWaiters(3))
	for _, option := range []string{"WithInitial", "WithMaxWait", "WithMaxWaiters"} {
		assert.ErrorContains(t, err, option+" means nothing to a Keyed")
	}
}
