package canary

import (
	"cmp"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// table is a Plan made ready for picking. It never changes once it is published, and
// one pointer leads to it: a pick sees one table from beginning to end.
type table struct {
	segments   []segment
	seed       uint64 // of the salt, for hash spec 1
	hash       func(salt, id string) uint32
	stable     *Version
	split      int    // the slot that Pick counts into, -1 for none
	counted    bool   // decisions are counted
	killed     bool   // the stable version owns all points, and wishes are ignored
	falls      []fall // not empty: some segments' owners lose their points with time
	declines   []decline
	generation uint64
	standings  []standing
	plan       Plan
}

// segment is the points below end, and not below the end of the one before.
type segment struct {
	end     uint32
	span    int32 // of falls' spans, -1 if the owner keeps its points
	version *Version
}

// fall is a span of a version that is being rolled back over a while.
type fall struct {
	span span
	decline
}

// decline is how the share of a version falls that is, or was, rolled back over a while.
// It goes by the clock that nobody sets, from when this process saw it first.
type decline struct {
	version string
	at      time.Time // of the rollback; tells it from another one of the version
	from    uint32    // points of the version when it began
	began   int64     // in clock's time; may lie before the process
	over    int64
}

// left is how many points the version still has.
func (d *decline) left(now int64) uint32 { return fallen(d.from, now-d.began, d.over) }

// declines are those of a plan at that time. By the wall clock one may begin in the
// future, here or on another machine; then it begins now. What was under way, or over, in
// the table before is no earlier than it was, though the wall clock was set back.
func declines(all []RolledBack, before *table, now int64, wall time.Time) []decline {
	var out []decline
	for _, r := range all {
		if r.Over <= 0 {
			continue
		}
		ago := min(max(0, wall.Sub(r.At)), r.Over) // within bounds, so that no date overflows
		d := decline{r.Version, r.At, uint32(r.From), now - int64(ago), int64(r.Over)}
		if before != nil {
			if b := before.decline(r.Version); b != nil && b.at.Equal(d.at) && b.over == d.over {
				d.began = min(d.began, b.began)
			}
		}
		out = append(out, d)
	}
	return out
}

// decline returns that of a version, nil if there is none.
func (t *table) decline(version string) *decline {
	for i := range t.declines {
		if t.declines[i].version == version {
			return &t.declines[i]
		}
	}
	return nil
}

// standing is what a version that can be wished for is worth.
type standing struct {
	version    *Version
	weight     Weight
	rolledBack bool
	drainUntil int64 // in clock's time, 0 if it is not draining
}

// newTable compiles plan, which is valid, and comes after the table before, if any.
// versions gives each name its object.
func newTable(plan Plan, hash func(salt, id string) uint32, counted bool, versions func(string) *Version, before *table, now int64, wall time.Time) *table {
	t := &table{
		seed: xxh64(plan.Salt, 0), hash: hash, stable: versions(plan.Config.Stable), killed: plan.Killed != "",
		generation: plan.Generation, plan: plan, counted: counted, split: slot(Split, 0),
	}
	switch {
	case !counted:
		t.split = -1
	case t.killed:
		t.split = slot(Killed, 0)
	}
	t.declines = declines(plan.RolledBack, before, now, wall)
	t.standings = append(t.standings, standing{version: t.stable, weight: plan.stableWeight()})
	var claims []claim
	for _, o := range plan.Config.sorted() {
		s := standing{version: versions(o.Name), weight: o.Weight, rolledBack: plan.rolledBack(o.Name) != nil}
		for _, d := range plan.Draining {
			if d.Version == o.Name {
				s.drainUntil = clock.After(now, d.Until.Sub(wall))
			}
		}
		claims = append(claims, claim{len(t.standings), o.Lane, uint32(o.Weight)})
		t.standings = append(t.standings, s)
	}
	falling := map[int]decline{}
	for _, r := range plan.RolledBack {
		d := t.decline(r.Version)
		if d == nil || d.left(now) == 0 {
			continue
		}
		i := t.index(r.Version)
		if i < 0 {
			i = len(t.standings)
			t.standings = append(t.standings, standing{version: versions(r.Version), rolledBack: true})
		}
		falling[i] = *d
		claims = append(claims, claim{i, r.Lane, d.from}) // behind those that stay
	}
	if !t.killed {
		t.lay(layOut(claims), falling)
	}
	return t
}

// lay turns spans into segments.
func (t *table) lay(spans []span, falling map[int]decline) {
	for _, s := range spans {
		if s.owner < 0 {
			t.segments = append(t.segments, segment{s.to, -1, t.stable})
			continue
		}
		seg := segment{s.to, -1, t.standings[s.owner].version}
		if d, ok := falling[s.owner]; ok && t.standings[s.owner].weight == 0 {
			seg.span = int32(len(t.falls))
			t.falls = append(t.falls, fall{s, d})
		}
		t.segments = append(t.segments, seg)
	}
}

// point is where id lies.
func (t *table) point(id string) uint32 {
	if t.hash != nil {
		return t.hash(t.plan.Salt, id)
	}
	return t.place(id)
}

// place is the point of id by hash spec 1.
func (t *table) place(id string) uint32 { return toPoint(xxh64(id, t.seed)) }

// at returns the owner of a point.
func (t *table) at(point uint32) *Version {
	for i := range t.segments {
		if s := &t.segments[i]; point < s.end {
			if s.span >= 0 {
				return t.falling(s, point, clock.Now())
			}
			return s.version
		}
	}
	return t.stable
}

// falling returns the owner of a point in a segment whose version loses its points
// with time: those that are furthest from its anchor first.
func (t *table) falling(s *segment, point uint32, now int64) *Version {
	f := &t.falls[s.span]
	distance := f.span.offset + point - f.span.from
	if f.span.down {
		distance = f.span.offset + f.span.to - 1 - point
	}
	if distance < f.left(now) {
		return s.version
	}
	return t.stable
}

// fallen is how many of from points are left after a while of over.
func fallen(from uint32, elapsed, over int64) uint32 {
	if elapsed >= over {
		return 0
	}
	if elapsed <= 0 {
		return from
	}
	hi, lo := bits.Mul64(uint64(from), uint64(over-elapsed))
	left, _ := bits.Div64(hi, lo, uint64(over))
	return uint32(left)
}

// falling reports whether the version still has some of its share.
func (r *RolledBack) falling(wall time.Time) bool { return r.Over > 0 && wall.Sub(r.At) < r.Over }

// left is the share of a version that was rolled back at that time.
func (r *RolledBack) left(wall time.Time) Weight {
	if r.Over <= 0 {
		return 0
	}
	return Weight(fallen(uint32(r.From), int64(wall.Sub(r.At)), int64(r.Over)))
}

// share is what a version has at a time.
func (t *table) share(version string, now int64) Weight {
	if t.killed {
		if version == t.stable.name {
			return All
		}
		return 0
	}
	var share, lost Weight
	if i := t.index(version); i >= 0 {
		share = t.standings[i].weight
	}
	for i := range t.declines {
		left := Weight(t.declines[i].left(now))
		if t.declines[i].version == version {
			share += left
		}
		lost += left
	}
	if version == t.stable.name {
		share -= min(lost, share)
	}
	return share
}

// weight is what a version has in the plan, 0 if it is not in it.
func (t *table) weight(version string) Weight {
	if i := t.index(version); i >= 0 {
		return t.standings[i].weight
	}
	return 0
}

// index returns the place of a version in standings, -1 if it has none.
func (t *table) index(name string) int {
	return slices.IndexFunc(t.standings, func(s standing) bool { return s.version.name == name })
}

// stableWeight is what the other versions leave, those apart that are falling.
func (p *Plan) stableWeight() Weight {
	rest := All
	for _, o := range p.Config.Versions {
		rest -= o.Weight
	}
	return rest
}

// sortRolledBack keeps the order of rollbacks by time, then by name.
func sortRolledBack(all []RolledBack) {
	slices.SortStableFunc(all, func(a, b RolledBack) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Version, b.Version))
	})
}
