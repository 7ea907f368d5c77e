package roster

import (
	"runtime"
	"sync/atomic"
	"weak"
)

// A Member is a key of a Roster. Its object is held strongly, or, once the roster has
// let go, found for as long as somebody else has it.
type Member[T any] struct {
	Key string
	// Own says that the object differs from what Make would make, by a configuration
	// of its own, so it is not let go.
	Own atomic.Bool

	roster *Roster[T]
	// strong is nil while the roster has let go. Written under Roster.mu.
	strong atomic.Pointer[T]
	weak   weak.Pointer[T]

	// Under Roster.mu: about when the object was last used, as of the last look, and
	// that the key is no longer the roster's.
	idleAt  int64
	removed bool
}

// Alive returns the object if anybody still has it.
func (m *Member[T]) Alive() *T {
	if t := m.strong.Load(); t != nil {
		return t
	}
	return m.weak.Value()
}

// Configured says whose configuration the object of m has now: its own, or that which
// Make would give it. changed is whether it is another one than before; an update by
// oneself that changes nothing makes nothing one's own. It is to be called under the
// lock under which the configuration was put in force, else of an update by oneself and
// one by the group each could have the last word on one of the two. A nil m is in no
// roster.
func (m *Member[T]) Configured(own, changed bool) {
	if m != nil && (changed || !own) {
		m.Own.Store(own)
	}
}

// Needed is called after t, the object of m, has got something to lose, which the
// roster may have let go. It then holds more objects than it should until another one
// can go; there are never more of these than were in use. A nil m is in no roster.
func (m *Member[T]) Needed(t *T) {
	if m == nil || m.strong.Load() != nil {
		return
	}
	m.roster.mu.Lock()
	defer m.roster.mu.Unlock()
	m.hold(t)
}

// hold makes the roster hold t. The caller holds Roster.mu.
func (m *Member[T]) hold(t *T) {
	if m.strong.Load() == nil {
		m.strong.Store(t)
		m.roster.held++
	}
}

// dispensable reports whether t, the object of m, may be let go.
func (m *Member[T]) dispensable(t *T, now int64) bool {
	return !m.Own.Load() && m.roster.kind.Idle(t, now)
}

// watch has the key forgotten when nobody has t any more.
func (m *Member[T]) watch(t *T) {
	m.weak = weak.Make(t)
	// The cleanup must keep neither the roster nor the object alive.
	runtime.AddCleanup(t, forget[T], forgotten[T]{weak.Make(m.roster), weak.Make(m)})
}

// forgotten names a member whose object is gone.
type forgotten[T any] struct {
	roster weak.Pointer[Roster[T]]
	member weak.Pointer[Member[T]]
}

// forget removes the key of an object that nobody has any more.
func forget[T any](f forgotten[T]) {
	r, m := f.roster.Value(), f.member.Value()
	if r == nil || m == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !m.removed {
		r.keys.remove(m)
	}
}
