package ratelimit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeyTable_Shape(t *testing.T) {
	assert.EqualValues(t, 16*keyWays, unsafe.Sizeof(keySet{}), "16 bytes a slot")
	for _, c := range []struct{ keys, pages, perPage int }{
		{1, 1, 2}, {12, 1, 2}, {13, 1, 4}, {26, 1, 8}, {100, 1, 16}, {204, 1, 32}, {205, 2, 32}, {1000, 5, 32}, {1 << 16, 320, 32},
	} {
		table := newKeyTable(c.keys)
		assert.Len(t, table.pages, c.pages, c.keys)
		assert.EqualValues(t, c.perPage, table.perPage, c.keys)
		assert.Len(t, table.sets, c.pages*c.perPage)
		assert.GreaterOrEqual(t, len(table.sets)*keyWays*4, c.keys*5, "a quarter more slots")
	}
}

func TestKeyTable_BothSetsAreOnThePageAndDiffer(t *testing.T) {
	for _, keys := range []int{1, 13, 100, 1000, 77_777} {
		table := newKeyTable(keys)
		used := map[*keySet]bool{}
		for range rounds(20_000, 4_000) {
			hash := rand.Uint64()
			page := table.of(int(table.page(hash)))
			on := func(s *keySet) bool {
				for i := range page {
					if s == &page[i] {
						return true
					}
				}
				return false
			}
			first, second := table.first(hash), table.second(hash)
			require.NotSame(t, first, second)
			require.True(t, on(first) && on(second))
			require.Same(t, &table.pages[table.page(hash)], table.lockOf(hash))
			used[first], used[second] = true, true
		}
		if keys <= 1000 {
			assert.Len(t, used, len(table.sets), "no set is left out")
		}
	}
}

func TestKeyTable_FindsWhatIsThere(t *testing.T) {
	var set keySet
	for i := range keyWays {
		set.key[i].Store(keyOf(someHash(i), 3))
	}
	for i := range keyWays {
		assert.Equal(t, i+1, set.index(keyOf(someHash(i), 3)))
		assert.Zero(t, set.index(keyOf(someHash(i), 4)), "by another rule")
		assert.Equal(t, i+1, set.search(someHash(i)), "by any rule")
		assert.Equal(t, i+1, set.search(someHash(i)^0x55), "which the lowest 8 bits do not matter for")
	}
	assert.Zero(t, set.index(keyOf(someHash(99), 3)))
	assert.Zero(t, set.search(someHash(99)))
	assert.Zero(t, new(keySet).search(0), "no key is there, not one whose hash is 0")
}

// A stranger who has come to the very same position between a look and the move gets
// back what was taken from him.
func TestKeySlot_AStrangerAtTheSamePosition(t *testing.T) {
	var spare spareSlot
	s, mine, stranger := spare.slot(), keyOf(someHash(1), 1), keyOf(someHash(2), 1)
	s.key.Store(mine)
	s.used.Store(1000)
	used, there := s.read(mine)
	require.True(t, there)
	require.EqualValues(t, 1000, used)

	s.key.Store(stranger)
	moved, there := s.move(mine, used, used+7)
	assert.False(t, moved)
	assert.False(t, there)
	assert.EqualValues(t, 1000, s.used.Load())
	_, there = s.read(mine)
	assert.False(t, there)

	moved, there = s.move(stranger, used-1, used+7)
	assert.False(t, moved, "somebody has taken since")
	assert.True(t, there)
	moved, _ = s.move(stranger, used, used+7)
	assert.True(t, moved)
}

// At 0.8 keys a slot, one key in a thousand finds all of its slots taken, which is what
// two sets of eight are for. (One set of eight would turn away 6.7 %, two of four 1.5 %.)
func TestKeyTable_HardlyAnyKeyFindsNoSlotAtTheLoadItIsMadeFor(t *testing.T) {
	keys := rounds(200_000, 20_000)
	for _, c := range []struct{ share, most float64 }{{1, 0.002}, {0.875, 0.0002}, {0.625, 0}} {
		k := keyed(t, PerHour(1), WithMaxKeys(keys))
		n, r := int(c.share*float64(keys)), rand.New(rand.NewPCG(1, 2))
		for range n {
			k.take(r.Uint64(), 1, 1000)
		}
		assert.LessOrEqual(t, float64(k.Snapshot().Keys.Evicted), c.most*float64(n), "with %d keys", n)
	}
}

// Users and routes, each with each, spread as well as anything else.
func TestKeyTable_KeysOfTwoPartsSpread(t *testing.T) {
	users, routes := rounds(1000, 100), 100
	k := keyed(t, PerHour(1), WithMaxKeys(users*routes))
	for user := range users {
		for route := range routes {
			k.Allow2(fmt.Sprint(user), fmt.Sprint(route))
		}
	}
	assert.LessOrEqual(t, k.Snapshot().Keys.Evicted, int64(users*routes/200))
	assert.EqualValues(t, users*routes, k.Snapshot().Keys.Settled, "no two were taken for one")
}
