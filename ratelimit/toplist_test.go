package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

func TestTopRejected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keyed(t, PerHour(1), WithBurst(1), WithTopRejected(64))
		ask := func(n int, do func() bool) {
			for range n {
				do()
			}
		}
		ask(8, func() bool { return k.Allow("ann") })
		ask(4, func() bool { return k.Allow("bob") })
		ask(6, func() bool { return k.Allow2("cleo", "/pay") })
		ask(1, func() bool { return k.Allow("dan") })
		assert.Equal(t, []HotKey{{"ann", "", 7, 0}, {"cleo", "/pay", 5, 0}, {"bob", "", 3, 0}}, k.TopRejected(10))
		assert.Equal(t, []HotKey{{"ann", "", 7, 0}}, k.TopRejected(1))
		assert.Empty(t, k.TopRejected(0))
		assert.Empty(t, k.TopRejected(-1))
		assert.Equal(t, k.TopRejected(20), k.Snapshot().Top)
		assert.Empty(t, keyed(t, PerHour(1)).TopRejected(10))

		time.Sleep(time.Minute)
		assert.EqualValues(t, 3, k.TopRejected(1)[0].Refused, "half of 7")
		ask(4, func() bool { return k.Allow("bob") })
		assert.Equal(t, HotKey{"bob", "", 5, 0}, k.TopRejected(1)[0])
		time.Sleep(time.Hour)
		assert.Empty(t, k.TopRejected(10))
	})
}

// A Layer has the hash of its key only; a key that is refused again tells its name.
func TestTopRejected_OfLayers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, open := keyed(t, PerHour(1), WithBurst(1), WithTopRejected(8)), sluice.Must(New("open", PerHour(1000)))
		layer := k.By("ann")
		for range 3 {
			TakeAll(1, layer, open.Layer())
		}
		assert.Equal(t, []HotKey{{"", "", 2, 0}}, k.TopRejected(3))
		TakeAll(1, k.By("ann"))
		TakeAll(1, k.By2("bob", "/pay"))
		TakeAll(1, k.By2("bob", "/pay"))
		TakeAll(1, k.By2("bob", "/pay"))
		assert.Equal(t, []HotKey{{"ann", "", 3, 0}, {"bob", "/pay", 2, 0}}, k.TopRejected(3))
		time.Sleep(time.Minute)
		TakeAll(1, k.By("ann"))
		assert.Equal(t, []HotKey{{"ann", "", 2, 0}, {"bob", "/pay", 1, 0}}, k.TopRejected(3), "layers know what time it is")
	})
}

func TestTopRejected_LongNames(t *testing.T) {
	k := keyed(t, PerHour(1), WithBurst(1), WithTopRejected(80))
	long := strings.Repeat("x", 100)
	for _, key := range [][2]string{{long, "lost"}, {long[:60], "/payments"}, {"", long}} {
		k.Allow2(key[0], key[1])
		k.Allow2(key[0], key[1])
	}
	assert.ElementsMatch(t, []HotKey{{long[:64], "", 1, 0}, {long[:60], "/pay", 1, 0}, {"", long[:64], 1, 0}}, k.TopRejected(10))
}

// However many keys are refused, no count is too low, none is too high by more than it
// says, and who has more than an eighth of what his set has seen is in it.
func TestTopList_AgainstExactCounts(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 4))
		list := newTopList(32)
		zipf := rand.NewZipf(r, 1.1+r.Float64(), 1, 5000)
		exact, perSet := map[string]int64{}, map[*hotSet]int64{}
		hash := func(key string) uint64 { return uint64(len(key))*7919 + strHash(key) }
		for range 20_000 {
			key := fmt.Sprint("key ", zipf.Uint64())
			list.refused(hash(key), key, "", 1)
			exact[key]++
			perSet[list.setOf(hash(key))]++
		}
		listed := map[string]HotKey{}
		for _, h := range list.top(1000, 1) {
			require.LessOrEqual(t, exact[h.Key], h.Refused)
			require.GreaterOrEqual(t, exact[h.Key], h.Refused-h.Error)
			listed[h.Key] = h
		}
		require.Len(t, listed, 32)
		for key, n := range exact {
			if n > perSet[list.setOf(hash(key))]/hotWays {
				require.Contains(t, listed, key)
			}
		}
	}
}

func strHash(key string) (h uint64) {
	for _, c := range key {
		h = (h ^ uint64(c)) * 0x100000001B3
	}
	return h
}

// Nobody waits for the list, and what it counts is only less for it.
func TestTopList_NobodyWaits(t *testing.T) {
	list := newTopList(8)
	list.refused(1, "ann", "", 1)
	list.sets[0].mu.Lock()
	list.refused(1, "ann", "", 1)
	list.learn(1, "ann", "")
	list.sets[0].mu.Unlock()
	assert.EqualValues(t, 1, list.top(1, 1)[0].Refused)

	var all sync.WaitGroup
	for range racers {
		all.Go(func() {
			for i := range 1000 {
				list.refused(uint64(i%10), "", "", int64(i))
				list.meet(uint64(i%10), fmt.Sprint(i%10), "")
				if i%100 == 0 {
					list.top(3, int64(i))
				}
			}
		})
	}
	all.Wait()
	for _, h := range list.top(8, 1000) {
		assert.LessOrEqual(t, h.Refused, int64(1+racers*1000))
	}
}
