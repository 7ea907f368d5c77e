// Package roster keeps one object for each key, and at most so many of them: it
// makes an object when its key is first asked for, lets idle ones go when there is no
// room, and gives out no second object of a key while anybody still has the first.
package roster

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
)

// Kind is what a Roster must know of the objects that it keeps. Its functions are
// called with the roster's lock held, and must not call the roster or foreign code.
type Kind[T any] struct {
	// Make makes the object of m.Key.
	Make func(m *Member[T], now int64) *T
	// Idle reports whether an object would be no worse off if it were made anew.
	Idle func(t *T, now int64) bool
	// LastAt is about when an object was last used.
	LastAt func(t *T, now int64) int64
}

// A Roster holds at most so many objects. For one more, the longest idle one is let
// go: it lives on while somebody has it, and Get returns that same object; then its
// key is forgotten. If none is idle there is no room.
//
// Find takes no lock and allocates nothing. A Roster starts no goroutine, is safe for
// concurrent use and must not be copied. Make one with New.
type Roster[T any] struct {
	kind Kind[T]
	most int

	mu     sync.Mutex // guards what follows; no foreign code runs under it
	keys   keys[T]
	held   int          // members that are held strongly
	idle   []*Member[T] // those to let go next, the longest idle first, as of the last look
	lookAt int64        // when to look for idle ones again in any case
	asked  int          // new keys since the last look
}

// New returns an empty roster of at most so many objects, at least 1.
func New[T any](most int, kind Kind[T]) *Roster[T] {
	return &Roster[T]{kind: kind, most: most}
}

// Find returns the object of key if it can be had without a lock, else nil. Then ask
// Get.
func (r *Roster[T]) Find(key string) *T {
	if m := r.keys.find(key); m != nil {
		return m.strong.Load()
	}
	return nil
}

// Get returns the object of key, and makes it if there is none. It returns nil if
// there is no room for one. The key is copied, and does not escape.
func (r *Roster[T]) Get(key string, now int64) *T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.keys.get(key); m != nil {
		if t := m.Alive(); t != nil {
			if m.strong.Load() == nil && r.makeRoom(now) {
				m.hold(t)
			}
			return t
		}
		r.keys.remove(m) // its cleanup has yet to run
	}
	if !r.makeRoom(now) {
		return nil
	}
	m := &Member[T]{Key: strings.Clone(key), roster: r}
	t := r.kind.Make(m, now)
	m.watch(t)
	r.keys.add(m)
	m.hold(t)
	return t
}

// Len returns how many objects are held, without those that were let go.
func (r *Roster[T]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held
}

// All returns the objects that are held, with their keys, in no order.
func (r *Roster[T]) All() iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		for _, m := range r.Members() {
			if t := m.strong.Load(); t != nil && !yield(m.Key, t) {
				return
			}
		}
	}
}

// Living returns the objects that anybody has, also those that were let go, with their
// keys, in no order.
func (r *Roster[T]) Living() iter.Seq2[string, *T] {
	return func(yield func(string, *T) bool) {
		for _, m := range r.Members() {
			if t := m.Alive(); t != nil && !yield(m.Key, t) {
				return
			}
		}
	}
}

// Members returns the members there are now, also those that were let go and are not
// forgotten.
func (r *Roster[T]) Members() []*Member[T] {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys.all()
}

// makeRoom lets go of idle objects until there is room for one more, and reports
// whether there is. The caller holds r.mu.
func (r *Roster[T]) makeRoom(now int64) bool {
	for r.held >= r.most {
		if len(r.idle) == 0 && !r.findIdle(now) {
			return false
		}
		m := r.idle[0]
		r.idle = r.idle[1:]
		if t := m.strong.Load(); t != nil && m.dispensable(t, now) && r.kind.LastAt(t, now) <= m.idleAt {
			m.strong.Store(nil)
			r.held--
			// Whoever gives it something to lose looks at strong after that, see Needed.
			// So if it was still there then, this second look sees what there is to lose.
			if !m.dispensable(t, now) {
				m.hold(t)
			}
		}
	}
	return true
}

// lookEvery is after which time a full roster is searched for idle objects again in
// any case.
const lookEvery = int64(100 * time.Millisecond)

// findIdle lists the objects that may go, the longest idle first, and reports
// whether there are any. The caller holds r.mu.
func (r *Roster[T]) findIdle(now int64) bool {
	// A search costs as much as there are keys, so enough new ones must have asked
	// to pay for it, or enough time have passed.
	if r.asked++; now < r.lookAt && r.asked <= r.most/8 {
		return false
	}
	r.asked, r.lookAt, r.idle = 0, now+lookEvery, nil
	for _, m := range r.keys.all() {
		if t := m.strong.Load(); t != nil && m.dispensable(t, now) {
			m.idleAt = r.kind.LastAt(t, now)
			r.idle = append(r.idle, m)
		}
	}
	slices.SortFunc(r.idle, func(a, b *Member[T]) int { return cmp.Compare(a.idleAt, b.idleAt) })
	return len(r.idle) > 0
}
