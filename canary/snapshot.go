package canary

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// Snapshot is what a Picker looks like at one moment, as plain data. Its counters are
// read one after another while requests go on, so they need not add up to the request.
type Snapshot struct {
	Name       string `json:"name"`
	Generation uint64 `json:"generation"`
	Salt       string `json:"salt"`
	// Killed is why everything goes to the stable version, "" if it does not.
	Killed string `json:"killed"`
	// Versions begins with the stable one; the others follow by their lanes.
	Versions []VersionSnapshot `json:"versions"`
	// Retired are versions that the plan has no longer, the oldest first.
	Retired []VersionSnapshot `json:"retired"`
	// Intervals says who owns which points, in order and without gaps; a version that is
	// falling counts as gone.
	Intervals []IntervalSnapshot `json:"intervals"`
	// Ignored counts wishes that were not granted, by wish and cause, such as
	// "override/unauthorized".
	Ignored map[string]int64 `json:"ignored"`
	// Dropped and Panics are changes that a slow listener never saw, and panics of
	// listeners.
	Dropped uint64 `json:"dropped"`
	Panics  uint64 `json:"panics"`
}

// VersionSnapshot is one version of a Snapshot.
type VersionSnapshot struct {
	Name string `json:"name"`
	// Lane is -1 for the stable version and for a retired one.
	Lane int `json:"lane"`
	// Weight is the one that was set; Share is what the version has now: less while it
	// falls (RollbackOver), none while Kill is in force.
	Weight Weight `json:"weight"`
	Share  Weight `json:"share"`
	// RolledBack is the cause of a rollback, with At; both are empty if there was none.
	RolledBack string    `json:"rolled_back,omitempty"`
	At         time.Time `json:"at,omitzero"`
	// DrainsUntil is when stored assignments end, if the version drains.
	DrainsUntil time.Time `json:"drains_until,omitzero"`
	InFlight    int64     `json:"in_flight"`
	// Requests counts decisions since New by reason; Identities those of "split" by the
	// source of the identity.
	Requests   map[string]int64 `json:"requests"`
	Identities map[string]int64 `json:"identities"`
}

// IntervalSnapshot is points [From, To) of a version, of 1 000 000.
type IntervalSnapshot struct {
	From    uint32 `json:"from"`
	To      uint32 `json:"to"`
	Version string `json:"version"`
}

// Snapshot returns what the picker looks like now. It has no side effect.
func (p *Picker) Snapshot() Snapshot {
	if p == nil {
		return Snapshot{}
	}
	now := clock.Now()
	t := p.current.Load()
	s := Snapshot{
		Name: p.name, Generation: t.generation, Salt: t.plan.Salt, Killed: t.plan.Killed,
		Ignored: map[string]int64{}, Retired: []VersionSnapshot{}, Dropped: p.events.Dropped(), Panics: p.panics.Load(),
	}
	for i := range t.standings {
		s.Versions = append(s.Versions, t.describe(&t.standings[i], now))
	}
	for _, v := range p.Retired() {
		s.Retired = append(s.Retired, v.snapshot())
	}
	for _, o := range t.plan.owned() {
		s.Intervals = append(s.Intervals, IntervalSnapshot{o.from, o.to, o.version})
	}
	for i := range p.ignored {
		s.Ignored[ignoranceNames[i][0]+"/"+ignoranceNames[i][1]] = p.ignored[i].Load()
	}
	return s
}

// describe is a version of the plan.
func (t *table) describe(of *standing, now int64) VersionSnapshot {
	v := of.version.snapshot()
	v.Weight, v.Share = of.weight, t.share(v.Name, now)
	if o := t.plan.version(v.Name); o != nil {
		v.Lane = o.Lane
	}
	if r := t.plan.rolledBack(v.Name); r != nil {
		v.RolledBack, v.At, v.Lane = r.Cause, r.At, r.Lane
	}
	for _, d := range t.plan.Draining {
		if d.Version == v.Name {
			v.DrainsUntil = d.Until
		}
	}
	return v
}

// snapshot is what a version knows itself.
func (v *Version) snapshot() VersionSnapshot {
	picked := v.picked()
	s := VersionSnapshot{
		Name: v.name, Lane: -1, InFlight: v.InFlight(), Requests: map[string]int64{}, Identities: map[string]int64{},
	}
	for r := Killed; int(r) <= reasons; r++ {
		s.Requests[r.String()] = picked[slot(r, 0)]
	}
	for f := FromUser; int(f) <= sources; f++ {
		n := picked[slot(Split, f)]
		s.Identities[f.String()] = n
		s.Requests[Split.String()] += n
	}
	return s
}
