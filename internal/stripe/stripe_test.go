package stripe

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// All goroutines live at once, so that no two share a stack.
func TestIndex_IsInRangeAndSpreadsGoroutines(t *testing.T) {
	const goroutines = 1024
	var seen [goroutines]int
	var arrived, done sync.WaitGroup
	arrived.Add(goroutines)
	for i := range goroutines {
		done.Go(func() {
			seen[i] = Index()
			arrived.Done()
			arrived.Wait()
		})
	}
	done.Wait()

	var share [Cells]int
	for _, at := range seen {
		require.GreaterOrEqual(t, at, 0)
		require.Less(t, at, Cells)
		share[at]++
	}
	for at, n := range share {
		assert.Lessf(t, n, goroutines/2, "stripe %d of %v draws most goroutines", at, share)
	}
}

// The stack moves when it grows and may move at a garbage collection; between
// those the answer stays, or a goroutine would drag every stripe to its core.
func TestIndex_StaysForAGoroutine(t *testing.T) {
	const calls = 10_000
	first, same := Index(), 0
	for range calls {
		if Index() == first {
			same++
		}
	}
	assert.Greater(t, same, calls*9/10)
}

func TestIndex_DoesNotAllocate(t *testing.T) {
	sum := 0
	assert.Zero(t, testing.AllocsPerRun(1000, func() { sum += Index() }))
}

// Index takes the top three bits of a hash: any other number of cells would be
// partly unused, or run past the end.
func TestCells_IsWhatIndexCanReach(t *testing.T) {
	assert.Equal(t, 1<<3, Cells)
}
