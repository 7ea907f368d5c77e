package slidingwindow

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func FuzzCounts(f *testing.F) {
	seed(f)
	f.Fuzz(playCounts)
}

func FuzzLeapArray(f *testing.F) {
	seed(f)
	f.Fuzz(playLeapArray)
}

func FuzzRing(f *testing.F) {
	seed(f)
	f.Fuzz(playRing)
}

func FuzzHistogram(f *testing.F) {
	seed(f)
	f.Fuzz(playHistogram)
}

// TestT29_CountersNeverDriftNorGoNegative is the story of the resilience4j window
// that reported −2682 slow failed calls, and of the reset that forgot one field:
// after any sequence of operations every counter is what an oracle that kept
// every event says.
//
// https://github.com/resilience4j/resilience4j/issues/1017
// https://github.com/resilience4j/resilience4j/issues/1263
// https://github.com/resilience4j/resilience4j/issues/1342
func TestT29_CountersNeverDriftNorGoNegative(t *testing.T) {
	runs := 100
	if testing.Short() {
		runs = 10
	}
	for _, c := range []struct {
		name string
		play func(*testing.T, []byte)
	}{
		{"Counts", playCounts},
		{"LeapArray", playLeapArray},
		{"Ring", playRing},
		{"Histogram", playHistogram},
	} {
		t.Run(c.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(29, 0))
			for run := range runs {
				data := make([]byte, 1+random.IntN(1000))
				for i := range data {
					data[i] = byte(random.Uint32())
				}
				c.play(t, data)
				if t.Failed() {
					t.Fatalf("in run %d", run)
				}
			}
		})
	}
}

// seed gives the fuzzer a short, a long and a monotonous script.
func seed(f *testing.F) {
	f.Add([]byte{2, 0, 1, 14, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 3})
	f.Add([]byte("ten buckets of one second cover between nine and ten seconds of calls"))
	f.Add(slices.Repeat([]byte{6, 1}, 100))
}

// playCounts lets the script record calls, in time and late, and compares every
// sum with the ledger's.
func playCounts(t *testing.T, data []byte) {
	s := script(data)
	buckets, width := 1+s.next()%7, int64(10)
	var totals Totals
	c, err := NewCountsInto(&totals, time.Duration(buckets*width), int(buckets))
	require.NoError(t, err)
	l := &ledger{buckets: buckets, width: width}

	for now := 1 + s.next(); len(s) > 0; {
		now += s.gap(width, buckets)
		do := s.next()
		switch e := Event(do % 8); {
		case do >= 240: // only look
		case do >= 200: // a writer that was held up
			at := max(0, now-s.gap(width, buckets))
			c.RecordAt(at, e)
			l.record(at, e, 1)
		case do >= 184: // so many that the next bucket is a spread one
			for range 2 * busyCalls {
				c.RecordAt(now, e)
			}
			l.record(now, e, 2*busyCalls)
		default:
			c.RecordAt(now, e)
			l.record(now, e, 1)
		}
		got := c.SumAt(now)
		checkSums(t, got)
		require.Equal(t, sums(l.live(now)), got, "at %d", now)
		for _, at := range []int64{now + s.gap(width, buckets), max(0, now-s.gap(width, buckets))} {
			require.Equal(t, sums(l.live(at)), c.SumAt(at), "looking from %d at %d", now, at)
		}
	}
	c.Retire()
	require.Equal(t, sums(l.entries), totals.Sums(), "every record ends in the totals, once")
}

// playLeapArray does the same for a LeapArray, bucket by bucket.
func playLeapArray(t *testing.T, data []byte) {
	s := script(data)
	buckets, width := 1+s.next()%7, int64(10)
	a, err := New[atomic.Int64](time.Duration(buckets*width), int(buckets))
	require.NoError(t, err)
	l := &ledger{buckets: buckets, width: width}

	type row struct{ start, count int64 }
	var got, want []row
	look := func(at int64) {
		got, want = got[:0], want[:0]
		for start, n := range a.AllAt(at) {
			got = append(got, row{start, n.Load()})
		}
		count := map[int64]int64{}
		for _, e := range l.live(at) {
			count[e.bucket*width]++
		}
		for start, n := range count {
			want = append(want, row{start, n})
		}
		slices.SortFunc(want, func(a, b row) int { return int(a.start - b.start) })
		require.Equal(t, want, got, "at %d", at)
	}
	for now := 1 + s.next(); len(s) > 0; {
		now += s.gap(width, buckets)
		at := now
		if do := s.next(); do >= 200 { // a writer that was held up
			at = max(0, now-s.gap(width, buckets))
		}
		cell := a.At(at)
		if at/width <= l.newest-buckets {
			require.Zero(t, cell.Load(), "a whole span late: an empty T")
		}
		cell.Add(1)
		l.record(at, 0, 1)
		look(now)
		look(now + s.gap(width, buckets))
		look(max(0, now-s.gap(width, buckets)))
	}
}

// playRing compares a Ring with a slice of the last n outcomes.
func playRing(t *testing.T, data []byte) {
	s := script(data)
	n := int(1 + s.next()%20)
	r, err := NewRing(n)
	require.NoError(t, err)
	var last []entry
	for len(s) > 0 {
		e := Event(s.next() % 8)
		r.Record(e)
		if e&(NoVerdict|Slow) != NoVerdict {
			last = append(last, entry{event: e, times: 1})
			last = last[max(0, len(last)-n):]
		}
		got := r.Sum()
		checkSums(t, got)
		require.Equal(t, sums(last), got)
	}
}

// playHistogram compares the quantiles of a Histogram with those of all durations
// in order, and those with calls cut off with Efron's way to the same estimate.
func playHistogram(t *testing.T, data []byte) {
	s := script(data)
	subBuckets := int(8 << (s.next() % 2))
	h, err := NewHistogram(subBuckets)
	require.NoError(t, err)
	part, err := NewHistogram(subBuckets)
	require.NoError(t, err)

	var finished, cut []time.Duration
	cutting := s.next()%2 == 0
	for len(s) > 0 {
		into := h
		how := s.next()
		if how&1 != 0 {
			into = part // merged in below
		}
		var raw [8]byte
		for i := range raw {
			raw[i] = byte(s.next())
		}
		// Any magnitude is as likely as any other, also below and above the range.
		d := time.Duration(binary.LittleEndian.Uint64(raw[:])>>1) >> (how / 2 % 63)
		if cutting && how >= 192 {
			into.RecordCensored(d)
			cut = append(cut, d)
			continue
		}
		into.Record(d)
		finished = append(finished, d)
	}
	require.NoError(t, h.Merge(part))
	require.EqualValues(t, len(finished), h.Count())
	require.EqualValues(t, len(cut), h.Censored())

	qs := []float64{0, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1}
	if len(cut) > 0 {
		checkEfron(t, h, finished, cut, qs)
		return
	}
	slices.Sort(finished)
	for _, q := range qs {
		got := h.Quantile(q)
		if len(finished) == 0 {
			require.Zero(t, got)
			continue
		}
		// The smallest rank with rank/n ≥ q, in integers.
		n, perMille := len(finished), int(q*1000+0.5)
		rank := max(1, (perMille*n+999)/1000)
		exact := min(max(finished[rank-1], 1<<minBits), 1<<maxBits-1)
		assert.Greater(t, got, exact, "q %v of %d", q, n)
		assert.LessOrEqual(t, got-exact, exact/time.Duration(subBuckets)+1, "q %v of %d: got %v for %v", q, n, got, exact)
	}
}

// checkEfron holds Quantile against the other definition of the Kaplan–Meier
// estimate: from short to long, each call that was cut off leaves its weight to
// all longer ones in equal parts. Within a bucket calls finish before others are
// cut off.
func checkEfron(t *testing.T, h *Histogram, finished, cut []time.Duration, qs []float64) {
	type call struct {
		bucket int
		cut    bool
	}
	var calls []call
	for _, d := range finished {
		calls = append(calls, call{h.index(d), false})
	}
	for _, d := range cut {
		calls = append(calls, call{h.index(d), true})
	}
	slices.SortFunc(calls, func(a, b call) int {
		switch {
		case a.bucket != b.bucket:
			return a.bucket - b.bucket
		case a.cut == b.cut:
			return 0
		case b.cut:
			return -1
		}
		return 1
	})
	weight := make([]float64, len(calls))
	upTo := map[time.Duration]float64{} // share finished by the end of each bucket
	var share float64
	for i := range weight {
		weight[i] += 1 / float64(len(calls))
		if calls[i].cut {
			longer := weight[i+1:]
			for j := range longer {
				longer[j] += weight[i] / float64(len(longer))
			}
			continue
		}
		share += weight[i]
		upTo[h.upper(calls[i].bucket)] = share
	}
	const rounding = 1e-9
	for _, q := range qs {
		got := h.Quantile(q)
		if got == longest {
			assert.Less(t, share, q+rounding, "q %v", q)
			continue
		}
		require.Contains(t, upTo, got, "q %v is the end of a bucket in which a call finished", q)
		assert.GreaterOrEqual(t, upTo[got], q-rounding, "q %v reached by %v", q, got)
		for upper, s := range upTo {
			if upper < got {
				assert.Less(t, s, q+rounding, "q %v not reached before %v", q, got)
			}
		}
	}
}

// longest is what Quantile says when nobody knows.
const longest = time.Duration(1<<63 - 1)

// checkSums holds what must be true of any Sums, at rest or not.
func checkSums(t *testing.T, s Sums) {
	t.Helper()
	assert.GreaterOrEqual(t, min(s.Total, s.Failures, s.Slow, s.GaveUp), int64(0), "%+v", s)
	assert.LessOrEqual(t, max(s.Failures, s.Slow), s.Total, "%+v", s)
}
