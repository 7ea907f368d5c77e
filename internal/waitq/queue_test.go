package waitq

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A desk is a Queue of numbered entries.
type desk struct {
	Queue[int]
	entries []*Entry[int]
}

func newDesk(p Policy) *desk {
	d := new(desk)
	d.SetPolicy(p)
	return d
}

// push queues the next number, from 0, and returns which one has to leave, -1 for none.
func (d *desk) push(class int, now int64) int {
	e := &Entry[int]{Owner: len(d.entries)}
	d.entries = append(d.entries, e)
	if out := d.Push(e, class, now); out != nil {
		return out.Owner
	}
	return -1
}

// serve serves whoever is next, and returns its number, -1 for none.
func (d *desk) serve(now int64) int {
	e := d.Next(now)
	if e == nil {
		return -1
	}
	d.Serve(e)
	return e.Owner
}

func (d *desk) serveAll(now int64) []int {
	var order []int
	for d.Len() > 0 {
		order = append(order, d.serve(now))
	}
	return order
}

const none = -1

func TestQueue_FIFO(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 3})
	for i := range int64(3) {
		require.Equal(t, none, d.push(1, i))
	}
	require.Equal(t, 3, d.push(1, 3), "full: the one that comes is out")
	require.Equal(t, 0, d.serve(4))
	require.Equal(t, none, d.push(1, 5))
	d.Remove(d.entries[2])
	assert.Equal(t, []int{1, 4}, d.serveAll(9))
	assert.Equal(t, none, d.serve(10))
}

func TestQueue_TheZeroQueueLetsNobodyWait(t *testing.T) {
	var d desk
	assert.Equal(t, 0, d.push(0, 1))
	assert.Zero(t, d.Open())
	d.SetPolicy(Policy{Newest: true, Aging: time.Second, Shares: [Classes]int{Whole, 0, 0}})
	assert.Equal(t, 1, d.push(0, 1))
	assert.Zero(t, d.Open())
}

func TestQueue_Deadlines(t *testing.T) {
	for name, c := range map[string]struct {
		policy Policy
		want   int64
	}{
		"the usual":         {Policy{MaxWait: 50}, 150},
		"at once":           {Policy{}, 100},
		"none":              {Policy{MaxWait: math.MaxInt64}, Never},
		"calm":              {Policy{MaxWait: 50, Target: 5, Interval: 1}, 150},
		"in overload":       {Policy{MaxWait: 50, Target: 5}, 105},
		"a shorter MaxWait": {Policy{MaxWait: 3, Target: 5}, 103},
	} {
		t.Run(name, func(t *testing.T) {
			c.policy.MaxQueue = 2
			d := newDesk(c.policy)
			d.push(0, 100)
			e := new(Entry[int])
			require.Nil(t, d.Push(e, 0, 100))
			assert.Equal(t, c.want, e.Deadline())
			assert.EqualValues(t, 100, e.At())
			assert.True(t, e.Queued())
		})
	}
}

// It is overload when the queue has not been empty for the whole interval.
func TestQueue_Overload(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 10, Interval: 100})
	assert.False(t, d.Overloaded(1000), "it is empty")
	d.push(1, 1000)
	assert.False(t, d.Overloaded(1099))
	d.push(1, 1050)
	d.serve(1060)
	assert.True(t, d.Overloaded(1100), "the second was there before the first had gone")
	d.serve(1110)
	assert.False(t, d.Overloaded(1200))
	d.push(1, 1200)
	assert.False(t, d.Overloaded(1200), "a new beginning")
}

func TestQueue_NewestFirstInOverloadOnly(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 10, Newest: true, Interval: 100})
	for i := range int64(5) {
		d.push(1, i)
	}
	assert.Equal(t, 0, d.serve(99))
	assert.Equal(t, 4, d.serve(100))
	d.push(1, 101)
	assert.Equal(t, []int{5, 3, 2, 1}, d.serveAll(102))
}

// When the newest go first and there is no room, whoever has waited longest is
// served last, so it leaves at once instead of in vain later.
func TestQueue_TheOldestLeavesAFullQueueInOverload(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 2, Newest: true, Interval: 100})
	d.push(1, 0)
	d.push(1, 1)
	assert.Equal(t, 2, d.push(1, 99), "calm")
	assert.Equal(t, 0, d.push(1, 100))
	assert.Equal(t, 1, d.push(1, 101))
	assert.Equal(t, []int{4, 3}, d.serveAll(102))

	one := newDesk(Policy{MaxQueue: 1, Newest: true, Interval: 100})
	for i := range int64(10) {
		one.push(1, 50*i)
	}
	assert.True(t, one.Overloaded(500), "somebody was there all the time")
}

// An entry goes before one of a better class if it has waited for longer than the
// aging, for each class between them.
func TestQueue_Aging(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 10, Aging: 100})
	d.push(2, 0)   // 0, counts as of 200
	d.push(1, 50)  // 1, as of 150
	d.push(0, 150) // 2: not later than 1, and the better class
	d.push(0, 199) // 3
	d.push(0, 200) // 4: not later than 0
	d.push(0, 201) // 5
	assert.Equal(t, []int{2, 1, 3, 4, 0, 5}, d.serveAll(201))
}

func TestQueue_WithoutAgingClassesDoNotMatter(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 3})
	d.push(2, 0)
	d.push(0, 1)
	d.push(1, 2)
	assert.Equal(t, 3, d.push(0, 3))
	assert.Equal(t, []int{0, 1, 2}, d.serveAll(4))
}

func TestQueue_AVeryLongAgingIsStrictPriority(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 9, Aging: math.MaxInt64})
	for i, class := range []int{2, 1, 0, 2, 1, 0} {
		d.push(class, math.MaxInt64/4+int64(i))
	}
	assert.Equal(t, []int{2, 5, 1, 4, 0, 3}, d.serveAll(math.MaxInt64/4+10))
}

// A full queue gives up the one that would be served last, and only to one that
// would be served before it.
func TestQueue_TheBetterClassTakesARoom(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 3, Aging: 100})
	d.push(2, 0)
	d.push(1, 10)
	d.push(1, 20)
	assert.EqualValues(t, 0b011, d.Open(), "class 2 has nobody to replace")
	assert.Equal(t, 3, d.push(2, 30), "the same class is served later")
	assert.Equal(t, 0, d.push(1, 40), "0 counts as of 200, this as of 140")
	assert.EqualValues(t, 0b001, d.Open())
	assert.Equal(t, 4, d.push(0, 50))
	assert.Equal(t, 6, d.push(0, 120), "what is left of class 1 counts as of 120 or less")
	assert.Equal(t, 2, d.push(0, 119))
	assert.Equal(t, []int{5, 1, 7}, d.serveAll(119))
}

// What comes by the same instant, or by a reading of the clock that was taken a
// moment before, does not push out its equal.
func TestQueue_EqualsDoNotDisplaceEachOther(t *testing.T) {
	for _, newest := range []bool{false, true} {
		d := newDesk(Policy{MaxQueue: 1, Aging: 100, Newest: newest, Interval: 1000})
		d.push(1, 10)
		assert.Equal(t, 1, d.push(1, 10))
		assert.Equal(t, 2, d.push(1, 5))
	}
}

// Under a flood of the best class every other gets its share, soon, and no more.
func TestQueue_Shares(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 100, Aging: math.MaxInt64, Shares: [Classes]int{0, 300_000, 200_000}})
	var served [Classes]int
	for i := range 1000 {
		for class := range Classes {
			for d.lines[class].n < 10 {
				d.push(class, int64(i))
			}
		}
		e := d.Next(int64(i))
		served[e.class]++
		d.Serve(e)
		for class, share := range []float64{0.5, 0.3, 0.2} {
			assert.InDelta(t, share*float64(i+1), served[class], Classes, "class %d after %d", class, i+1)
		}
	}
}

// One that comes late gets its turn after as many as its share says.
func TestQueue_ShareOfASingleEntry(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 100, Aging: math.MaxInt64, Shares: [Classes]int{0, 0, 100_000}})
	for range 50 {
		d.push(0, 0)
	}
	d.push(2, 0)
	for i := range 10 {
		require.Equal(t, i, d.serve(1))
	}
	assert.Equal(t, 50, d.serve(1))
}

// Shares of the queue are kept too, or a flood of the better would leave nobody to
// claim a share of what is served.
func TestQueue_RoomIsKeptForShares(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 10, Aging: math.MaxInt64, Shares: [Classes]int{500_000, 300_000, 200_000}})
	for i := range int64(10) {
		require.Equal(t, none, d.push(2, i))
	}
	assert.EqualValues(t, 0b011, d.Open())
	outs := map[int]bool{}
	for i := range int64(20) {
		outs[d.push(0, 20+i)] = true
	}
	assert.Equal(t, 2, d.lines[2].n, "its share stays")
	assert.Equal(t, 8, d.lines[0].n, "what nobody claims goes to the best")
	assert.Len(t, outs, 8+12)
	assert.EqualValues(t, 0b010, d.Open(), "class 0 has more than is kept for it, class 2 no less")
	for i := range int64(3) {
		out := d.push(1, 50+i)
		assert.EqualValues(t, 0, d.entries[out].class, "it is over its share, however important")
	}
	assert.Zero(t, d.Open(), "each has its share")
	assert.Equal(t, len(d.entries), d.push(0, 60))
}

func TestQueue_ALiveChangeKeepsWhoWaits(t *testing.T) {
	d := newDesk(Policy{MaxQueue: 5, MaxWait: 50})
	for i := range int64(5) {
		d.push(1, i)
	}
	d.SetPolicy(Policy{MaxQueue: 2, MaxWait: 5, Newest: true})
	assert.Equal(t, 5, d.Len())
	assert.EqualValues(t, 52, d.entries[2].Deadline())
	assert.Equal(t, 4, d.serve(10))
	d.SetPolicy(Policy{})
	assert.Equal(t, []int{0, 1, 2, 3}, d.serveAll(11))
}
