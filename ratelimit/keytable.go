package ratelimit

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

const (
	// keyWays is how many slots a set has.
	keyWays = 8
	// pageSets is how many sets a page has at most: 4 KiB, so that both sets of a key
	// are found with one look into the processor's table of pages.
	pageSets = 32
	// tagMask covers the tag in a slot's key.
	tagMask = 1<<8 - 1
)

// A keyTable is where the keys of a Keyed are: a fixed number of slots of 16 bytes, in
// sets of eight, in pages of up to 32 sets. Each key has two sets, in one page, and lives
// in either. The table holds no pointer and no text, never grows, and needs nobody to
// sweep it.
//
// Who finds his key in a slot takes from it with one CompareAndSwap and no lock. Keys
// come, go and get another rule only under the lock of their page, so that no key is
// ever in two slots; and who comes across one on its way waits for that lock instead of
// spinning.
type keyTable struct {
	sets    []keySet
	pages   []sync.Mutex
	perPage uint64 // sets: a power of two, 2 at least
}

// keySet is a set's slots, all keys on one cache line and all positions on the next.
type keySet struct {
	key  [keyWays]atomic.Uint64
	used [keyWays]atomic.Int64
}

// A keySlot is where one key is. A bucket that has not been used for long is full, and
// that is the same as none at all; so this is all that there is to know.
type keySlot struct {
	// key is the upper 56 bits of the key's hash, and the tag of the rule in whose units
	// used is told; 0 if no key is there. Written under the page's lock, while used is
	// frozen.
	key *atomic.Uint64
	// used is the position of the key's bucket, as in bucket, or frozen while key
	// changes. Takes raise it and refunds lower it by CompareAndSwap, without the lock.
	used *atomic.Int64
}

// there reports whether s is a slot; the zero keySlot is none.
func (s keySlot) there() bool { return s.key != nil }

// newKeyTable returns a table for so many keys, with a quarter more slots at least.
func newKeyTable(keys int) keyTable {
	sets := (uint64(keys)*5 + 4*keyWays - 1) / (4 * keyWays)
	t := keyTable{perPage: pageSets}
	if sets < pageSets {
		t.perPage = max(2, uint64(1)<<bits.Len64(sets-1))
	}
	pages := (sets + t.perPage - 1) / t.perPage
	t.sets, t.pages = make([]keySet, pages*t.perPage), make([]sync.Mutex, pages)
	return t
}

// page is which page hash belongs to.
func (t *keyTable) page(hash uint64) uint64 {
	page, _ := bits.Mul64(hash, uint64(len(t.pages)))
	return page
}

// lockOf is the lock of the page of hash.
func (t *keyTable) lockOf(hash uint64) *sync.Mutex { return &t.pages[t.page(hash)] }

// of returns the sets of a page.
func (t *keyTable) of(page int) []keySet {
	n := int(t.perPage)
	return t.sets[page*n:][:n]
}

// first is where a key is looked for first.
func (t *keyTable) first(hash uint64) *keySet {
	return &t.sets[t.page(hash)*t.perPage+hash&(t.perPage-1)]
}

// second is where a key is looked for next: another set of the same page.
func (t *keyTable) second(hash uint64) *keySet {
	other := 1 + (uint64(uint32(hash>>8))*(t.perPage-1))>>32 // 1 to perPage − 1
	return &t.sets[t.page(hash)*t.perPage+(hash^other)&(t.perPage-1)]
}

// find returns the slot of key, which is keyOf hash and a tag; or none.
func (t *keyTable) find(hash, key uint64) (s keySlot, ok bool) {
	set := t.first(hash)
	i := set.index(key)
	if i == 0 {
		set = t.second(hash)
		i = set.index(key)
	}
	return set.slot(i - 1), i > 0
}

// search is find for whatever tag. If the page is not locked, the key may leave the slot
// at any time.
func (t *keyTable) search(hash uint64) (s keySlot, ok bool) {
	set := t.first(hash)
	i := set.search(hash)
	if i == 0 {
		set = t.second(hash)
		i = set.search(hash)
	}
	return set.slot(i - 1), i > 0
}

func (s *keySet) slot(i int) keySlot {
	i &= keyWays - 1
	return keySlot{&s.key[i], &s.used[i]}
}

// A spareSlot is a slot outside of a table.
type spareSlot struct {
	key  atomic.Uint64
	used atomic.Int64
}

func (s *spareSlot) slot() keySlot { return keySlot{&s.key, &s.used} }

// index returns which slot has key, from 1; 0 if none has. It has no branches, which
// nobody could predict, and would cost as much as all the rest.
func (s *keySet) index(key uint64) (i int) {
	if s.key[0].Load() == key {
		i = 1
	}
	if s.key[1].Load() == key {
		i = 2
	}
	if s.key[2].Load() == key {
		i = 3
	}
	if s.key[3].Load() == key {
		i = 4
	}
	if s.key[4].Load() == key {
		i = 5
	}
	if s.key[5].Load() == key {
		i = 6
	}
	if s.key[6].Load() == key {
		i = 7
	}
	if s.key[7].Load() == key {
		i = 8
	}
	return i
}

// search is index for whatever tag.
func (s *keySet) search(hash uint64) int {
	for i := range s.key {
		if isKeyOf(s.key[i].Load(), hash) {
			return i + 1
		}
	}
	return 0
}

// keyOf is what keySlot.key is for a key of that hash and a rule of that tag.
func keyOf(hash, tag uint64) uint64 { return hash&^tagMask | tag }

// isKeyOf reports whether key is keyOf hash and any tag.
func isKeyOf(key, hash uint64) bool { return (key^hash)&^tagMask == 0 && key&tagMask != 0 }
