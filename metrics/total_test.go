package metrics

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTotalNeverGoesDown(t *testing.T) {
	var total Total
	for _, step := range []struct{ sum, want uint64 }{
		{0, 0}, {10, 10}, {7, 10}, {10, 10}, {11, 11}, {0, 11}, {1 << 63, 1 << 63},
	} {
		assert.Equal(t, step.want, total.Report(step.sum))
	}
}

// Buckets retire while others collect: no reader ever sees the counter fall, and
// at rest it is what was counted.
func TestTotalOfPartsThatMove(t *testing.T) {
	const events = 20_000
	var retired, live atomic.Uint64
	var total Total
	var all sync.WaitGroup
	all.Go(func() {
		for i := range events {
			live.Add(1)
			if i%3 == 0 { // from one part to the other, in two steps
				n := live.Swap(0)
				retired.Add(n)
			}
		}
	})
	for range 3 {
		all.Go(func() {
			last := uint64(0)
			for range 2_000 {
				sum := retired.Load()
				got := total.Report(sum + live.Load())
				if got < last || got > events {
					t.Errorf("%d after %d", got, last)
				}
				last = got
			}
		})
	}
	all.Wait()
	assert.EqualValues(t, events, total.Report(retired.Load()+live.Load()))
}
