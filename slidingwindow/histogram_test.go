package slidingwindow

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const ms = time.Millisecond

func newHistogram(t *testing.T, subBuckets int, finished ...time.Duration) *Histogram {
	h, err := NewHistogram(subBuckets)
	require.NoError(t, err)
	for _, d := range finished {
		h.Record(d)
	}
	return h
}

func TestAHistogramHasEightOrSixteenSubBuckets(t *testing.T) {
	for n, want := range map[int]string{
		0:  "slidingwindow: subBuckets 0 is neither 8 nor 16",
		4:  "slidingwindow: subBuckets 4 is neither 8 nor 16",
		-8: "slidingwindow: subBuckets -8 is neither 8 nor 16",
		32: "slidingwindow: subBuckets 32 is neither 8 nor 16",
	} {
		h, err := NewHistogram(n)
		assert.EqualError(t, err, want)
		assert.Nil(t, h)
	}
	assert.Len(t, newHistogram(t, 8).finished, 208)
	assert.Len(t, newHistogram(t, 16).finished, 416)
}

// Every bucket begins where the one before it ends, none is wider than 1/8 or
// 1/16 of where it begins, and what lies at its edges falls into it.
func TestBucketsLieEndToEnd(t *testing.T) {
	for _, subBuckets := range []int{8, 16} {
		h := newHistogram(t, subBuckets)
		lower := time.Duration(1 << minBits)
		for i := range h.finished {
			upper := h.upper(i)
			require.Greater(t, upper, lower)
			require.LessOrEqual(t, upper-lower, lower/time.Duration(subBuckets))
			require.Equal(t, i, h.index(lower))
			require.Equal(t, i, h.index(upper-1))
			lower = upper
		}
		assert.Equal(t, time.Duration(1<<maxBits), lower)
	}
}

func TestWhatIsOutOfRangeGoesToTheEndBuckets(t *testing.T) {
	for d, want := range map[time.Duration]time.Duration{
		math.MinInt64:    1152,
		-1:               1152,
		0:                1152,
		1023:             1152,
		1151:             1152,
		68 * time.Second: 1 << maxBits,
		70 * time.Second: 1 << maxBits,
		math.MaxInt64:    1 << maxBits,
	} {
		assert.Equal(t, want, newHistogram(t, 8, d).Quantile(0.5), "%d ns", d)
	}
}

func TestQuantiles(t *testing.T) {
	var hundred []time.Duration
	for i := range 100 {
		hundred = append(hundred, time.Duration(i+1)*ms)
	}
	h := newHistogram(t, 16, hundred...)
	for q, exact := range map[float64]time.Duration{
		0:            1 * ms,
		0.001:        1 * ms,
		0.01:         1 * ms,
		0.07:         7 * ms, // 0.07 × 100 is a little more than 7
		0.5:          50 * ms,
		0.99:         99 * ms,
		1:            100 * ms,
		-3:           1 * ms,
		2:            100 * ms,
		math.Inf(-1): 1 * ms,
		math.Inf(1):  100 * ms,
	} {
		assert.Equal(t, h.upper(h.index(exact)), h.Quantile(q), "q %v", q)
	}
	assert.Zero(t, h.Quantile(math.NaN()))
	assert.Zero(t, newHistogram(t, 8).Quantile(0.5), "no call yet")
}

// Ten calls of 10 ms, and ten that a limit of 20 ms cut off: leaving those out
// would say that 10 ms is enough for all.
func TestQuantilesOfCallsThatWereCutOff(t *testing.T) {
	h := newHistogram(t, 8, slices.Repeat([]time.Duration{10 * ms}, 10)...)
	ten := h.Quantile(1)
	for range 10 {
		h.RecordCensored(20 * ms)
	}
	assert.EqualValues(t, 10, h.Count())
	assert.EqualValues(t, 10, h.Censored())
	assert.Equal(t, ten, h.Quantile(0.5), "half of them finish within 10 ms")
	assert.Equal(t, time.Duration(math.MaxInt64), h.Quantile(0.51), "longer than anything that was let run")

	// One that was let run to its end speaks for all that were cut off before it.
	h.Record(50 * ms)
	assert.Equal(t, h.upper(h.index(50*ms)), h.Quantile(0.51))
	assert.Equal(t, h.upper(h.index(50*ms)), h.Quantile(1))

	// A call that was cut off early says nothing about the others.
	early := newHistogram(t, 8, 10*ms, 20*ms)
	early.RecordCensored(ms)
	assert.Equal(t, ten, early.Quantile(0.5))

	alone := newHistogram(t, 8)
	alone.RecordCensored(ms)
	assert.Equal(t, time.Duration(math.MaxInt64), alone.Quantile(0))
}

func TestMergingHistograms(t *testing.T) {
	a, b := newHistogram(t, 8, ms, 2*ms), newHistogram(t, 8, 2*ms, time.Second)
	b.RecordCensored(3 * time.Second)
	require.NoError(t, a.Merge(b))
	want := []HistogramBucket{
		{Upper: a.upper(a.index(ms)), Finished: 1},
		{Upper: a.upper(a.index(2 * ms)), Finished: 2},
		{Upper: a.upper(a.index(time.Second)), Finished: 1},
		{Upper: a.upper(a.index(3 * time.Second)), Cut: 1},
	}
	assert.Equal(t, want, slices.Collect(a.All()))
	assert.EqualValues(t, 2, b.Count(), "the other one stays as it is")
	for bucket := range a.All() {
		assert.Equal(t, want[0], bucket, "a loop may stop")
		break
	}

	err := a.Merge(newHistogram(t, 16))
	assert.EqualError(t, err, "slidingwindow: a histogram of 16 sub-buckets cannot be merged into one of 8")
}
