package adaptive

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/slidingwindow"
)

// Every duration lies in its bucket, and a bucket is at most an eighth, or in the
// compact form a quarter, of what is in it.
func TestGrid_BucketsHoldWhatTheySay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, s := range []shape{fullShape, compactShape} {
		for _, longest := range []time.Duration{1, ms, time.Second, 5 * time.Second, time.Minute, day, math.MaxInt64 / 2} {
			g := newGrid(longest, s.octaves, s.shift)
			require.LessOrEqual(t, int(g.n), maxBuckets)
			last := int(g.n) - 1
			assert.Zero(t, g.index(-time.Second))
			assert.Zero(t, g.index(0))
			assert.Equal(t, last, g.index(math.MaxInt64))
			if longest > time.Microsecond {
				assert.Greater(t, g.upper(last), longest, "the longest that is of interest is told from what is longer")
				assert.Less(t, g.index(longest/4), g.index(longest))
			}
			for range 1000 {
				i := r.IntN(int(g.n))
				upper := g.upper(i)
				if upper <= 0 || i == last {
					continue // beyond the longest Duration
				}
				require.Equal(t, i, g.index(upper-1))
				require.Equal(t, i+1, g.index(upper))
				if i > 0 {
					lower := g.upper(i - 1)
					require.LessOrEqual(t, float64(upper-lower), float64(lower)/float64(int(1)<<s.shift)+1)
				}
			}
		}
	}
}

func TestGrid_MovedToAnother(t *testing.T) {
	small, large := newGrid(time.Second, 22, 3), newGrid(time.Minute, 22, 3)
	for _, d := range []time.Duration{50 * time.Microsecond, ms, 20 * ms, 999 * ms} {
		assert.Equal(t, large.index(d), small.moved(small.index(d), large))
		assert.Equal(t, small.index(d), large.moved(large.index(d), small))
	}
	assert.Equal(t, int(small.n)-1, large.moved(large.index(time.Minute), small))
	assert.Zero(t, small.moved(small.index(1), large))
}

// oracle is the Kaplan–Meier estimate as its definition has it, in fractions: the
// product over all times at which calls finished of the share that went on. A call
// that was cut off was still running when those of its own bucket finished.
func oracle(s *survey, q *big.Rat) (time.Duration, bool) {
	running := big.NewRat(1, 1)
	want := new(big.Rat).Sub(big.NewRat(1, 1), q)
	for i := range int(s.n) {
		if s.finished[i] == 0 {
			continue
		}
		atRisk := int64(0)
		for j := i; j < int(s.n); j++ {
			atRisk += int64(s.finished[j]) + int64(s.cut[j])
		}
		running.Mul(running, big.NewRat(atRisk-int64(s.finished[i]), atRisk))
		if running.Cmp(want) <= 0 {
			return s.upper(i), true
		}
	}
	return 0, false
}

// randomSurvey has so many calls, of which a share was cut off.
func randomSurvey(r *rand.Rand, calls int, cut float64) *survey {
	s := &survey{grid: newGrid(5*time.Second, 22, 3)}
	for range calls {
		d := time.Duration(float64(20*ms) * math.Exp(r.NormFloat64()))
		if r.Float64() < cut {
			s.cut[s.index(d)]++
		} else {
			s.finished[s.index(d)]++
		}
		s.calls++
	}
	s.survive()
	return s
}

func TestSurvey_QuantilesAreThoseOfTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	rounds := 300
	if brief() {
		rounds = 50
	}
	for range rounds {
		s := randomSurvey(r, 1+r.IntN(400), r.Float64()*r.Float64())
		for _, permille := range []int64{500, 900, 990, 999, r.Int64N(1000), 1000} {
			want, ok := oracle(s, big.NewRat(permille, 1000))
			got, known := s.quantile(float64(permille) / 1000)
			require.Equal(t, ok, known, permille)
			require.Equal(t, want, got, permille)
		}
	}
}

// And those that slidingwindow.Histogram has, which counts the same way.
func TestSurvey_QuantilesAreThoseOfAHistogram(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		h, err := slidingwindow.NewHistogram(8)
		require.NoError(t, err)
		s := &survey{grid: newGrid(5*time.Second, 22, 3)}
		for range 200 {
			d := time.Duration(float64(ms) * math.Exp(2*r.NormFloat64()))
			if s.calls++; r.IntN(4) == 0 {
				s.cut[s.index(d)]++
				h.RecordCensored(d)
			} else {
				s.finished[s.index(d)]++
				h.Record(d)
			}
		}
		s.survive()
		for _, q := range []float64{0.5, 0.9, 0.99, 1} {
			if got, known := s.quantile(q); known {
				require.Equal(t, h.Quantile(q), got)
			} else {
				require.Equal(t, time.Duration(math.MaxInt64), h.Quantile(q))
			}
		}
	}
}

// With calls that were cut off, the estimate finds the quantile of what there would
// have been; that of the calls which finished does not.
func TestSurvey_SeesThroughWhatWasCutOff(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	g := newGrid(5*time.Second, 22, 3)
	all, seen, blind := survey{grid: g}, survey{grid: g}, survey{grid: g}
	for range 20_000 {
		d := time.Duration(float64(20*ms) * math.Exp(r.NormFloat64()))
		all.finished[all.index(d)]++
		limit := 60 * ms
		if r.IntN(20) == 0 {
			limit = time.Second // a probe
		}
		if d <= limit {
			seen.finished[seen.index(d)]++
			blind.finished[blind.index(d)]++
			blind.calls++
		} else {
			seen.cut[seen.index(limit)]++
		}
		all.calls, seen.calls = all.calls+1, seen.calls+1
	}
	all.survive()
	seen.survive()
	blind.survive()
	for _, q := range []float64{0.5, 0.9, 0.99} {
		want, _ := all.quantile(q)
		got, ok := seen.quantile(q)
		require.True(t, ok)
		assert.InEpsilon(t, float64(want), float64(got), 0.15, q)
	}
	want, _ := all.quantile(0.99)
	got, _ := blind.quantile(0.99)
	assert.Less(t, float64(got), 0.8*float64(want))
}

// Where too few calls lie beyond the quantile asked for, the tail is extrapolated by a
// decade at most: exactly for a Pareto distribution, whose tail is as is assumed.
func TestSurvey_TailIsExtrapolatedByADecade(t *testing.T) {
	for _, calls := range []int{100, 1000, 9_999, 10_000, 100_000} {
		s := &survey{grid: newGrid(5*time.Second, 22, 3), calls: int64(calls)}
		for i := range calls {
			share := (float64(i) + 0.5) / float64(calls)
			s.finished[s.index(time.Duration(float64(ms)*math.Pow(1-share, -1/3.0)))]++
		}
		s.survive()
		got, ok := s.tail(0.001)
		require.True(t, ok)
		reach := max(0.001, 1/float64(calls)) // a decade beyond 10 / calls
		assert.InEpsilon(t, float64(ms)*math.Pow(reach, -1/3.0), float64(got), 0.3, calls)
	}
}

// Where so much may be cut off that there are calls enough, nothing is extrapolated.
func TestSurvey_TailOfALargeShareIsReadOff(t *testing.T) {
	s := randomSurvey(rand.New(rand.NewPCG(6, 6)), 50, 0)
	for _, eps := range []float64{0.2, 0.3, 0.5} {
		want, _ := s.quantile(1 - eps)
		got, ok := s.tail(eps)
		require.True(t, ok)
		assert.Equal(t, want, got)
	}
}

func TestSurvey_NothingIsKnownBeyondWhatWasLetRun(t *testing.T) {
	s := &survey{grid: newGrid(5*time.Second, 22, 3)}
	_, ok := s.quantile(0.5)
	assert.False(t, ok, "no calls")
	s.calls, s.cut[s.index(20*ms)] = 100, 100
	s.survive()
	_, ok = s.quantile(0.000001)
	assert.False(t, ok, "all cut off")
	_, ok = s.tail(0.001)
	assert.False(t, ok)
	s.calls, s.finished[s.index(ms)] = 200, 100
	s.survive()
	_, ok = s.quantile(0.5)
	assert.True(t, ok)
	_, ok = s.quantile(0.51)
	assert.False(t, ok)
}

func FuzzSurvey(f *testing.F) {
	f.Add([]byte{20, 0, 30, 1, 200, 1}, 0.5)
	f.Fuzz(func(t *testing.T, calls []byte, q float64) {
		if !(q >= 0 && q <= 1) {
			t.Skip("needs a quantile in [0, 1]: others are refused before")
		}
		s := &survey{grid: newGrid(5*time.Second, 22, 3)}
		for i := 0; i+1 < len(calls); i += 2 {
			if bucket := int(calls[i]) % int(s.n); calls[i+1]%2 == 0 {
				s.finished[bucket]++
			} else {
				s.cut[bucket]++
			}
			s.calls++
		}
		s.survive()
		// Within the rounding of q's own representation either side is right.
		got, ok := s.quantile(q)
		for _, near := range []float64{q, q - 1e-10, q + 1e-10} {
			if want, known := oracle(s, new(big.Rat).SetFloat64(near)); want == got && known == ok {
				return
			}
		}
		want, known := oracle(s, new(big.Rat).SetFloat64(q))
		t.Fatalf("quantile(%v) of %v = %v %v, want %v %v", q, calls, got, ok, want, known)
	})
}
