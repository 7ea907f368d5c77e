package breaker

import "sync/atomic"

// roster is the keys of a Group: a map that readers use without a lock, and beside
// it what has changed since that map was made. Making a new one costs as much as
// there are keys, so it is put off until enough has changed, or enough readers
// have missed, to pay for it.
type roster struct {
	// known is never changed, only replaced, by publish.
	known atomic.Pointer[map[string]*member]

	// The rest is guarded by Group.mu.
	fresh   map[string]*member
	pending int // changes and misses since known was made
}

// find looks key up without a lock. A member that is new may be missing, and one
// that has been removed may still be there.
func (r *roster) find(key string) *member {
	if known := r.known.Load(); known != nil {
		return (*known)[key]
	}
	return nil
}

// get looks key up for sure. The caller holds Group.mu, as for what follows.
func (r *roster) get(key string) *member {
	if m := r.fresh[key]; m != nil {
		r.changed()
		return m
	}
	if m := r.find(key); m != nil && !m.removed {
		return m
	}
	return nil
}

func (r *roster) add(m *member) {
	if r.fresh == nil {
		r.fresh = map[string]*member{}
	}
	r.fresh[m.key] = m
	r.changed()
}

func (r *roster) remove(m *member) {
	m.removed = true
	if r.fresh[m.key] == m {
		delete(r.fresh, m.key)
	}
	r.changed()
}

// all returns every member there is.
func (r *roster) all() []*member {
	all := make([]*member, 0, len(r.fresh))
	for _, m := range r.fresh {
		all = append(all, m)
	}
	if known := r.known.Load(); known != nil {
		for key, m := range *known {
			if _, newer := r.fresh[key]; !newer && !m.removed {
				all = append(all, m)
			}
		}
	}
	return all
}

// changed publishes when it is worth its cost.
func (r *roster) changed() {
	r.pending++
	size := len(r.fresh)
	if known := r.known.Load(); known != nil {
		size += len(*known)
	}
	if r.pending <= size/8+2 {
		return
	}
	all := r.all()
	known := make(map[string]*member, len(all))
	for _, m := range all {
		known[m.key] = m
	}
	r.known.Store(&known)
	r.fresh, r.pending = nil, 0
}
