package roster

import "sync/atomic"

// keys is the members of a Roster: a map that readers use without a lock, and beside
// it what has changed since that map was made. Making a new one costs as much as
// there are keys, so it is put off until enough has changed, or enough readers
// have missed, to pay for it.
type keys[T any] struct {
	// known is never changed, only replaced, by changed.
	known atomic.Pointer[map[string]*Member[T]]

	// The rest is guarded by Roster.mu.
	fresh   map[string]*Member[T]
	pending int // changes and misses since known was made
}

// find looks key up without a lock. A member that is new may be missing, and one
// that has been removed may still be there.
func (k *keys[T]) find(key string) *Member[T] {
	if known := k.known.Load(); known != nil {
		return (*known)[key]
	}
	return nil
}

// get looks key up for sure. The caller holds Roster.mu, as for what follows.
func (k *keys[T]) get(key string) *Member[T] {
	if m := k.fresh[key]; m != nil {
		k.changed()
		return m
	}
	if m := k.find(key); m != nil && !m.removed {
		return m
	}
	return nil
}

func (k *keys[T]) add(m *Member[T]) {
	if k.fresh == nil {
		k.fresh = map[string]*Member[T]{}
	}
	k.fresh[m.Key] = m
	k.changed()
}

func (k *keys[T]) remove(m *Member[T]) {
	m.removed = true
	if k.fresh[m.Key] == m {
		delete(k.fresh, m.Key)
	}
	k.changed()
}

// all returns every member there is.
func (k *keys[T]) all() []*Member[T] {
	all := make([]*Member[T], 0, len(k.fresh))
	for _, m := range k.fresh {
		all = append(all, m)
	}
	if known := k.known.Load(); known != nil {
		for key, m := range *known {
			if _, newer := k.fresh[key]; !newer && !m.removed {
				all = append(all, m)
			}
		}
	}
	return all
}

// changed makes a new map when it is worth its cost.
func (k *keys[T]) changed() {
	k.pending++
	size := len(k.fresh)
	if known := k.known.Load(); known != nil {
		size += len(*known)
	}
	if k.pending <= size/8+2 {
		return
	}
	all := k.all()
	known := make(map[string]*Member[T], len(all))
	for _, m := range all {
		known[m.Key] = m
	}
	k.known.Store(&known)
	k.fresh, k.pending = nil, 0
}
