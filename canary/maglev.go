package canary

// Maglev hashing (Eisenbud et al., NSDI 2016): each instance has its own order of the
// slots of a table, and in turns they take the next free one. A lookup is one slot,
// whatever the number of instances. With weights an instance has as many turns as its
// share says.

// maglevSlots is a prime, so that every step from slot to slot comes by all of them.
const maglevSlots = 65537

// maglevSlot is the slot of an id's hash.
func maglevSlot(h uint64) uint64 { return (h >> 32) * maglevSlots >> 32 }

// newMaglev fills a table with indices of nodes, which are in the order of their names:
// the table must not depend on how they were given.
func newMaglev(nodes []*Upstream, share []float64) []uint16 {
	const free = 1<<16 - 1
	table := make([]uint16, maglevSlots)
	for i := range table {
		table[i] = free
	}
	type walk struct {
		at, step uint64
		turns    float64 // that it is owed
	}
	walks := make([]walk, len(nodes))
	most := 0.0
	for i, n := range nodes {
		walks[i] = walk{at: scramble(n.seed) % maglevSlots, step: scramble(n.seed^prime1)%(maglevSlots-1) + 1}
		most = max(most, share[i])
	}
	for i := range walks {
		walks[i].turns = 1 - share[i]/most // so that everybody has the first one
	}
	for left := maglevSlots; left > 0; {
		for i := range walks {
			w := &walks[i]
			if w.turns += share[i] / most; w.turns < 1 || left == 0 {
				continue
			}
			w.turns--
			for table[w.at] != free {
				w.at = (w.at + w.step) % maglevSlots
			}
			table[w.at] = uint16(i)
			left--
		}
	}
	return table
}

// probe yields instances for the hash of an id whose first one cannot take it; some may
// come twice.
func (t *upstreamTable) probe(h uint64, yield func(int) bool) {
	for try := range uint64(rankedAtMost) {
		if !yield(int(t.maglev[maglevSlot(scramble(h+(try+1)*prime1))])) {
			return
		}
	}
}
