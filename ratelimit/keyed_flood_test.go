package ratelimit

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A limiter for each address must not take more memory for each address that an
// attacker makes up: https://github.com/didip/tollbooth/issues/30,
// https://github.com/didip/tollbooth/issues/32,
// https://github.com/boinkor-net/governor/issues/171,
// https://github.com/vavallee/bindery/issues/2137. And it must not forget who is over
// its limit.
func TestScenario28_UnboundedKeys(t *testing.T) {
	table, keys := 1<<16, 10_000_000
	switch {
	case raceEnabled: // there is nothing to race
		table, keys = 1<<12, 20_000
	case testing.Short():
		keys = 300_000
	}
	for _, policy := range []WhenFull{DenyNew, EvictLeastDebt, OverflowKey} {
		t.Run(policy.String(), func(t *testing.T) {
			if policy != DenyNew {
				keys = min(keys, 1_000_000)
			}
			heap := inUse()
			k := keyed(t, PerDay(10), WithMaxKeys(table), WithWhenFull(policy))
			for range 11 {
				k.Allow("greedy")
			}
			require.False(t, k.Allow("greedy"))
			key := append(make([]byte, 0, 32), "2001:db8::"...)
			for i := range keys {
				k.Allow(string(strconv.AppendInt(key, int64(i), 16)))
			}
			assert.Less(t, inUse()-heap, int64(2<<20))
			s := k.Snapshot()
			assert.False(t, k.Allow("greedy"), "it is over its limit still")
			assert.EqualValues(t, keys+12, s.Totals.Admitted+s.Refused.Limited+s.Keys.Denied)
			if policy == EvictLeastDebt {
				assert.Equal(t, s.Keys.Settled, s.Keys.Held+s.Keys.Evicted)
				assert.EqualValues(t, keys+1, s.Keys.Settled)
				assert.EqualValues(t, keys+10, s.Totals.Admitted, "nobody else is refused")
				return
			}
			assert.Zero(t, s.Keys.Evicted)
			assert.Equal(t, s.Keys.Settled, s.Keys.Held)
			assert.Greater(t, s.Keys.Held, int64(table))
			if policy == OverflowKey {
				assert.EqualValues(t, s.Keys.Held-1+10+10, s.Totals.Admitted, "a burst for all the others together")
			}
			runtime.KeepAlive(k)
		})
	}
}

// inUse is the heap in bytes after a collection.
func inUse() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A flood of keys that are used once pushes out its own like, and none that has used
// more.
func TestKeyed_AFloodPushesOutItsOwn(t *testing.T) {
	k := keyed(t, PerDay(100), WithMaxKeys(1000))
	for i := range 100 {
		assert.True(t, k.Take(fmt.Sprint("busy ", i), 90).OK())
	}
	for i := range rounds(100_000, 10_000) {
		k.Allow(fmt.Sprint("flood ", i))
	}
	for i := range 100 {
		assert.EqualValues(t, 10, k.Peek(fmt.Sprint("busy ", i), 0).Remaining())
	}
	assert.Positive(t, k.Snapshot().Keys.Evicted)
}
