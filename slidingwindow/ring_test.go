package slidingwindow

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestARingRefusesASizeOutOfBounds(t *testing.T) {
	for n, want := range map[int]string{
		0:      "slidingwindow: ring size 0 is not in [1, 16384]",
		-1:     "slidingwindow: ring size -1 is not in [1, 16384]",
		16_385: "slidingwindow: ring size 16385 is not in [1, 16384]",
	} {
		r, err := NewRing(n)
		assert.EqualError(t, err, want)
		assert.Nil(t, r)
	}
}

func TestARingHoldsTheLastOutcomes(t *testing.T) {
	r, err := NewRing(3)
	require.NoError(t, err)
	assert.Zero(t, r.Sum(), "none yet")
	for i, step := range []struct {
		e    Event
		want Sums
	}{
		{Failed, Sums{Total: 1, Failures: 1}},
		{0, Sums{Total: 2, Failures: 1}},
		{Failed | Slow, Sums{Total: 3, Failures: 2, Slow: 1}},
		{NoVerdict, Sums{Total: 3, Failures: 2, Slow: 1}}, // pushes nothing out
		{NoVerdict | Failed, Sums{Total: 3, Failures: 2, Slow: 1}},
		{Slow, Sums{Total: 3, Failures: 1, Slow: 2}}, // the first one left
		{NoVerdict | Slow, Sums{Total: 2, Failures: 1, Slow: 2, GaveUp: 1}},
		{NoVerdict | Slow | Failed, Sums{Total: 1, Slow: 1, GaveUp: 2}},
		{0, Sums{Total: 1, GaveUp: 2}},
		{0, Sums{Total: 2, GaveUp: 1}},
		{0, Sums{Total: 3}},
	} {
		r.Record(step.e)
		assert.Equal(t, step.want, r.Sum(), "step %d", i)
	}
}

// The largest ring fills every lane as far as it goes, and empties it again.
func TestTheLargestRingKeepsItsLanesApart(t *testing.T) {
	r, err := NewRing(maxRing)
	require.NoError(t, err)
	const n = maxRing
	for _, step := range []struct {
		e    Event
		want Sums
	}{
		{Failed | Slow, Sums{Total: n, Failures: n, Slow: n}},
		{NoVerdict | Slow, Sums{GaveUp: n}},
		{0, Sums{Total: n}},
	} {
		for range n {
			r.Record(step.e)
		}
		assert.Equal(t, step.want, r.Sum())
	}
}

// Two Records a lap apart on one slot, and the later adds its difference first:
// the slot is what it should be, the totals are behind it, and nobody sees a
// negative number or a borrow from the next lane.
func TestARingOutOfOrderShowsNoBorrow(t *testing.T) {
	success, failure, gaveUp := ringLanes(0), ringLanes(Failed), ringLanes(NoVerdict|Slow)
	for _, c := range []struct {
		name                   string
		before, earlier, later uint64 // what the slot holds, one after the other
		want                   Sums   // between the two additions
	}{
		{"failures below 0", success, failure, success, Sums{Total: 1}},
		{"total below 0", gaveUp, success, gaveUp, Sums{GaveUp: 1}},
		{"gave up below 0", success, gaveUp, failure, Sums{Total: 1, Failures: 1}},
		{"more failures than calls", failure, success, gaveUp, Sums{GaveUp: 1}},
	} {
		r, err := NewRing(1)
		require.NoError(t, err)
		r.slots[0].Store(c.before)
		r.totals.Store(c.before)

		r.totals.Add(c.later - c.earlier)
		assert.Equal(t, c.want, r.Sum(), c.name)
		r.totals.Add(c.earlier - c.before)
		assert.Equal(t, c.later, r.totals.Load(), c.name)
	}
}
