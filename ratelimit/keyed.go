package ratelimit

import (
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
)

// Keyed is a token bucket for each of many keys, such as users or addresses, in a table
// of fixed size that takes 20 bytes for each key that it is made for. A flood of keys
// costs no memory.
//
// It promises of each key what a Limiter promises: in any time w at most burst + rate ×
// w tokens are taken. A bucket that is full again is as good as none, so a key that needs
// a slot takes it from one whose bucket is full, and nothing is lost. Only when all slots
// where it may be are taken by keys that are not full, something must give, and WhenFull
// says what: by default the key among them that would be full soonest, which begins anew
// when it comes again, with one burst more than it should have had. That is counted. It
// happens to one key in 800 when there are as many as the table is made for, and hardly
// ever when there are half as many.
//
// No limit for each key holds against somebody who has many keys. So let one stand
// before it for what he has fewer of (networks), and one for all: see TakeAll.
//
// Most callers want Allow or Take. The methods whose names end in 2 take keys of two
// parts, such as a user and a route, and build no string of them. Class returns the
// limiter of keys that have another limit, such as the users of a plan.
//
// Asking and giving back allocate nothing. A key that has a slot is decided on without a
// lock. One that comes new, or moves to another class, locks its page of the table, which
// has 256 slots, for as long as it takes to look at 16 of them; if it is refused for want
// of a slot, it does not. A Keyed starts no goroutine, is safe for concurrent use and must
// not be copied. A nil *Keyed lets everything pass; the zero Keyed is of no use, make one
// with NewKeyed.
type Keyed struct {
	space *keyspace
	// rule is the rule in force for keys of this class. Written under space.mu.
	rule  atomic.Pointer[keyRule]
	tier  tier
	class string // "" for keys of no class
	// spare is what keys without a slot share under OverflowKey. Its key, which is only
	// a tag, is written under spareLock.
	spare     spareSlot
	spareLock sync.Mutex
}

// NewKeyed returns a limiter of that name, which must not be empty, with that rate for
// each key. It returns every complaint about them and the options at once.
//
// For package variables there is sluice.Must.
func NewKeyed(name string, rate Rate, opts ...KeyedOption) (*Keyed, error) {
	c, counted, err := applyKeyed(name, rate, opts)
	if err != nil {
		return nil, err
	}
	return newKeyed(name, "keyed", c, counted, clock.Now()), nil
}

// Name returns the name given to NewKeyed.
func (k *Keyed) Name() string {
	if k == nil {
		return ""
	}
	return k.space.name
}

// Class returns the limiter of the keys of that class, or of those of no class if there
// is none of that name. It is the same table, and all that belongs to it, with the limit of
// the class. A key that is asked for in another class than before moves there, and keeps
// its tokens as far as the burst can hold them.
func (k *Keyed) Class(name string) *Keyed {
	if k == nil {
		return nil
	}
	classes := *k.space.classes.Load()
	if class, ok := classes[name]; ok {
		return class
	}
	return classes[""]
}

// Allow takes a token of key if there is one, and reports whether.
func (k *Keyed) Allow(key string) bool { return k.Take(key, 1).OK() }

// Allow2 is Allow for a key of two parts.
func (k *Keyed) Allow2(first, second string) bool { return k.Take2(first, second, 1).OK() }

// Take takes n tokens of key if there are so many, and tells what it decided. An n of 0
// takes nothing; it is refused while the key is in debt. An n that is negative or more
// than the burst is never admitted.
func (k *Keyed) Take(key string, n int64) Decision {
	if k == nil {
		return unlimited(n)
	}
	hash, now := k.space.hash(key), clock.Now()
	d := k.take(hash, n, now)
	if k.space.tally.count(d); !d.OK() {
		k.space.top.refused(hash, key, "", now)
	}
	return d
}

// Take2 is Take for a key of two parts.
func (k *Keyed) Take2(first, second string, n int64) Decision {
	if k == nil {
		return unlimited(n)
	}
	hash, now := k.space.hash2(first, second), clock.Now()
	d := k.take(hash, n, now)
	if k.space.tally.count(d); !d.OK() {
		k.space.top.refused(hash, first, second, now)
	}
	return d
}

// Peek tells what Take would answer, and takes and counts nothing. Peek of 0 tokens is
// for looking at what is there.
func (k *Keyed) Peek(key string, n int64) Decision {
	if k == nil {
		return unlimited(n)
	}
	return k.peek(k.space.hash(key), n, clock.Now())
}

// Peek2 is Peek for a key of two parts.
func (k *Keyed) Peek2(first, second string, n int64) Decision {
	if k == nil {
		return unlimited(n)
	}
	return k.peek(k.space.hash2(first, second), n, clock.Now())
}

// Debit takes n tokens of key whether they are there or not: for what a call turned out
// to cost. The key goes into debt by at most MaxDebt; what is beyond is not charged, nor
// is a key that finds no slot. Debit returns what Peek of 0 tokens then says; only a
// negative n is refused.
func (k *Keyed) Debit(key string, n int64) Decision {
	if k == nil {
		return unlimited(n)
	}
	return k.debit(k.space.hash(key), n, clock.Now())
}

// Debit2 is Debit for a key of two parts.
func (k *Keyed) Debit2(first, second string, n int64) Decision {
	if k == nil {
		return unlimited(n)
	}
	return k.debit(k.space.hash2(first, second), n, clock.Now())
}

// Refund gives back what d took of key: the call was not made after all, or is not to
// count. It gives back all if nobody has taken of that key since, and otherwise what
// cannot have come back by itself since then, which is a little less; nothing if the
// bucket is full without it, or if the key has been forgotten or moved to another
// class. It is for a Decision of that key, once; for one that took nothing it does
// nothing.
func (k *Keyed) Refund(key string, d Decision) {
	if k != nil {
		k.refund(k.space.hash(key), d)
	}
}

// Refund2 is Refund for a key of two parts.
func (k *Keyed) Refund2(first, second string, d Decision) {
	if k != nil {
		k.refund(k.space.hash2(first, second), d)
	}
}

// By returns key as a Layer of TakeAll.
func (k *Keyed) By(key string) Layer {
	if k == nil {
		return Layer{}
	}
	hash := k.space.hash(key)
	k.space.top.meet(hash, key, "")
	return Layer{of: &k.tier, key: hash}
}

// By2 is By for a key of two parts.
func (k *Keyed) By2(first, second string) Layer {
	if k == nil {
		return Layer{}
	}
	hash := k.space.hash2(first, second)
	k.space.top.meet(hash, first, second)
	return Layer{of: &k.tier, key: hash}
}
