package slidingwindow

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAWindowRefusesAShapeThatDoesNotDivide(t *testing.T) {
	for _, c := range []struct {
		span    time.Duration
		buckets int
		want    string
	}{
		{10 * time.Second, 3, "slidingwindow: span 10s is not a multiple of 3 buckets"},
		{5, 10, "slidingwindow: span 5ns is not a multiple of 10 buckets"},
		{0, 10, "slidingwindow: span 0s is not positive"},
		{-time.Second, 10, "slidingwindow: span -1s is not positive"},
		{time.Second, 0, "slidingwindow: buckets 0 is not in [1, 10000]"},
		{time.Second, -1, "slidingwindow: buckets -1 is not in [1, 10000]"},
		{time.Second, 10_001, "slidingwindow: buckets 10001 is not in [1, 10000]"},
		{-1, 0, "slidingwindow: span -1ns is not positive\nslidingwindow: buckets 0 is not in [1, 10000]"},
	} {
		a, err := New[atomic.Int64](c.span, c.buckets)
		assert.EqualError(t, err, c.want)
		assert.Nil(t, a)
		counts, err := NewCounts(c.span, c.buckets)
		assert.EqualError(t, err, c.want)
		assert.Nil(t, counts)
	}
	for _, buckets := range []int{1, 2, 10_000} {
		_, err := New[atomic.Int64](time.Second, buckets)
		assert.NoError(t, err)
		_, err = NewCounts(time.Second, buckets)
		assert.NoError(t, err)
	}
}

// row is one bucket as All yields it.
type row struct{ start, count int64 }

func rows(a *LeapArray[atomic.Int64], now int64) []row {
	var all []row
	for start, n := range a.AllAt(now) {
		all = append(all, row{start, n.Load()})
	}
	return all
}

func TestALeapArrayStepByStep(t *testing.T) {
	a, err := New[atomic.Int64](30, 3) // buckets of 10 ns
	require.NoError(t, err)
	for i, step := range []struct {
		at   int64
		add  bool
		want []row // at that time
	}{
		{at: -25, want: nil},
		{at: 5, want: nil},
		{at: 5, add: true, want: []row{{0, 1}}},
		{at: 9, add: true, want: []row{{0, 2}}},
		{at: 10, want: []row{{0, 2}}},
		{at: 10, add: true, want: []row{{0, 2}, {10, 1}}},
		{at: 3, add: true, want: []row{{0, 3}, {10, 1}}}, // late, and part of the window
		{at: 29, add: true, want: []row{{0, 3}, {10, 1}, {20, 1}}},
		{at: 30, want: []row{{10, 1}, {20, 1}}}, // a reader alone expires 0
		{at: 20, want: []row{{0, 3}, {10, 1}, {20, 1}}},
		{at: 30, add: true, want: []row{{10, 1}, {20, 1}, {30, 1}}},
		{at: 20, want: []row{{10, 1}, {20, 1}, {30, 1}}},           // time does not run backwards
		{at: 9, add: true, want: []row{{10, 1}, {20, 1}, {30, 1}}}, // a whole span late
		{at: 49, want: []row{{20, 1}, {30, 1}}},
		{at: 50, want: []row{{30, 1}}},
		{at: 60, want: nil},
		{at: 1_000_005, want: nil},
		{at: 1_000_005, add: true, want: []row{{1_000_000, 1}}}, // after a long idle
		{at: 31, add: true, want: []row{{1_000_000, 1}}},
		{at: -7, add: true, want: []row{{1_000_000, 1}}}, // below 0 counts as 0
		{at: 1<<63 - 1, want: nil},
		{at: 1<<63 - 1, add: true, want: []row{{1<<63 - 8, 1}}},
		{at: 1_000_005, want: []row{{1<<63 - 8, 1}}},
	} {
		if step.add {
			a.At(step.at).Add(1)
		}
		assert.Equal(t, step.want, rows(a, step.at), "step %d at %d", i, step.at)
	}
}

func TestATimeAWholeSpanLateGetsAnEmptyT(t *testing.T) {
	a, err := New[atomic.Int64](30, 3)
	require.NoError(t, err)
	a.At(31).Add(1)
	for range 2 {
		late := a.At(9)
		assert.Zero(t, late.Load())
		late.Add(1)
	}
	assert.Equal(t, []row{{30, 1}}, rows(a, 31))
}

// A writer that was held up between At and its add counts in its own old bucket,
// even when a whole ring has gone by: it changes no newer one.
func TestALateAddStaysInItsOwnSpan(t *testing.T) {
	a, err := New[atomic.Int64](30, 3)
	require.NoError(t, err)
	held := a.At(5)
	a.At(15).Add(1)
	held.Add(1)
	assert.Equal(t, []row{{0, 1}, {10, 1}}, rows(a, 15))
	a.At(35).Add(1) // takes the slot
	held.Add(1)
	assert.Equal(t, []row{{10, 1}, {30, 1}}, rows(a, 35))
}

// With one slot for the bucket to come and the bucket to go, a reader of the old
// time must not take the new bucket for the old one.
func TestAReaderLeavesOutWhatAWriterReplacedMeanwhile(t *testing.T) {
	a, err := New[atomic.Int64](30, 3)
	require.NoError(t, err)
	for _, at := range []int64{5, 15, 25} {
		a.At(at).Add(1)
	}
	var got []int64
	for start := range a.AllAt(25) {
		got = append(got, start)
		if start == 0 {
			a.At(45).Add(1) // replaces 10, the next one
		}
	}
	assert.Equal(t, []int64{0, 20}, got)
}

func TestALoopOverBucketsMayStop(t *testing.T) {
	a, err := New[atomic.Int64](30, 3)
	require.NoError(t, err)
	a.At(5).Add(1)
	a.At(15).Add(1)
	for start := range a.AllAt(15) {
		assert.Zero(t, start, "the first is the oldest")
		break
	}
}

// Nobody records any more, and the windows empty by themselves.
func TestReadersExpireBucketsWithoutTraffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const width = time.Second
		a, err := New[atomic.Int64](3*width, 3)
		require.NoError(t, err)
		c, err := NewCounts(3*width, 3)
		require.NoError(t, err)
		total := func() (n int64) {
			for _, cell := range a.All() {
				n += cell.Load()
			}
			return n
		}
		time.Sleep(width - time.Duration(Now()%int64(width))) // to the start of a bucket
		for range 3 {
			a.Current().Add(1)
			c.Record(Failed)
			time.Sleep(width)
		}
		for left := int64(2); left >= 0; left-- {
			assert.Equal(t, left, total())
			assert.Equal(t, Sums{Total: left, Failures: left}, c.Sum())
			time.Sleep(width - 1)
			assert.Equal(t, left, total(), "to the last nanosecond of a bucket")
			assert.Equal(t, left, c.Sum().Total)
			time.Sleep(time.Nanosecond)
		}
	})
}
