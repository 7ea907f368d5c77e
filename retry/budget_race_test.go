package retry

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Whatever goroutines do at once, no more is allowed than was promised, over any ten
// seconds, and no deposit or withdrawal is lost. They agree on the time in steps, so
// that what was promised at each is known.
func TestBudget_ConservationUnderConcurrency(t *testing.T) {
	const goroutines = 8
	b := budget(t)
	var calls, withdrawals []int64 // by step
	now := t0
	r := rand.New(rand.NewPCG(1, 2))
	for step := range rounds(400) {
		var allowed, made atomic.Int64
		var all sync.WaitGroup
		for range goroutines {
			seed := r.Uint64()
			all.Go(func() {
				mine := rand.New(rand.NewPCG(seed, 1))
				for range mine.IntN(60) {
					b.deposit(now)
					made.Add(1)
				}
				for range mine.IntN(30) {
					if b.withdraw(now) {
						allowed.Add(1)
						if mine.IntN(8) == 0 {
							b.giveBack(now)
							allowed.Add(-1)
						}
					}
				}
				for range mine.IntN(60) {
					b.deposit(now)
					made.Add(1)
				}
			})
		}
		all.Wait()
		calls, withdrawals = append(calls, made.Load()), append(withdrawals, allowed.Load())
		var c, w int64 // of ten seconds: 40 steps
		for i := max(0, step-39); i <= step; i++ {
			c, w = c+calls[i], w+withdrawals[i]
		}
		if allowed.Load() > 0 {
			require.LessOrEqual(t, float64(w), 10+0.1*float64(c), "step %d", step)
		}
		now += 250 * ms
	}
	var c, w int64
	for i := range calls {
		c, w = c+calls[i], w+withdrawals[i]
	}
	s := b.snapshot(now)
	assert.EqualValues(t, c, s.Deposits)
	assert.Equal(t, w, s.Withdrawals-s.Returned)
	assert.Greater(t, float64(w), 0.05*float64(c), "it was used")
}

// All ask at once for what there is: exactly that many get it.
func TestBudget_ExactUnderConcurrency(t *testing.T) {
	for round := range rounds(200) {
		b := budget(t, WithRatio(0.2))
		deposits(b, t0, 5*round)
		var got atomic.Int64
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { got.Add(int64(granted(b, t0, 40))) })
		}
		all.Wait()
		require.EqualValues(t, 10+round, got.Load())
	}
}

// Time that goroutines have read in one order may arrive in another. What is promised
// then holds for the latest.
func TestBudget_LateTimes(t *testing.T) {
	b := budget(t)
	var now, allowed atomic.Int64
	now.Store(t0)
	var all sync.WaitGroup
	for i := range uint64(4) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(i, 3))
			for range rounds(20_000) {
				at := now.Add(r.Int64N(int64(2 * time.Millisecond)))
				b.deposit(at)
				if b.withdraw(at) {
					allowed.Add(1)
				}
			}
		})
	}
	all.Wait()
	s := b.snapshot(now.Load())
	elapsed := time.Duration(now.Load() - t0)
	assert.LessOrEqual(t, float64(allowed.Load()), 0.1*float64(s.Deposits)+elapsed.Seconds()+11)
	assert.GreaterOrEqual(t, float64(allowed.Load()), 0.08*float64(s.Deposits))
}
