package ratelimit

import "time"

// settle returns the slot of a key under r, which is in force, and finds it one if it
// has none. If that would be at the cost of another key, and it may not, it returns nil
// and how long it takes until a slot is free. The caller holds the page's lock.
func (ks *keyspace) settle(hash uint64, r *keyRule, now int64, evict bool) (s keySlot, wait time.Duration) {
	if s, ok := ks.table.search(hash); ok {
		ks.convert(s, hash, r, now)
		return s, 0
	}
	for {
		v := ks.survey(hash, now)
		switch {
		case v.free.slot.there():
			if v.free.occupy(hash, r, now) {
				ks.tally.settle(v.free.fresh)
				return v.free.slot, 0
			}
		case !evict:
			return keySlot{}, v.wait(now)
		case v.least.occupy(hash, r, now):
			ks.tally.evict()
			return v.least.slot, 0
		}
	}
}

// convert makes s, the slot of a key, tell its position by r. The caller holds the lock
// that s.key is written under.
func (ks *keyspace) convert(s keySlot, hash uint64, r *keyRule, now int64) {
	key := s.key.Load()
	if key&tagMask == r.tag {
		return
	}
	used := r.full(now)
	if from := ks.ruleOf(key); from != nil {
		used = r.adopt(s.used.Swap(frozen), from, now)
	}
	s.key.Store(keyOf(hash, r.tag))
	s.used.Store(used)
}

// level is how many units the key of hash has in s, in those of r. ok is false if what
// is there changes just now.
func (ks *keyspace) level(s keySlot, hash uint64, r *keyRule, now int64) (level int64, ok bool) {
	used, key := s.used.Load(), s.key.Load()
	if key == 0 {
		return r.own.burst, true
	}
	if used == frozen || !isKeyOf(key, hash) {
		return 0, false
	}
	return min(r.own.at(now)-r.adopt(used, ks.ruleOf(key), now), r.own.burst), true
}

// A place is a slot where a key may settle, as it was found.
type place struct {
	slot  keySlot
	used  int64
	fresh bool // it has no key
}

// occupy gives the slot to the key of hash under r, with a full bucket. It does not if
// somebody has taken from the key that is there. The caller holds the page's lock.
func (p place) occupy(hash uint64, r *keyRule, now int64) bool {
	if p.fresh {
		p.slot.used.Store(frozen)
	} else if !p.slot.used.CompareAndSwap(p.used, frozen) {
		return false
	}
	p.slot.key.Store(keyOf(hash, r.tag))
	p.slot.used.Store(r.full(now))
	return true
}

// A survey is what the two sets of a key have to offer.
type survey struct {
	// free is where nothing is lost: a slot without a key, or with one whose bucket is
	// full. It is in the first set as long as that is half free, where it is found sooner,
	// and otherwise in the set that has fewer others.
	free place
	// least is the slot of the key that will be full soonest, in so many nanoseconds or
	// nearly: debt units under rule are missing.
	least place
	rule  *keyRule
	debt  int64
	soon  float64
}

// survey looks for a place for a key that has none. If the page is not locked, what it
// finds is only likely.
func (ks *keyspace) survey(hash uint64, now int64) (v survey) {
	l := look{ks: ks, now: now}
	free, fewest := l.at(ks.table.first(hash), &v)
	if v.free = free; fewest < keyWays/2 {
		return v
	}
	if free, taken := l.at(ks.table.second(hash), &v); taken < fewest {
		v.free = free
	}
	return v
}

// wait is how long it takes until the first place is free, if none is.
func (v *survey) wait(now int64) time.Duration {
	at := v.rule.own.at(now)
	return v.rule.own.between(at, at+v.debt)
}

// A look goes through sets. It remembers what it knows of the last slot's rule, which
// mostly is that of the next one too.
type look struct {
	ks        *keyspace
	now       int64
	tag       uint64
	has, rule *keyRule // of that tag, and the one in force of that class
	full      int64    // under rule
}

// at looks at one set. There is a free place unless all are taken.
func (l *look) at(set *keySet, v *survey) (free place, taken int) {
	for i := range keyWays {
		s := set.slot(i)
		used, key := s.used.Load(), s.key.Load()
		if key == 0 {
			free = place{slot: s, fresh: true}
			continue
		}
		debt := l.debt(key, used)
		if debt <= 0 {
			if !free.slot.there() {
				free = place{slot: s, used: used}
			}
			continue
		}
		taken++
		if soon := float64(debt) / float64(l.rule.own.mul); v.rule == nil || soon < v.soon {
			v.least, v.rule, v.debt, v.soon = place{slot: s, used: used}, l.rule, debt, soon
		}
	}
	return free, taken
}

// debt is how many units are missing until the bucket is full of a key that has that
// position.
func (l *look) debt(key uint64, used int64) int64 {
	if tag := key & tagMask; tag != l.tag {
		l.tag, l.has = tag, l.ks.ruleOf(key)
		l.rule = l.has.newest()
		l.full = l.rule.full(l.now)
	}
	if l.rule.most == 0 {
		return 0
	}
	if l.has != l.rule {
		used = l.rule.adopt(used, l.has, l.now)
	}
	return used - l.full
}
