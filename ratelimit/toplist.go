package ratelimit

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// HotKey is a key that has been refused often lately.
type HotKey struct {
	// Key is the key, or the first part of one of two, and Second is the second part.
	// Of both together the first 64 bytes are kept. They are empty for a key that only
	// TakeAll has asked for, until it asks again.
	Key    string `json:"key"`
	Second string `json:"second,omitempty"`
	// Refused is how many refusals were counted. Every minute all counts are halved. It may
	// be too high by Error, and is too low only by what was left out under heavy load.
	Refused int64 `json:"refused"`
	Error   int64 `json:"error"`
}

const (
	// hotWays is how many counters a set has.
	hotWays = 8
	// hotName is how many bytes of a key are kept.
	hotName = 64
	// hotHalf is after what time all counts are halved.
	hotHalf = int64(time.Minute)
)

// A topList finds the keys that are refused most with a fixed number of counters. It is
// the space-saving sketch of Metwally, Agrawal and El Abbadi (Efficient computation of
// frequent and top-k elements, 2005), one for each eight counters, which a key's hash
// chooses: a key without a counter takes over the lowest of the eight, and goes on from
// what that had. So a key with more than an eighth of its set's refusals has a counter,
// and none counts too little.
//
// Nobody waits for it. Who finds a set in use leaves his refusal out, which under heavy
// load makes it a sample. A nil *topList counts nothing.
type topList struct {
	sets []hotSet
	// wanted has hashes of keys that were counted without a name, each in its place by
	// its hash. Written by anybody; what is overwritten is soon wanted again.
	wanted [32]atomic.Uint64
}

type hotSet struct {
	mu       sync.Mutex
	since    int64 // when the counts were last halved
	counters [hotWays]hotCounter
}

type hotCounter struct {
	hash    uint64
	refused int64 // 0 if it is free
	error   int64
	name    [hotName]byte
	first   uint8 // bytes of name that are the key's first part
	length  uint8 // bytes of name; 0 if it is not known
}

// newTopList returns a list of n counters at least; nil if n is 0.
func newTopList(n int) *topList {
	if n == 0 {
		return nil
	}
	return &topList{sets: make([]hotSet, (n+hotWays-1)/hotWays)}
}

func (t *topList) setOf(hash uint64) *hotSet { return &t.sets[hash%uint64(len(t.sets))] }

func (t *topList) want(hash uint64) *atomic.Uint64 {
	return &t.wanted[hash/uint64(len(t.sets))%uint64(len(t.wanted))]
}

// refused counts a refusal of a key. Its name may be empty, if it is not known.
func (t *topList) refused(hash uint64, first, second string, now int64) {
	if t == nil {
		return
	}
	s := t.setOf(hash)
	if !s.mu.TryLock() {
		return
	}
	s.halve(now)
	c := s.counter(hash)
	c.refused++
	if c.length == 0 {
		c.call(first, second)
	}
	nameless := c.length == 0
	s.mu.Unlock()
	if nameless {
		t.want(hash).Store(hash)
	}
}

// meet takes the name of a key if it is wanted. It is called for every key, refused or
// not.
func (t *topList) meet(hash uint64, first, second string) {
	if t != nil && t.want(hash).Load() == hash {
		t.learn(hash, first, second)
	}
}

func (t *topList) learn(hash uint64, first, second string) {
	s := t.setOf(hash)
	if !s.mu.TryLock() {
		return
	}
	defer s.mu.Unlock()
	if c := s.find(hash); c != nil {
		c.call(first, second)
	}
	t.want(hash).CompareAndSwap(hash, 0)
}

// halve halves the counts for each minute that has passed. The caller holds s.mu.
func (s *hotSet) halve(now int64) {
	halves := (now - s.since) / hotHalf
	if halves <= 0 {
		return
	}
	s.since += halves * hotHalf
	for i := range s.counters {
		s.counters[i].refused >>= min(halves, 63)
		s.counters[i].error >>= min(halves, 63)
	}
}

// find returns the counter of the key of hash, or nil. The caller holds s.mu.
func (s *hotSet) find(hash uint64) *hotCounter {
	for i := range s.counters {
		if c := &s.counters[i]; c.hash == hash && c.refused > 0 {
			return c
		}
	}
	return nil
}

// counter returns the counter of the key of hash, and takes over the lowest for it if it
// has none. The caller holds s.mu.
func (s *hotSet) counter(hash uint64) *hotCounter {
	if c := s.find(hash); c != nil {
		return c
	}
	c := &s.counters[0]
	for i := range s.counters {
		if s.counters[i].refused < c.refused {
			c = &s.counters[i]
		}
	}
	c.hash, c.error, c.first, c.length = hash, c.refused, 0, 0
	return c
}

// call gives the counter the name of its key, as far as there is room.
func (c *hotCounter) call(first, second string) {
	n := copy(c.name[:], first)
	c.first = uint8(n)
	c.length = uint8(n + copy(c.name[n:], second))
}

// top returns the n keys with the highest counts, the highest first.
func (t *topList) top(n int, now int64) []HotKey {
	if t == nil || n <= 0 {
		return nil
	}
	var all []HotKey
	for i := range t.sets {
		s := &t.sets[i]
		s.mu.Lock()
		s.halve(now)
		for i := range s.counters {
			if c := &s.counters[i]; c.refused > 0 {
				name := string(c.name[:c.length])
				all = append(all, HotKey{name[:c.first], name[c.first:], c.refused, c.error})
			}
		}
		s.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b HotKey) int {
		return cmp.Or(cmp.Compare(b.Refused, a.Refused), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Second, b.Second))
	})
	return all[:min(n, len(all))]
}
