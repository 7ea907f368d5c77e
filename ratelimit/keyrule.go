package ratelimit

import (
	"sync/atomic"
	"time"
)

// ReasonTooManyKeys is the reason of a refusal by a Keyed whose table has no slot for
// one key more.
const ReasonTooManyKeys = "too_many_keys"

// A keyRule is the limit of one class of keys for as long as it is in force, and the
// judge of the decisions about them. Nothing in it changes but heir.
type keyRule struct {
	claim
	// own has the scale and the burst for all keys. Its own position is not used: that
	// of each key is in its slot.
	own    bucket
	debt   int64 // units that a key may owe
	class  *Keyed
	limits Config // the rate, burst and debt that it was made of
	tag    uint64 // what the slots of its keys bear; 0 if the rate is none, and no key needs a slot
	// denied and shared are the origins of what keys without a slot are told: no, and
	// what the slot says that they have in common.
	denied, shared origin
	// heir is the rule that took its place; nil while it is in force. Set by replace.
	heir atomic.Pointer[keyRule]
}

// newKeyRule returns the rule of class with that limit, which is valid. It begins now.
func newKeyRule(class *Keyed, limit Config, tag uint64, now int64) *keyRule {
	r := &keyRule{class: class, limits: limit}
	if bounded(limit.Rate) {
		r.own.scale = newScale(limit.Rate.perNano(), now)
		r.own.burst = limit.burst() * r.own.unit
		r.debt = limit.debt() * r.own.unit
		r.tag = tag
	}
	r.claim.init(class.space.name, class.space.policy, limit.Rate, &r.own, 0)
	if r.most > 0 {
		r.judge = r
	}
	r.denied, r.shared = r.origin, r.origin
	r.denied.judge = noSlot{}
	r.denied.reason, r.shared.reason = ReasonTooManyKeys, ReasonTooManyKeys
	return r
}

// bounded reports whether r is a rate that a bucket can have.
func bounded(r Rate) bool { return !r.IsUnlimited() && !r.IsBlocked() }

// newest is the rule in force of r's class.
func (r *keyRule) newest() *keyRule {
	for {
		next := r.heir.Load()
		if next == nil {
			return r
		}
		r = next
	}
}

// full is the position of a key that nobody has asked for.
func (r *keyRule) full(now int64) int64 { return r.own.at(now) - r.own.burst }

// adopt turns used, the position of a key under rule from, into that under r, as if
// each rule between them had taken it over when the rule before ended. A full bucket
// stays full, because that is what a key without a slot has. Any other keeps its
// tokens, as far as the new burst can hold them, or its debt. If r is the rule of
// another class, the key has left its own now.
func (r *keyRule) adopt(used int64, from *keyRule, now int64) int64 {
	for from != r {
		next, at := from.heir.Load(), now
		if next == nil {
			next = r
		} else {
			at = next.own.epoch
		}
		level := next.own.burst
		if from.most > 0 && used > from.full(at) {
			level = min(level, rescale(from.own.at(at)-used, from.own.unit, next.own.unit))
		}
		used, from = next.own.at(at)-level, next
	}
	return used
}

// worth is what d, a take under r, is worth under rule to: so many units, less what
// comes from position since on. It is 0 if to has not followed from r.
func (r *keyRule) worth(d Decision, to *keyRule) (units, since int64) {
	units, since = d.n*r.own.unit, d.mark-d.lack
	for r != to {
		next := r.heir.Load()
		if next == nil || r.most == 0 {
			return 0, 0
		}
		units -= r.own.at(next.own.epoch) - since
		units, since = rescale(max(0, units), r.own.unit, next.own.unit), 0
		r = next
	}
	return units, since
}

// answer is what a key of that level is told that asks for n tokens and takes none.
func (r *keyRule) answer(by *origin, n, level, now int64) Decision {
	d := Decision{by: by, n: n, mark: r.own.at(now)}
	switch {
	case n > r.most:
		d.lack = r.brim() - level
	case n*r.own.unit > level:
		d.lack = n*r.own.unit - level
	default:
		d.lack, d.mark = -level, untaken
	}
	return d
}

// noSlot is the judge of refusals for want of a slot: mark is how long it takes until
// one can be given away.
type noSlot struct{}

func (noSlot) remaining(Decision) int64            { return 0 }
func (noSlot) retryAfter(d Decision) time.Duration { return time.Duration(d.mark) }
func (noSlot) resetAfter(d Decision) time.Duration { return time.Duration(d.mark) }
