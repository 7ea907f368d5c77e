package ratelimit

// read returns the position of key, if it is there. The key is looked at after the
// position, so that this is not that of another one, which came in between.
func (s keySlot) read(key uint64) (used int64, there bool) {
	used = s.used.Load()
	return used, s.key.Load() == key
}

// move takes key from one position to another. It does nothing if somebody has done so
// before, or if the key is not there any more. That is looked at again afterwards, for
// the key that came instead may have come to the very same position; it is then put
// back. If it is the same key, and only its rule is another one now, the move counts for
// it, although it is said not to have been made: too much, rather than too little.
func (s keySlot) move(key uint64, from, to int64) (moved, there bool) {
	if !s.used.CompareAndSwap(from, to) {
		return false, true
	}
	if s.key.Load() == key {
		return true, true
	}
	s.used.CompareAndSwap(to, from)
	return false, false
}

// take takes n tokens, of which r can give so many, of key, whose tag is r's. lack and
// mark are as for a bucket's take. ok is false if it must be done again with the page
// locked: the key has left the slot or is about to, or r is not in force any more or at
// its end.
func (s keySlot) take(key uint64, r *keyRule, n, now int64) (lack, mark int64, ok bool) {
	if r.own.ended(now) {
		return 0, 0, false
	}
	v, cost := r.own.at(now), n*r.own.unit
	for {
		used, there := s.read(key)
		if !there || r.heir.Load() != nil {
			return 0, 0, false
		}
		end := max(used, v-r.own.burst) + cost
		if lack = end - v; lack > 0 {
			return lack, v, used != frozen
		}
		if moved, there := s.move(key, used, end); moved || !there {
			return lack, end, moved
		}
	}
}

// debit takes n tokens whether they are there or not, down to r's debt. ok is as for
// take.
func (s keySlot) debit(key uint64, r *keyRule, n, now int64) (ok bool) {
	if r.own.ended(now) {
		return false
	}
	v, cost := r.own.at(now), r.debt+r.own.burst
	if n < cost/r.own.unit {
		cost = n * r.own.unit
	}
	for {
		used, there := s.read(key)
		if !there || used == frozen || r.heir.Load() != nil {
			return false
		}
		end := min(max(used, v-r.own.burst)+cost, v+r.debt)
		if end <= used {
			return true
		}
		if moved, there := s.move(key, used, end); moved || !there {
			return moved
		}
	}
}

// giveBack gives back what d, a take under rule from, took of key, whose rule is to. ok
// is as for take.
//
// If nobody has taken since, that is all of it: only this take stands between the bucket
// and the brim. Otherwise it is what cannot have come back by itself since the take,
// however full the bucket was meanwhile:
//
//	refund = cost − (at(now) − at(then)), at least 0
//
// Time is read after used: if somebody takes in between, who may have seen the bucket
// full, the move fails.
func (s keySlot) giveBack(key uint64, to, from *keyRule, d Decision, now func() int64) (ok bool) {
	for {
		used, there := s.read(key)
		if !there || used == frozen {
			return false
		}
		refund := d.n * from.own.unit
		if from != to || used != d.mark {
			units, since := from.worth(d, to)
			refund = units - max(0, to.own.at(now())-since)
		}
		if refund <= 0 {
			return true
		}
		// A key whose bucket has become full by this may lose its slot at once. So when it
		// is not there any more, the move may have been made all the same, and is not made
		// again: that would give back the token of somebody who has taken it since.
		if moved, there := s.move(key, used, used-refund); moved || !there {
			return true
		}
	}
}
