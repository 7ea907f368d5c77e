package breaker

import (
	"cmp"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
	"weak"

	"github.com/sluicego/sluice/internal/clock"
)

// member is a key of a Group. Its breaker is held strongly, or, once the group has
// let go, found for as long as somebody else holds it.
type member struct {
	group *Group
	key   string
	// strong is nil while the group has let go. Written under Group.mu.
	strong atomic.Pointer[Breaker]
	weak   weak.Pointer[Breaker]

	// own says that the breaker has a configuration of its own, by its own Update.
	own atomic.Bool

	// Under Group.mu: about when the last call came, as of the last look, and that
	// the key is no longer the group's.
	idleAt  int64
	removed bool
}

// lookEvery is after which time a full group is searched for idle breakers again
// in any case.
const lookEvery = 100 * time.Millisecond

// get is Get for a key that has no breaker or whose breaker has been let go.
func (g *Group) get(now int64, key string) *Breaker {
	g.mu.Lock()
	defer g.mu.Unlock()
	if m := g.members.get(key); m != nil {
		if b := m.alive(); b != nil {
			if m.strong.Load() == nil && g.makeRoom(now) {
				m.hold(b)
			}
			return b
		}
		g.members.remove(m) // its cleanup has yet to run
	}
	if !g.makeRoom(now) {
		g.overflows.Add(1)
		return g.overflow
	}
	return g.add(now, key)
}

// add makes the breaker of a new key. The caller holds g.mu, and there is room.
func (g *Group) add(now int64, key string) *Breaker {
	p, h := g.plan, g.hooks
	if opts, ok := g.overrides[key]; ok {
		own, hooks, _ := overridden(p.config, *g.hooks, opts) // it has been validated
		p, h = newPlan(own), hooks.keep()
	}
	b := newBreaker(g.name+"/"+key, p, h, now)
	m := &member{group: g, key: key, weak: weak.Make(b)}
	b.member = m
	g.members.add(m)
	m.hold(b)
	// The cleanup must not keep the group or the breaker alive.
	runtime.AddCleanup(b, forget, forgotten{weak.Make(g), weak.Make(m)})
	return b
}

// forgotten names a member whose breaker is gone.
type forgotten struct {
	group  weak.Pointer[Group]
	member weak.Pointer[member]
}

// forget removes the key of a breaker that nobody holds any more.
func forget(f forgotten) {
	g, m := f.group.Value(), f.member.Value()
	if g == nil || m == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !m.removed {
		g.members.remove(m)
	}
}

// alive returns the breaker if anybody still holds it.
func (m *member) alive() *Breaker {
	if b := m.strong.Load(); b != nil {
		return b
	}
	return m.weak.Value()
}

// hold makes the group hold b. The caller holds Group.mu.
func (m *member) hold(b *Breaker) {
	if m.strong.Load() == nil {
		m.strong.Store(b)
		m.group.held++
	}
}

// needed is called after b has got something to lose, which the group may have let
// go. The group then holds more than MaxKeys until
// another one can go; there are never more of these than permits were out.
func (m *member) needed(b *Breaker) {
	if m == nil || m.strong.Load() != nil {
		return
	}
	m.group.mu.Lock()
	defer m.group.mu.Unlock()
	m.hold(b)
}

// makeRoom lets go of idle breakers until there is room for one more, and reports
// whether there is. The caller holds g.mu.
func (g *Group) makeRoom(now int64) bool {
	for g.held >= g.most {
		if len(g.idle) == 0 && !g.findIdle(now) {
			return false
		}
		m := g.idle[0]
		g.idle = g.idle[1:]
		if b := m.strong.Load(); b != nil && b.idle(now) {
			m.strong.Store(nil)
			g.held--
			// Whoever gives it something to lose looks at strong after that, see needed.
			// So if it was still there then, this second look sees what there is to lose.
			if !b.idle(now) {
				m.hold(b)
			}
		}
	}
	return true
}

// findIdle lists the breakers that may go, the longest idle first, and reports
// whether there are any. The caller holds g.mu.
func (g *Group) findIdle(now int64) bool {
	// A search costs as much as there are keys, so enough new ones must have asked
	// to pay for it, or enough time have passed.
	if g.asked++; now < g.lookAt && g.asked <= g.most/8 {
		return false
	}
	g.asked, g.lookAt, g.idle = 0, clock.After(now, lookEvery), nil
	for _, m := range g.members.all() {
		if b := m.strong.Load(); b != nil && b.idle(now) {
			m.idleAt = b.lastAt()
			g.idle = append(g.idle, m)
		}
	}
	slices.SortFunc(g.idle, func(a, b *member) int { return cmp.Compare(a.idleAt, b.idleAt) })
	return len(g.idle) > 0
}

// idle reports whether b would be no worse off if it were made anew: closed, with
// nothing counted against it, no recovery under way, no backoff to remember and no
// override, no configuration of its own.
func (b *Breaker) idle(now int64) bool {
	e, p := b.cur.Load(), b.plan.Load()
	if e.state != Closed || p.modeAt(now) != 0 || b.member.own.Load() || e.closed.row.Load() != 0 {
		return false
	}
	if e.closed.recovering.Load() && now-e.began < p.ramp || e.steady != 0 && e.levelAt(p, now, p.config.OpenFor) != 0 {
		return false
	}
	for w := e.closed.windows.Load(); w != nil; w = w.next {
		s := w.sum(now)
		// A window of calls never empties by itself, but good calls are no loss.
		if s.Failures+s.Slow+s.GaveUp > 0 || w.calls == nil && s.Total > 0 {
			return false
		}
	}
	return true
}

// lastAt is about when the last call ended, or when the breaker last closed.
func (b *Breaker) lastAt() int64 {
	e := b.cur.Load()
	if e.state != Closed {
		return e.began
	}
	w := e.closed.windows.Load()
	if w.counts != nil {
		return max(e.began, w.counts.LastAt())
	}
	return max(e.began, w.calls.lastAt.Load())
}
