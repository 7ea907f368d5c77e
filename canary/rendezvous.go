package canary

import "math"

// Rendezvous hashing (Thaler and Ravishankar, 1996): each instance draws a number for the
// id, and the highest has it. Whoever goes leaves only its own ids, which go to their
// second; so the ranks are also the order in which an id is offered elsewhere. With
// weights the number is weight/−ln(u) for a u that is even in (0, 1), which gives each
// instance its share exactly (Schindelhauer and Schomaker, 2005).

// score is the number that instance i draws for the hash of an id; it orders as the real
// number that it stands for.
func (t *upstreamTable) score(i int, h uint64) uint64 {
	drawn := scramble(h ^ t.seeds[i])
	if t.equal {
		return drawn
	}
	u := (float64(drawn>>11) + 0.5) / (1 << 53)
	return math.Float64bits(t.share[i] / -math.Log(u)) // as integers, floats above 0 are in the same order
}

// highest returns the index of the instance with the highest score, -1 if there is none.
func (t *upstreamTable) highest(h uint64) int {
	best, most := -1, uint64(0)
	if t.equal { // the same, without a question for each
		for i, seed := range t.seeds {
			if s := scramble(h ^ seed); s > most || best < 0 {
				best, most = i, s
			}
		}
		return best
	}
	for i := range t.nodes {
		if s := t.score(i, h); s > most || best < 0 {
			best, most = i, s
		}
	}
	return best
}

// rank yields all instances but the highest, from the next one on.
func (t *upstreamTable) rank(h uint64, yield func(int) bool) {
	var scores [rankedAtMost]uint64
	var used [rankedAtMost]bool
	for i := range t.nodes {
		scores[i] = t.score(i, h)
	}
	for place := range t.nodes {
		best := -1
		for i := range t.nodes {
			if !used[i] && (best < 0 || scores[i] > scores[best]) {
				best = i
			}
		}
		used[best] = true
		if place > 0 && !yield(best) {
			return
		}
	}
}
