package slidingwindow

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// crowd runs write in several goroutines, each with its own random numbers, and
// read in another one until they are done.
func crowd(t *testing.T, write func(random *rand.Rand), read func()) {
	const writers = 4
	perWriter := 20_000
	if testing.Short() {
		perWriter = 2_000
	}
	var writing, reading sync.WaitGroup
	var over atomic.Bool
	for w := range writers {
		writing.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			for range perWriter {
				write(random)
			}
		})
	}
	reading.Go(func() {
		for !over.Load() {
			read()
		}
	})
	writing.Wait()
	over.Store(true)
	reading.Wait()
	read()
}

// Many writers at any times within one span: whoever makes the buckets, every
// record is in the bucket of its own time.
func TestALeapArrayLosesNothingAmongManyWriters(t *testing.T) {
	const buckets, width = 64, 100
	a, err := New[atomic.Int64](buckets*width, buckets)
	require.NoError(t, err)
	var want [buckets]atomic.Int64
	last := int64(0)
	crowd(t, func(random *rand.Rand) {
		at := random.Int64N(buckets * width)
		a.At(at).Add(1)
		want[at/width].Add(1)
	}, func() {
		var n int64
		for _, cell := range a.AllAt(buckets*width - 1) {
			n += cell.Load()
		}
		assert.GreaterOrEqual(t, n, last, "nothing expires")
		last = n
	})
	for start, n := range a.AllAt(buckets*width - 1) {
		assert.Equal(t, want[start/width].Load(), n.Load(), "bucket of %d", start)
	}
}

// Writers whose clocks differ by more than the span roll the ring all the time;
// what has left it and what is in it are all there was.
func TestCountsLoseNothingAmongManyWriters(t *testing.T) {
	const buckets, width = 3, 100
	var totals Totals
	c, err := NewCountsInto(&totals, buckets*width, buckets)
	require.NoError(t, err)
	var clock, calls, failures, slow, gaveUp atomic.Int64
	crowd(t, func(random *rand.Rand) {
		now := clock.Add(random.Int64N(width / 4))
		if random.IntN(4) == 0 {
			now = max(0, now-random.Int64N(2*buckets*width))
		}
		e := Event(random.IntN(8))
		c.RecordAt(now, e)
		switch s := sums([]entry{{event: e, times: 1}}); {
		case s.GaveUp > 0:
			gaveUp.Add(1)
		default:
			calls.Add(s.Total)
			failures.Add(s.Failures)
			slow.Add(s.Slow)
		}
	}, func() {
		checkSums(t, c.SumAt(clock.Load()))
		checkSums(t, totals.Sums())
	})
	c.Retire()
	want := Sums{Total: calls.Load(), Failures: failures.Load(), Slow: slow.Load(), GaveUp: gaveUp.Load()}
	assert.Equal(t, want, totals.Sums())
}

// A bucket leaves the ring of two while somebody still adds to it: the record is
// in the totals all the same, once.
func TestARecordIntoALeavingBucketReachesTheTotals(t *testing.T) {
	const width = 10
	var totals Totals
	c, err := NewCountsInto(&totals, 2*width, 2)
	require.NoError(t, err)
	duel(duelRounds(5_000), func(me int, round int64) {
		now := 3 * round * width
		if me == 0 {
			c.RecordAt(now, Failed)
			return
		}
		for i := range int64(3) {
			c.RecordAt(now+i*width, Slow)
		}
	}, func(round int64) {
		held := c.SumAt((3*round + 2) * width).Plus(totals.Sums())
		assert.Equal(t, Sums{Total: 4 * round, Failures: round, Slow: 3 * round}, held, "round %d", round)
	})
}

// Small rings, so that the writers lap one another: at rest the totals are what
// the slots hold, and at no time does a reader see what cannot be.
func TestARingsTotalsEqualItsSlots(t *testing.T) {
	for _, n := range []int{1, 2, 3, 100} {
		r, err := NewRing(n)
		require.NoError(t, err)
		crowd(t, func(random *rand.Rand) {
			r.Record(Event(random.IntN(8)))
		}, func() {
			s := r.Sum()
			checkSums(t, s)
			assert.LessOrEqual(t, s.Total+s.GaveUp, int64(n))
		})
		var slots uint64
		for i := range r.slots {
			slots += r.slots[i].Load()
		}
		assert.Equal(t, slots, r.totals.Load(), "ring of %d", n)
		assert.Equal(t, int64(n), r.Sum().Total+r.Sum().GaveUp, "the ring is full")
	}
}

// Two records, with one slot between them: each takes out exactly what it finds.
func TestTwoRecordsALapApartOnOneSlot(t *testing.T) {
	r, err := NewRing(1)
	require.NoError(t, err)
	duel(duelRounds(5_000), func(me int, _ int64) {
		r.Record(Event(me) * Failed)
		checkSums(t, r.Sum())
	}, func(round int64) {
		assert.Equal(t, r.slots[0].Load(), r.totals.Load(), "round %d", round)
	})
}

// duelRounds is n, or a tenth of it for a short test.
func duelRounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

func TestAHistogramCountsEveryCallOnce(t *testing.T) {
	h, whole := newHistogram(t, 8), newHistogram(t, 8)
	var finished, cut atomic.Int64
	last := int64(0)
	crowd(t, func(random *rand.Rand) {
		d := time.Duration(random.Int64N(int64(time.Second)))
		if random.IntN(3) == 0 {
			h.RecordCensored(d)
			cut.Add(1)
		} else {
			h.Record(d)
			finished.Add(1)
		}
	}, func() {
		n := h.Count() + h.Censored()
		assert.GreaterOrEqual(t, n, last, "counts never go down")
		last = n
		if n > 0 {
			assert.Positive(t, h.Quantile(0.9))
		}
	})
	require.NoError(t, whole.Merge(h))
	assert.Equal(t, finished.Load(), whole.Count())
	assert.Equal(t, cut.Load(), whole.Censored())
}

// The first two calls that are cut off may meet over making their counts.
func TestTheFirstCallsThatAreCutOffAreNotLost(t *testing.T) {
	h := newHistogram(t, 8)
	duel(duelRounds(5_000), func(int, int64) {
		h.RecordCensored(time.Second)
	}, func(round int64) {
		assert.EqualValues(t, 2, h.Censored(), "round %d", round)
		h = newHistogram(t, 8)
	})
}
