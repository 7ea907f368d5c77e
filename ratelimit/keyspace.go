package ratelimit

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// A keyspace is what the classes of one Keyed share.
type keyspace struct {
	name   string
	policy string
	seeds  [2]maphash.Seed // for the first and the second part of a key
	table  keyTable
	tally  keyTally
	// config is what is in force, and never changed. Written under mu.
	config atomic.Pointer[KeyedConfig]
	// classes has by its name every class that there ever was. The map is never changed,
	// only replaced, under mu.
	classes atomic.Pointer[map[string]*Keyed]
	// rules has the rule of each tag that stands in a slot, from before the first slot
	// bears it until after the last. Written under mu.
	rules [tagMask + 1]atomic.Pointer[keyRule]
	tags  []uint64 // that no slot bears; under mu
	top   *topList // nil if none is kept
	// mu puts changes of the configuration in order. Locks of pages come after it.
	mu sync.Mutex
}

// hash tells keys apart. The seeds are secret, so nobody can choose keys that meet in
// one set.
func (ks *keyspace) hash(key string) uint64 { return maphash.String(ks.seeds[0], key) }

// hash2 is hash for a key of two parts. They are multiplied, so that some first and
// some second parts, each with each, lie as much at random as any other keys.
func (ks *keyspace) hash2(first, second string) uint64 {
	hi, lo := bits.Mul64(maphash.String(ks.seeds[0], first), maphash.String(ks.seeds[1], second))
	return hi ^ lo
}

// ruleOf is the rule that the position beside key is told by.
func (ks *keyspace) ruleOf(key uint64) *keyRule { return ks.rules[key&tagMask].Load() }
