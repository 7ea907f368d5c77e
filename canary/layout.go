package canary

import (
	"math/bits"
	"slices"
)

// MaxLanes is how many lanes there are.
const MaxLanes = 16

// The layout: who owns which points. Every lane has an anchor and a direction, and
// its version owns the points from the anchor on; the stable version owns what is
// left. Lanes 2a and 2a+1 share the a-th anchor, the even one upwards, the odd one
// downwards. The anchors are those of van der Corput's sequence: 0, 1/2, 1/4, 3/4,
// 1/8 … of the circle of points, so lane 1, downwards from 0, begins at the very top.
//
// A lane that meets points that are taken goes on behind them; lower lanes take first.
// So the layout depends on lanes and weights alone, not on how they came about: all
// replicas agree, and weights that are set back give everyone back what they had.
// Frozen, as the hash is.

// anchor is the point at which lane begins.
func anchor(lane int) uint32 {
	pair := uint8(lane / 2)
	return uint32(uint64(bits.Reverse8(pair)) * uint64(points) >> 8)
}

// span is points [from, to) of one owner; never empty.
type span struct {
	from, to uint32
	owner    int // what claim.owner says; -1 is the stable version
	// offset is how many points the owner has between its anchor and this span; those
	// within it are counted from its upper end if down.
	offset uint32
	down   bool
}

// claim is what one lane takes.
type claim struct {
	owner, lane int
	size        uint32
}

// layOut gives claims their points, in this order, and returns all spans from 0 to
// 1 000 000, without gaps. A claim that finds too few points gets what there is.
func layOut(claims []claim) []span {
	spans := []span{{to: points, owner: -1}}
	for _, c := range claims {
		spans = take(spans, c)
	}
	return merged(spans)
}

// take gives the free points from c's anchor on, in c's direction, to c.
func take(spans []span, c claim) []span {
	at, down := anchor(c.lane), c.lane%2 == 1
	left := c.size
	// The spans from the anchor on come first, then those on the other side of it.
	near, far := cut(spans, at)
	if down {
		slices.Reverse(near)
		slices.Reverse(far)
		near, far = far, near
	}
	var out []span
	for _, s := range append(near, far...) {
		if n := min(s.to-s.from, left); n > 0 && s.owner < 0 {
			mine, rest := span{s.from, s.from + n, c.owner, c.size - left, down}, span{from: s.from + n, to: s.to, owner: -1}
			if down {
				mine.from, mine.to, rest.from, rest.to = s.to-n, s.to, s.from, s.to-n
			}
			left -= n
			out = append(out, mine)
			if rest.from == rest.to {
				continue
			}
			s = rest
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b span) int { return int(a.from) - int(b.from) })
	return out
}

// cut returns the spans above at, and those below it; one that lies across is in both,
// with its part of it.
func cut(spans []span, at uint32) (above, below []span) {
	for _, s := range spans {
		if s.from < at && at < s.to {
			lower, upper := s, s
			lower.to, upper.from = at, at
			if s.down {
				lower.offset += s.to - at
			} else {
				upper.offset += at - s.from
			}
			below, above = append(below, lower), append(above, upper)
			continue
		}
		if s.from >= at {
			above = append(above, s)
		} else {
			below = append(below, s)
		}
	}
	return above, below
}

// merged joins neighbours that one owner has taken in one go.
func merged(spans []span) []span {
	out := spans[:1]
	for _, s := range spans[1:] {
		last := &out[len(out)-1]
		joined := last.owner == s.owner && (s.owner < 0 ||
			s.down == last.down && !s.down && last.offset+(last.to-last.from) == s.offset ||
			s.down && last.down && s.offset+(s.to-s.from) == last.offset)
		if !joined {
			out = append(out, s)
			continue
		}
		if s.down {
			last.offset = s.offset
		}
		last.to = s.to
	}
	return out
}
