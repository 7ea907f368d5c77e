package canary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Diff is who moves when a plan changes, exactly: it is worked out from the two
// layouts, not sampled. A version that is rolled back over a while counts as gone.
type Diff struct {
	// Moves are the shares that go from one version to another, the largest first.
	Moves []Move `json:"moves"`
	// Reshuffled says that the salt changes, so that everyone is dealt anew. Moves is
	// then what is to be expected, to the ppm.
	Reshuffled bool `json:"reshuffled"`
}

// Move is the share of identities that go from one version to another.
type Move struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Share Weight `json:"share"`
}

// Moved returns the share of all that move.
func (d Diff) Moved() Weight {
	var sum Weight
	for _, m := range d.Moves {
		sum += m.Share
	}
	return sum
}

// Of returns the share that goes from one version to another.
func (d Diff) Of(from, to string) Weight {
	for _, m := range d.Moves {
		if m.From == from && m.To == to {
			return m.Share
		}
	}
	return 0
}

// String says who moves: "stable→v2 10%, v3→v2 1%"; "nobody moves" if so.
func (d Diff) String() string {
	if len(d.Moves) == 0 {
		return "nobody moves"
	}
	parts := make([]string, len(d.Moves))
	for i, m := range d.Moves {
		parts[i] = fmt.Sprintf("%s→%s %v", m.From, m.To, m.Share)
	}
	return strings.Join(parts, ", ")
}

// Preview returns who would move by SetWeights of the same weights, and changes
// nothing.
func (p *Picker) Preview(weights map[string]Weight) (Diff, error) {
	if p == nil {
		return Diff{}, nil
	}
	old := &p.current.Load().plan
	next := old.Clone()
	if err := next.setWeights(weights); err != nil {
		return Diff{}, fmt.Errorf("canary %q: %w", p.name, err)
	}
	return diff(old, &next), nil
}

// diff compares two plans.
func diff(old, next *Plan) Diff {
	moved := map[[2]string]uint64{}
	before, after := old.owned(), next.owned()
	reshuffled := old.Salt != next.Salt
	if reshuffled {
		for _, a := range before {
			for _, b := range after {
				moved[[2]string{a.version, b.version}] += uint64(a.to-a.from) * uint64(b.to-b.from)
			}
		}
		for pair := range moved {
			moved[pair] = (moved[pair] + uint64(All)/2) / uint64(All)
		}
	} else {
		for i, j, at := 0, 0, uint32(0); at < points; {
			end := min(before[i].to, after[j].to)
			moved[[2]string{before[i].version, after[j].version}] += uint64(end - at)
			at = end
			if before[i].to == end {
				i++
			}
			if after[j].to == end {
				j++
			}
		}
	}
	d := Diff{Reshuffled: reshuffled}
	for pair, n := range moved {
		if pair[0] != pair[1] && n > 0 {
			d.Moves = append(d.Moves, Move{pair[0], pair[1], Weight(n)})
		}
	}
	slices.SortFunc(d.Moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), strings.Compare(a.From, b.From), strings.Compare(a.To, b.To))
	})
	return d
}

// property is points [from, to) of a version.
type property struct {
	from, to uint32
	version  string
}

// owned returns who owns which points, from 0 to 1 000 000 without gaps.
func (p *Plan) owned() []property {
	if p.Killed != "" {
		return []property{{0, points, p.Config.Stable}}
	}
	versions := p.Config.sorted()
	claims := make([]claim, len(versions))
	for i, o := range versions {
		claims[i] = claim{i, o.Lane, uint32(o.Weight)}
	}
	var all []property
	for _, s := range layOut(claims) {
		name := p.Config.Stable
		if s.owner >= 0 {
			name = versions[s.owner].Name
		}
		all = append(all, property{s.from, s.to, name})
	}
	return all
}
