package bulkhead

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// rounds is n, or less if the tests are to be short or the race detector is on,
// which takes ten times as long.
func rounds(n int) int {
	if testing.Short() {
		return n / 50
	}
	return n / slowdown
}

// A million calls that are admitted, refused, time out and are cancelled, all at
// once, leave no place taken and none lost, and nobody waits for ever.
func TestConservation(t *testing.T) {
	const goroutines, limit = 8, 4
	b := build(t, limit, WithConfig(Config{
		Limit: limit, MaxQueue: 6, MaxWait: 40 * time.Microsecond, Order: AdaptiveLIFO, Aging: 10 * time.Microsecond,
		CoDelTarget: 20 * time.Microsecond, CoDelInterval: 100 * time.Microsecond,
	}))
	chain := sluice.Chain(b)
	var inside, admitted, refused, gone atomic.Int64
	inCall := func(n int) {
		if in := inside.Add(int64(n)); in > limit {
			t.Errorf("%d of %d places are taken", in, limit)
		}
		inside.Add(-int64(n))
	}
	n := rounds(1_000_000) / goroutines
	var wg sync.WaitGroup
	for i := range uint64(goroutines) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(i, 1))
			for range n {
				ctx, cancel := context.Context(t.Context()), context.CancelFunc(func() {})
				switch r.IntN(8) {
				case 0:
					ctx, cancel = context.WithCancel(ctx)
					go cancel()
				case 1:
					ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(30_000)))
				case 2:
					ctx = sluice.WithPriority(ctx, sluice.Priority(r.IntN(3)-1))
				case 3:
					if i == 0 {
						require.NoError(t, b.SetLimit(2+r.IntN(limit-1)))
					}
				}
				var p Permit
				var err error
				size := 1
				switch r.IntN(8) {
				case 0:
					p, err = b.TryAcquire(ctx)
				case 1:
					size = 2
					p, err = b.AcquireN(ctx, size)
				case 2:
					err = b.Do(ctx, func(context.Context) error { inCall(1); return nil })
					size = 0
				case 3:
					err = chain.Do(ctx, func(context.Context) error { inCall(1); return nil })
					size = 0
				default:
					p, err = b.Acquire(ctx)
				}
				switch {
				case err == nil:
					admitted.Add(1)
					if size > 0 {
						inCall(size)
						p.Close()
					}
				case ctx.Err() != nil && err == ctx.Err():
					gone.Add(1)
				default:
					refused.Add(1)
					if full, ok := err.(*FullError); !ok || full.reason == refusedClosed || full.reason == refusedCapacity {
						t.Errorf("unexpected error %v", err)
					}
				}
				p.Close()
				cancel()
			}
		})
	}
	wg.Wait()

	require.NoError(t, b.SetLimit(limit))
	s := b.Snapshot()
	assert.Zero(t, s.InFlight)
	assert.Zero(t, s.Waiting)
	assert.Equal(t, admitted.Load(), s.Totals.Admitted)
	assert.Equal(t, refused.Load(), s.Refused.Full+s.Refused.QueueFull+s.Refused.MaxWait)
	assert.Equal(t, int64(goroutines*n), admitted.Load()+refused.Load()+gone.Load())
	assert.LessOrEqual(t, s.Totals.GaveUp, gone.Load())
	p, err := b.TryAcquireN(t.Context(), limit)
	require.NoError(t, err, "all of it is there")
	p.Close()
}
