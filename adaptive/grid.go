package adaptive

import (
	"math/bits"
	"time"
)

// A grid cuts durations into buckets that grow with them: every octave, from one
// power of two to the next, into 2^shift equal ones. The first bucket holds all
// that is shorter too, the last all that is longer.
type grid struct {
	first uint8 // bucket 0 begins at 2^first ns
	shift uint8
	n     uint8 // buckets
}

// maxBuckets is how many the finest grid has.
const maxBuckets = 22 << 3

// newGrid returns a grid of so many octaves, the last of which holds longest.
func newGrid(longest time.Duration, octaves, shift int) grid {
	first := max(bits.Len64(uint64(longest))-octaves, shift)
	return grid{first: uint8(first), shift: uint8(shift), n: uint8(octaves << shift)}
}

// index is the bucket of d.
func (g grid) index(d time.Duration) int {
	ns := uint64(max(d, 1<<g.first))
	octave := bits.Len64(ns) - 1
	sub := int(ns>>(octave-int(g.shift))) & (1<<g.shift - 1) // the bits behind the leading one
	return min((octave-int(g.first))<<g.shift+sub, int(g.n)-1)
}

// upper is the end of bucket i: the first duration of the next one.
func (g grid) upper(i int) time.Duration {
	octave, sub := i>>g.shift+int(g.first), i&(1<<g.shift-1)
	return time.Duration(1<<g.shift+sub+1) << (octave - int(g.shift))
}

// moved is where bucket i of g lies in a grid that may begin elsewhere, but is of
// the same shift and size.
func (g grid) moved(i int, to grid) int {
	return min(max(i+(int(g.first)-int(to.first))<<g.shift, 0), int(to.n)-1)
}
