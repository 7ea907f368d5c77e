package waitq

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Whatever happens at the same time, no more places are taken than there are, none
// is lost, and everybody hears what became of him.
func TestSemaphore_Conservation(t *testing.T) {
	const goroutines, most = 8, 5
	rounds := 4_000
	if testing.Short() {
		rounds = 800
	}
	for name, p := range map[string]Policy{
		"FIFO":       {MaxQueue: 4, MaxWait: math.MaxInt64},
		"short":      {MaxQueue: 8, MaxWait: 5 * time.Microsecond},
		"everything": {MaxQueue: 4, MaxWait: time.Millisecond, Newest: true, Aging: time.Microsecond, Target: time.Microsecond, Shares: [Classes]int{Whole / 4, 0, Whole / 2}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			now := func() int64 { return int64(time.Since(start)) + 1 }
			s := NewSemaphore(most, p, now)
			var inside, admitted, ended atomic.Int64
			var wg sync.WaitGroup
			for i := range uint64(goroutines) {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(i, 3))
					for range rounds {
						n, class := 1+r.IntN(2), r.IntN(Classes)
						ctx, cancel := context.WithCancel(t.Context())
						switch r.IntN(8) {
						case 0:
							go cancel()
						case 1:
							ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(10_000)))
						case 2:
							if i == 0 {
								s.Update(2+r.IntN(most-1), p) // never too small for anybody
							}
						}
						ok := s.TryAcquire(n)
						if !ok {
							var v Verdict
							_, v = s.Wait(ctx, n, class, now())
							ok = v == Admitted
						}
						if ok {
							admitted.Add(1)
							if in := inside.Add(int64(n)); in > most {
								t.Errorf("%d of %d places are taken", in, most)
							}
							inside.Add(-int64(n))
							s.Release(n)
						}
						ended.Add(1)
						cancel()
					}
				})
			}
			wg.Wait()
			assert.EqualValues(t, goroutines*rounds, ended.Load())
			assert.EqualValues(t, admitted.Load(), s.Totals().Admitted)
			assert.Zero(t, s.word.Load()&(one-1), "no place is taken, and nobody waits")
			s.Update(most, p)
			assert.True(t, s.TryAcquire(most), "all of it is there")
		})
	}
}
