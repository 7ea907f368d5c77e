package canary

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// An upstreamTable is one set of instances with their weights, some of which are down. It
// never changes, but for what the instances count.
type upstreamTable struct {
	nodes  []*Upstream // with a weight and not drained, in the order of their names
	seeds  []uint64    // of each, side by side
	share  []float64   // what each should have of all that is under way
	factor float64
	up     float64  // what those have of it that are not down
	equal  bool     // all shares are the same
	maglev []uint16 // nil where the instances are ranked
}

// newUpstreamTable builds the table of those instances that may get anything; nodes may
// come in any order.
func newUpstreamTable(nodes []*Upstream, factor float64) *upstreamTable {
	t := &upstreamTable{factor: factor, equal: true}
	total := 0.0
	for _, n := range nodes {
		if n.weight.Load() > 0 && !n.drained.Load() {
			t.nodes = append(t.nodes, n)
		}
	}
	slices.SortFunc(t.nodes, func(a, b *Upstream) int { return cmp.Compare(a.name, b.name) })
	for _, n := range t.nodes {
		w := float64(n.weight.Load())
		t.seeds = append(t.seeds, n.seed)
		t.share = append(t.share, w)
		t.equal = t.equal && w == t.share[0]
		total += w
	}
	for i := range t.share {
		t.share[i] /= total
	}
	if len(t.nodes) > rankedAtMost {
		t.maglev = newMaglev(t.nodes, t.share)
	}
	t.weigh()
	return t
}

// weigh works out what those have that are up: they bear the load of the others, and are
// not full when they do.
func (t *upstreamTable) weigh() {
	t.up = 1
	for i, n := range t.nodes {
		if n.down.Load() {
			t.up -= t.share[i]
		}
	}
}

// first returns the index of the instance to which the hash of an id belongs, -1 if there
// is none.
func (t *upstreamTable) first(h uint64) int {
	if t.maglev != nil {
		return int(t.maglev[maglevSlot(h)])
	}
	return t.highest(h)
}

// others yields the instances that the hash is offered after its first, in its own order.
func (t *upstreamTable) others(h uint64) iter.Seq[int] {
	return func(yield func(int) bool) {
		if t.maglev != nil {
			t.probe(h, yield)
		} else {
			t.rank(h, yield)
		}
	}
}

// take takes a place on instance i, if it serves and has one.
func (t *upstreamTable) take(i int, load int64) bool {
	n := t.nodes[i]
	if !n.serves() {
		return false
	}
	if float64(n.inFlight.Add(1)) <= math.Ceil(t.factor*float64(load)*t.share[i]/t.up) {
		return true
	}
	n.inFlight.Add(-1)
	return false
}

// elsewhere takes a place on another instance than the first, -1 if none serves.
func (t *upstreamTable) elsewhere(h uint64, load int64) int {
	for i := range t.others(h) {
		if t.take(i, load) {
			return i
		}
	}
	i := t.leastLoaded()
	if i >= 0 {
		t.nodes[i].inFlight.Add(1)
	}
	return i
}

// leastLoaded returns the instance with the least under way for its share, -1 if none
// serves.
func (t *upstreamTable) leastLoaded() int {
	best, least := -1, math.Inf(1)
	for i, n := range t.nodes {
		if load := float64(n.inFlight.Load()) / t.share[i]; load < least && n.serves() {
			best, least = i, load
		}
	}
	return best
}

// scramble mixes all bits of x into all others (the finaliser of MurmurHash3).
func scramble(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	x *= 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
