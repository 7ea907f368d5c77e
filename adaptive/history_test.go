package adaptive

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// newHistory is one of ten windows of a second and ten sheets of half a minute.
func newHistory(now int64) *history {
	h := new(history)
	h.form(fullShape, 5*time.Second, 10*time.Second, 5*time.Minute, now)
	return h
}

// ledger is the obvious history: it keeps every call and counts by looking. It is
// right where there are calls in every second.
type ledger []Sample

const second = int64(time.Second)

// of is the calls of second i, and whether more timed out than finished.
func (l ledger) of(i int64) (calls []Sample, timedOut int, down bool) {
	finished := 0
	for _, s := range l {
		if s.At/second != i {
			continue
		}
		calls = append(calls, s)
		switch s.End {
		case Finished:
			finished++
		case TimedOut:
			timedOut++
		}
	}
	return calls, timedOut, timedOut > finished
}

// outage reports whether second i is in a row of seconds in each of which more calls
// timed out than finished, at least three in all.
func (l ledger) outage(i int64) bool {
	_, row, down := l.of(i)
	if !down {
		return false
	}
	for _, step := range []int64{-1, 1} {
		for j := i + step; ; j += step {
			_, n, down := l.of(j)
			if !down {
				break
			}
			row += n
		}
	}
	return row >= 3
}

// spoilt reports whether calls timed out in second i, and an outage is near.
func (l ledger) spoilt(i int64) bool {
	_, timedOut, _ := l.of(i)
	for j := i - 3; timedOut > 0 && j <= i+3; j++ {
		if l.outage(j) {
			return true
		}
	}
	return false
}

// survey is what a history should say at now, in which all of l has happened.
func (l ledger) survey(now, enough int64) *survey {
	s := &survey{grid: newGrid(5*time.Second, 22, 3)}
	add := func(calls []Sample) {
		for _, c := range calls {
			s.calls++
			switch c.End {
			case Finished:
				s.finished[s.index(c.Took)]++
			case TimedOut:
				s.cut[s.index(c.Limit)]++
				s.timedOut++
			default:
				s.cut[s.index(c.Took)]++
			}
		}
	}
	last := now / second
	for i := last - 9; i <= last; i++ {
		if now-i*second < 4*second || !l.spoilt(i) {
			calls, _, _ := l.of(i)
			add(calls)
		}
	}
	typical := s.typical()
	for sheet := last / 30; sheet > last/30-10 && s.calls < enough; sheet-- {
		page := &survey{grid: s.grid}
		*page, *s = *s, *page // count the page by itself
		for i := sheet * 30; i < sheet*30+30 && i < last-9; i++ {
			if calls, _, _ := l.of(i); !l.spoilt(i) {
				add(calls)
			}
		}
		*page, *s = *s, *page
		if typical > 0 && page.typical() > 2*typical {
			break
		}
		s.calls, s.timedOut = s.calls+page.calls, s.timedOut+page.timedOut
		for i := range s.finished {
			s.finished[i] += page.finished[i]
			s.cut[i] += page.cut[i]
		}
	}
	return s
}

// Whatever happens to the dependency, a history says what the ledger does.
func TestHistory_IsTheLedgers(t *testing.T) {
	seconds := 350
	if brief() {
		seconds = 150
	}
	for seed := range uint64(4) {
		r := rand.New(rand.NewPCG(seed, 5))
		h, now := newHistory(t0), t0
		var l ledger
		took, bad := 20*ms, 0.05
		for i := range seconds {
			if r.IntN(15) == 0 { // another time begins
				took = []time.Duration{5 * ms, 20 * ms, 300 * ms}[r.IntN(3)]
				bad = []float64{0, 0.05, 0.5, 1}[r.IntN(4)]
			}
			var due []int64
			for range 1 + r.IntN(6) {
				due = append(due, r.Int64N(second))
			}
			for _, after := range due {
				s := Sample{At: now + after, Took: time.Duration(float64(took) * (0.5 + r.Float64())), Limit: 400 * ms, End: Finished}
				switch {
				case r.Float64() < bad:
					s.End, s.Took = TimedOut, s.Limit
				case r.IntN(20) == 0:
					s.End = CutShort
				}
				l = append(l, s)
				h.record(s)
			}
			now += second
			if r.IntN(5) == 0 || i == seconds-1 {
				var got survey
				enough := []int64{1, 100, 1 << 40}[r.IntN(3)]
				h.survey(now-1, enough, &got)
				want := l.survey(now-1, enough)
				require.Equal(t, want.calls, got.calls, "seed %d, second %d", seed, i)
				require.Equal(t, want.timedOut, got.timedOut)
				require.Equal(t, want.finished, got.finished)
				require.Equal(t, want.cut, got.cut)
			}
		}
		finished := 0
		for _, s := range l {
			if s.End == Finished {
				finished++
			}
		}
		assert.EqualValues(t, finished, h.finished(), "none is lost from the total")
	}
}

// Of calls at the same time as the roll of windows, none is lost and none counted
// twice.
func TestHistory_LosesNothingAtTheRoll(t *testing.T) {
	const goroutines = 8
	h, now := newHistory(t0), t0
	rounds, each := 40, 500
	if testing.Short() {
		rounds = 15
	}
	for round := range rounds {
		var all sync.WaitGroup
		for g := range goroutines {
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(round), uint64(g)))
				for i := range each {
					end := Finished
					if i%5 == 0 {
						end = TimedOut
					}
					h.record(Sample{At: now + r.Int64N(2*second), Took: time.Duration(r.Int64N(int64(time.Second))), Limit: time.Second, End: end})
					if i%100 == 0 {
						var s survey
						h.survey(now, 1<<40, &s)
					}
				}
			})
		}
		all.Wait()
		now += second
		assert.EqualValues(t, (round+1)*goroutines*each*4/5, h.finished())
	}
	var s survey
	h.survey(now, 1<<40, &s)
	assert.EqualValues(t, rounds*goroutines*each, s.calls)
	assert.EqualValues(t, rounds*goroutines*each/5, s.timedOut)
}

// After a change of Max, windows of both grids are read as one.
func TestHistory_AnotherGridKeepsWhatThereIs(t *testing.T) {
	h := newHistory(t0)
	record := func(at int64, took time.Duration) { h.record(Sample{At: at, Took: took, Limit: took, End: Finished}) }
	for i := range int64(100) {
		record(t0+i*second, 20*ms)
	}
	h.regrid(time.Minute)
	for i := range int64(100) {
		record(t0+(100+i)*second, 30*time.Second)
	}
	var s survey
	h.survey(t0+199*second, 1<<40, &s)
	s.survive()
	assert.EqualValues(t, 200, s.calls)
	half, _ := s.quantile(0.5)
	most, _ := s.quantile(1)
	assert.InEpsilon(t, float64(20*ms), float64(half), 0.13)
	assert.InEpsilon(t, float64(30*time.Second), float64(most), 0.13)
}

// A history that nobody adds to ends by itself.
func TestHistory_OldCallsAreForgotten(t *testing.T) {
	h := newHistory(t0)
	for range 100 {
		h.record(Sample{At: t0, Took: ms, Limit: ms, End: Finished})
	}
	known := func(after time.Duration) int64 {
		h.record(Sample{At: at(after), Took: ms, Limit: ms, End: Finished})
		var s survey
		h.survey(at(after), 1<<40, &s)
		return s.calls - 1
	}
	assert.EqualValues(t, 100, known(time.Minute))
	assert.GreaterOrEqual(t, known(269*time.Second), int64(100))
	assert.Less(t, known(301*time.Second), int64(100))
	assert.Zero(t, known(time.Hour))
}

// A call that ends while somebody looks at the windows does not wait for that.
func TestHistory_NobodyWaits(t *testing.T) {
	h := newHistory(t0)
	h.mu.Lock()
	h.record(Sample{At: at(time.Minute), Took: ms, Limit: ms, End: Finished}) // its window is yet to be made
	h.mu.Unlock()
	assert.EqualValues(t, 1, h.finished())
}

// Counts that are full stay full.
func TestHistory_CountsDoNotWrap(t *testing.T) {
	h := newHistory(t0)
	for i := range time.Duration(3) {
		h.newest.Load().finished[7].Store(math.MaxUint32 - 10)
		h.record(Sample{At: at(i * time.Second), Took: h.grid.upper(7) - 1, Limit: time.Hour, End: Finished})
	}
	h.record(Sample{At: at(20 * time.Second), Took: time.Second, Limit: time.Hour, End: Finished})
	var s survey
	h.survey(at(20*time.Second), 1<<40, &s)
	assert.Equal(t, uint32(math.MaxUint32), s.finished[7])
	s.calls = math.MaxUint32 + 1
	s.survive()
	typical, ok := s.quantile(0.9)
	assert.True(t, ok)
	assert.Equal(t, h.grid.upper(7), typical)
}
