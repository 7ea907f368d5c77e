package ratelimit

import (
	"runtime"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// take, peek, giveBack and count are what TakeAll uses, and most methods.
func (k *Keyed) take(hash uint64, n, now int64) Decision {
	r := k.rule.Load()
	if r.can(n) {
		key := keyOf(hash, r.tag)
		if s, ok := k.space.table.find(hash, key); ok {
			if lack, mark, ok := s.take(key, r, n, now); ok {
				return Decision{&r.origin, n, lack, mark}
			}
		}
	}
	return k.takeNew(hash, n, now)
}

// takeNew is take for a key that is not in the table, or not by the rule in force.
func (k *Keyed) takeNew(hash uint64, n, now int64) Decision {
	for {
		r := k.ruleAt(now)
		if !r.can(n) {
			return k.peek(hash, n, now)
		}
		if d, ok := k.enter(hash, r, charge{n: n}, now); ok {
			return d
		}
	}
}

func (k *Keyed) debit(hash uint64, n, now int64) Decision {
	for n > 0 {
		r := k.ruleAt(now)
		if r.most == 0 {
			break
		}
		key := keyOf(hash, r.tag)
		if s, ok := k.space.table.find(hash, key); ok && s.debit(key, r, n, now) {
			k.space.tally.answers.tokens(n)
			break
		}
		if d, ok := k.enter(hash, r, charge{n: n, debit: true}, now); ok {
			if d.OK() {
				k.space.tally.answers.tokens(n)
			}
			break
		}
	}
	return k.peek(hash, min(n, 0), now)
}

// A charge is a take or a debit.
type charge struct {
	n     int64
	debit bool
}

// enter makes the charge on the slot of a key, which it finds one first if need be. ok
// is false if r is no longer in force, and nothing was done.
func (k *Keyed) enter(hash uint64, r *keyRule, c charge, now int64) (d Decision, ok bool) {
	ks := k.space
	policy := ks.config.Load().WhenFull
	if policy != EvictLeastDebt {
		if _, held := ks.table.search(hash); !held {
			if v := ks.survey(hash, now); !v.free.slot.there() {
				return k.outside(r, policy, v.wait(now), c, now) // most likely, and without the lock
			}
		}
	}
	lock := ks.table.lockOf(hash)
	lock.Lock()
	if r.heir.Load() != nil {
		lock.Unlock()
		return d, false
	}
	s, wait := ks.settle(hash, r, now, policy == EvictLeastDebt)
	if s.there() {
		d, ok = c.on(s, keyOf(hash, r.tag), r, &r.origin, now)
	}
	lock.Unlock()
	if !s.there() {
		return k.outside(r, policy, wait, c, now)
	}
	return d, ok
}

// on makes the charge on the slot of key.
func (c charge) on(s keySlot, key uint64, r *keyRule, by *origin, now int64) (d Decision, ok bool) {
	d = Decision{by: by, n: c.n}
	if c.debit {
		return d, s.debit(key, r, c.n, now)
	}
	d.lack, d.mark, ok = s.take(key, r, c.n, now)
	return d, ok
}

// outside makes the charge for a key that has no slot: on the one that all of those
// share, or not at all.
func (k *Keyed) outside(r *keyRule, policy WhenFull, wait time.Duration, c charge, now int64) (d Decision, ok bool) {
	if policy == DenyNew {
		return Decision{&r.denied, c.n, 1, int64(wait)}, true
	}
	if d, ok = c.on(k.spare.slot(), keyOf(0, r.tag), r, &r.shared, now); ok {
		return d, true
	}
	k.spareLock.Lock()
	defer k.spareLock.Unlock()
	if r.heir.Load() != nil {
		return d, false
	}
	k.space.convert(k.spare.slot(), 0, r, now)
	return c.on(k.spare.slot(), keyOf(0, r.tag), r, &r.shared, now)
}

func (k *Keyed) peek(hash uint64, n, now int64) Decision {
	for {
		r := k.ruleAt(now)
		if n < 0 || r.most == 0 {
			d, _ := r.claim.peek(n, now)
			return d
		}
		if d, ok := k.look(hash, r, n, now); ok {
			return d
		}
	}
}

// look tells what a key under r is told that asks for n tokens, and takes none. ok is
// false if its slot changes just now.
func (k *Keyed) look(hash uint64, r *keyRule, n, now int64) (d Decision, ok bool) {
	ks, by, level := k.space, &r.origin, r.own.burst
	s, held := ks.table.search(hash)
	if policy := ks.config.Load().WhenFull; !held && policy != EvictLeastDebt {
		if v := ks.survey(hash, now); !v.free.slot.there() {
			if policy == DenyNew {
				return Decision{&r.denied, n, 1, int64(v.wait(now))}, true
			}
			s, held, hash, by = k.spare.slot(), true, 0, &r.shared
		}
	}
	if held {
		if level, ok = ks.level(s, hash, r, now); !ok {
			runtime.Gosched() // for as long as settle takes
			return d, false
		}
	}
	return r.answer(by, n, level, now), true
}

func (k *Keyed) giveBack(hash uint64, d Decision, _ int64) {
	from, ok := d.by.judge.(*keyRule)
	if !ok || d.mark == untaken {
		return
	}
	ks := k.space
	s, held := ks.table.search(hash)
	if d.by == &from.shared {
		s, held, hash = from.class.spare.slot(), true, 0
	}
	for held {
		key := s.key.Load()
		if !isKeyOf(key, hash) || s.giveBack(key, ks.ruleOf(key), from, d, clock.Now) {
			return
		}
		runtime.Gosched() // for as long as settle takes
	}
}

func (k *Keyed) count(hash uint64, d Decision) {
	k.space.tally.count(d)
	if k.space.top != nil && !d.OK() {
		k.space.top.refused(hash, "", "", madeAt(d))
	}
}

// madeAt is when d, a refusal, was made, if it says so; else 0.
func madeAt(d Decision) int64 {
	r, ok := d.by.judge.(*keyRule)
	if !ok || d.n < 0 {
		return 0
	}
	return r.own.epoch + int64(r.own.span(d.mark))
}

func (k *Keyed) refund(hash uint64, d Decision) {
	if d.tookSome() {
		k.giveBack(hash, d, 0)
		k.space.tally.answers.countRefund()
	}
}
