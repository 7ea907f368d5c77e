package notify

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An owner decides the order of its events under its lock, as a breaker does.
type owner struct {
	mu     sync.Mutex
	last   int
	events Queue[int]
}

func (o *owner) step(f func(int)) {
	o.mu.Lock()
	o.last++
	o.events.Push(o.last)
	o.mu.Unlock()
	o.events.Deliver(f, nil)
}

// run has n goroutines take each steps of their own.
func run(n, each int, step func()) {
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for range each {
				step()
			}
		})
	}
	all.Wait()
}

func TestOrderAmongSixteenGoroutines(t *testing.T) {
	const goroutines, each = 16, 2000
	var o owner
	var got []int                        // no lock: the queue calls one listener at a time
	room := make(chan struct{}, Limit/2) // so few wait that none is dropped
	run(goroutines, each, func() {
		room <- struct{}{}
		o.step(func(v int) {
			got = append(got, v)
			<-room
		})
	})
	require.Len(t, got, goroutines*each)
	for i, v := range got {
		require.Equal(t, i+1, v)
	}
	assert.Zero(t, o.events.Dropped())
}

func TestEveryEventArrivesOrIsCounted(t *testing.T) {
	const goroutines, each = 16, 2000
	var o owner
	arrived, last := 0, 0
	run(goroutines, each, func() {
		o.step(func(v int) {
			if v <= last {
				t.Errorf("%d arrived after %d", v, last)
			}
			arrived, last = arrived+1, v
			if v%500 == 0 {
				panic("a listener fails now and then")
			}
		})
	})
	assert.EqualValues(t, goroutines*each, uint64(arrived)+o.events.Dropped())
	assert.Equal(t, o.last, last, "the newest is never the one dropped")
}
