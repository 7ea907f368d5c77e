package roster

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A thing is what the tests keep: it can be busy, and knows when it was used.
type thing struct {
	member *Member[thing]
	busy   atomic.Int32
	used   atomic.Int64
}

func things(most int) *Roster[thing] {
	return New(most, Kind[thing]{
		Make: func(m *Member[thing], now int64) *thing {
			t := &thing{member: m}
			t.used.Store(now)
			return t
		},
		Idle:   func(t *thing, _ int64) bool { return t.busy.Load() == 0 },
		LastAt: func(t *thing, _ int64) int64 { return t.used.Load() },
	})
}

func (r *Roster[T]) has(key string) bool {
	for have := range r.All() {
		if have == key {
			return true
		}
	}
	return false
}

const second = int64(time.Second)

func TestRoster_OneObjectForEachKey(t *testing.T) {
	r := things(8)
	assert.Nil(t, r.Find("a"))
	a := r.Get("a", 1)
	require.NotNil(t, a)
	assert.Same(t, a, r.Get("a", 2))
	assert.NotSame(t, a, r.Get("b", 2))
	for r.Find("a") == nil {
		r.Get("a", 3) // misses pay for the next map
	}
	assert.Same(t, a, r.Find("a"))
	assert.Equal(t, 2, r.Len())
	assert.Len(t, r.Members(), 2)
	assert.Equal(t, "a", a.member.Key)
}

func TestRoster_TheLongestIdleGoesFirst(t *testing.T) {
	r := things(3)
	for i, key := range []string{"a", "b", "c"} {
		r.Get(key, int64(i))
	}
	r.Get("a", 10).used.Store(10)
	r.Get("b", 10).busy.Add(1)
	require.NotNil(t, r.Get("d", 11))
	assert.False(t, r.has("c"), "b was used before, but is busy")
	require.NotNil(t, r.Get("e", 12))
	assert.False(t, r.has("a"))
	assert.True(t, r.has("b"))
	assert.Equal(t, 3, r.Len())
}

// The list of the idle is of the last look. Who was used since does not go, however many
// new keys there are: what his object has learnt would be lost.
func TestRoster_WhoWasUsedSinceTheLookStays(t *testing.T) {
	r := things(3)
	for i, key := range []string{"a", "b", "c"} {
		r.Get(key, int64(i))
	}
	require.NotNil(t, r.Get("d", 10), "the look: a goes, b and c are next")
	require.False(t, r.has("a"))
	r.Get("b", 11).used.Store(11)
	require.NotNil(t, r.Get("e", 12))
	assert.True(t, r.has("b"))
	assert.False(t, r.has("c"))
}

func TestRoster_NoRoom(t *testing.T) {
	r := things(64)
	for i := range 64 {
		r.Get(fmt.Sprint(i), 1).busy.Add(1)
	}
	assert.Nil(t, r.Get("a", 1))
	r.Get("7", 1).busy.Add(-1)
	assert.Nil(t, r.Get("a", 2), "a full roster is not searched all the time")
	assert.NotNil(t, r.Get("a", 2+second))
	assert.False(t, r.has("7"))
	r.Get("9", 2+second).busy.Add(-1)
	asked := 0
	for r.Get("b", 3+second) == nil {
		asked++
	}
	assert.Equal(t, 64/8, asked, "but when enough have asked")
}

func TestRoster_OwnIsNotLetGo(t *testing.T) {
	r := things(1)
	r.Get("a", 1).member.Own.Store(true)
	assert.Nil(t, r.Get("b", 1))
}

// While somebody has an object that was let go, it is its key's, and comes back when
// it is needed.
func TestRoster_AnObjectInUseIsItsKeys(t *testing.T) {
	r := things(1)
	a := r.Get("a", 1)
	r.Get("b", 2)
	require.False(t, r.has("a"))
	runtime.GC()
	assert.Same(t, a, r.Get("a", 3), "there was room for it: b is idle")
	assert.True(t, r.has("a"))
	r.Get("c", 4)
	require.False(t, r.has("a"))
	r.Get("c", 4).busy.Add(1)
	assert.Same(t, a, r.Get("a", 5+second))
	require.False(t, r.has("a"), "no room")
	a.busy.Add(1)
	a.member.Needed(a)
	assert.True(t, r.has("a"))
	assert.Equal(t, 2, r.Len(), "one too many, until one can go")
	(*Member[thing])(nil).Needed(a)
}

// Whoever makes an object busy while it is being let go has it kept: either it sees
// that it was let go, or the roster sees that it is busy.
func TestRoster_BusyWhileItIsLetGo(t *testing.T) {
	looks := 0
	r := New(1, Kind[thing]{
		Make:   func(m *Member[thing], _ int64) *thing { return &thing{member: m} },
		Idle:   func(*thing, int64) bool { looks++; return looks <= 2 }, // in the list, and when it is to go
		LastAt: func(*thing, int64) int64 { return 0 },
	})
	a := r.Get("a", 1)
	assert.Nil(t, r.Get("b", 1))
	assert.True(t, r.has("a"))
	assert.Same(t, a, r.Get("a", 1))
}

// A key whose object nobody has is forgotten, and so is no memory for it kept.
func TestRoster_Forgets(t *testing.T) {
	r := things(1)
	for i := range 100 {
		r.Get(fmt.Sprint(i), int64(i)*second)
	}
	require.Eventually(t, func() bool {
		runtime.GC()
		return len(r.Members()) == 1
	}, time.Minute, time.Millisecond)
	runtime.KeepAlive(r)
}

// Find needs nothing.
func TestRoster_FindAllocatesNothing(t *testing.T) {
	r := things(100)
	for range 100 {
		for i := range 100 {
			r.Get(fmt.Sprint(i), 1)
		}
	}
	require.NotNil(t, r.Find("57"))
	assert.Zero(t, testing.AllocsPerRun(100, func() { r.Find("57") }))
}

// Many goroutines, keys that come and go and objects that get busy: nobody gets
// another object of a key while he has one, and no busy one is lost.
func TestRoster_Race(t *testing.T) {
	rounds := 6_000
	if testing.Short() {
		rounds = 1_000
	}
	const goroutines, keys, most = 8, 24, 8
	r := things(most)
	var now atomic.Int64
	var wg sync.WaitGroup
	for i := range uint64(goroutines) {
		wg.Go(func() {
			draw := rand.New(rand.NewPCG(i, 1))
			for range rounds {
				key := fmt.Sprint(draw.IntN(keys))
				have := r.Find(key)
				if have == nil {
					have = r.Get(key, now.Add(second/100))
				}
				if have == nil {
					continue
				}
				if draw.IntN(4) == 0 {
					have.busy.Add(1)
					have.member.Needed(have)
					if !r.has(key) {
						t.Errorf("%s is busy and was let go", key)
					}
					have.busy.Add(-1)
				}
				if again := r.Get(key, now.Add(second/100)); again != nil && again != have {
					t.Errorf("%s has two objects", key)
				}
				runtime.KeepAlive(have)
			}
		})
	}
	wg.Wait()
	assert.LessOrEqual(t, r.Len(), most+goroutines)
}

// A key that a caller puts together on his stack stays there.
func TestRoster_KeysDoNotEscape(t *testing.T) {
	r := things(8)
	key := []byte("a/b")
	r.Get(string(key), 1)
	for r.Find("a/b") == nil {
		r.Get("a/b", 1)
	}
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		if r.Find(string(key)) != r.Get(string(key), 1) {
			t.Error("not the same")
		}
	}))
	key[0] = 'c'
	for name, thing := range r.All() {
		assert.Equal(t, "a/b", name)
		assert.Equal(t, "a/b", thing.member.Key)
	}
}

// Whatever is spread at once, all objects have the last word in the end, and there is
// one.
func TestSpread_TheNewestHasTheLastWord(t *testing.T) {
	var current, given atomic.Pointer[int]
	for range 2000 {
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() { Spread(&current, &i, func(c *int) { given.Store(c) }) })
		}
		all.Wait()
		require.Same(t, current.Load(), given.Load())
	}
}

func TestRoster_Living(t *testing.T) {
	r := things(1)
	a := r.Get("a", 1)
	require.NotNil(t, r.Get("b", 2), "a is let go")
	var living []string
	for key := range r.Living() {
		living = append(living, key)
	}
	assert.ElementsMatch(t, []string{"a", "b"}, living)
	for range r.Living() {
		break
	}
	runtime.KeepAlive(a)
}
