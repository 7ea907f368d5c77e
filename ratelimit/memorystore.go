package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// MemoryStore is a Store in the memory of this process: for limiters that share a
// limit within it, for a token server, and for tests of what would use another one.
//
// It holds at most so many keys. Keys whose bucket is full are forgotten as new ones
// come, which loses nothing; when all others are in use, the fullest of a few makes
// room and is full then, which Evicted counts. A call takes a mutex for some
// arithmetic and does no I/O. Its clock is monotonic.
//
// It starts no goroutine, is safe for concurrent use and must not be copied. Make one
// with NewMemoryStore.
type MemoryStore struct {
	seed    maphash.Seed
	shards  [storeShards]storeShard
	evicted atomic.Int64
	most    int // keys in a shard, and nodes of a limiter

	mu    sync.Mutex                  // guards nodes
	nodes map[string]map[string]int64 // limiter, node → until when it lives
}

const (
	storeShards = 16
	few         = 8 // how much is looked at when there may be something to forget
)

type storeShard struct {
	mu    sync.Mutex // guards cells
	cells map[StoreKey]storeCell
}

type storeCell struct {
	storeLevel
	fullAt int64 // from then on the cell says nothing
}

// NewMemoryStore returns an empty store of at most maxKeys keys, rounded up to a
// multiple of 16. A key takes about 150 bytes and its name.
func NewMemoryStore(maxKeys int) (*MemoryStore, error) {
	if maxKeys < 1 {
		return nil, fmt.Errorf("ratelimit: maxKeys %d is not positive", maxKeys)
	}
	s := &MemoryStore{seed: maphash.MakeSeed(), most: (maxKeys-1)/storeShards + 1, nodes: map[string]map[string]int64{}}
	for i := range s.shards {
		s.shards[i].cells = map[StoreKey]storeCell{}
	}
	return s, nil
}

// Take is Store's.
func (s *MemoryStore) Take(ctx context.Context, key StoreKey, q Quota, ask Ask) (g Grant, err error) {
	if err := ask.Validate(q); err != nil {
		return Grant{}, err
	}
	err = s.with(ctx, key, q, func(l *storeLevel) { g = l.take(q, ask) })
	return g, err
}

// Refund is Store's.
func (s *MemoryStore) Refund(ctx context.Context, key StoreKey, q Quota, r Receipt, n int64) error {
	return s.with(ctx, key, q, func(l *storeLevel) { l.refund(q, r, n) })
}

// Debit is Store's. An n below 0 is an error.
func (s *MemoryStore) Debit(ctx context.Context, key StoreKey, q Quota, n int64) error {
	if n < 0 {
		return fmt.Errorf("ratelimit: debit of %d tokens, which is negative", n)
	}
	return s.with(ctx, key, q, func(l *storeLevel) { l.debit(q, n) })
}

// Beat is Store's.
func (s *MemoryStore) Beat(ctx context.Context, limiter, node string, ttl time.Duration) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	now := clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	nodes := s.nodes[limiter]
	if nodes == nil {
		s.forgetLimiters(now)
		nodes = map[string]int64{}
		s.nodes[strings.Clone(limiter)] = nodes
	}
	for name, until := range nodes {
		if until <= now {
			delete(nodes, name)
		}
	}
	switch {
	case ttl <= 0:
		delete(nodes, node)
	case len(nodes) < s.most*storeShards:
		nodes[strings.Clone(node)] = clock.After(now, ttl)
	default:
		if _, known := nodes[node]; !known {
			return 0, errors.New("ratelimit: more nodes than the store holds keys")
		}
		nodes[node] = clock.After(now, ttl)
	}
	n := int64(len(nodes))
	if n == 0 {
		delete(s.nodes, limiter)
	}
	return n, nil
}

// forgetLimiters looks at a few limiters, whichever the map gives, and forgets those
// of which no node lives. The caller holds s.mu.
func (s *MemoryStore) forgetLimiters(now int64) {
	looked := 0
	for limiter, nodes := range s.nodes {
		alive := false
		for _, until := range nodes {
			if alive = until > now; alive {
				break
			}
		}
		if !alive {
			delete(s.nodes, limiter)
		}
		if looked++; looked == few {
			return
		}
	}
}

// Forget forgets a key: its bucket is full again. It is for the day on which a
// customer is let off.
func (s *MemoryStore) Forget(key StoreKey) {
	sh := s.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	delete(sh.cells, key)
}

// Len returns how many keys are held, those that say nothing any more included.
func (s *MemoryStore) Len() (n int) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		n += len(sh.cells)
		sh.mu.Unlock()
	}
	return n
}

// Evicted returns how many keys made room for others before their bucket was full.
func (s *MemoryStore) Evicted() int64 { return s.evicted.Load() }

func (s *MemoryStore) shard(key StoreKey) *storeShard {
	return &s.shards[maphash.Comparable(s.seed, key)%storeShards]
}

// with lets change work on the level of key as of now.
func (s *MemoryStore) with(ctx context.Context, key StoreKey, q Quota, change func(*storeLevel)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := q.Validate(); err != nil {
		return err
	}
	sh := s.shard(key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	// A time that was read before the lock could lie before the last call's, and would
	// look like a clock that was set back.
	now := clock.Now() / int64(time.Microsecond)
	c, known := sh.cells[key]
	c.advance(q, now)
	change(&c.storeLevel)
	c.fullAt = c.storeLevel.fullAt(q)
	switch {
	case c.fullAt <= now:
		delete(sh.cells, key)
	case known:
		sh.cells[key] = c
	default:
		s.evicted.Add(sh.makeRoom(s.most, now))
		sh.cells[StoreKey{strings.Clone(key.Limiter), strings.Clone(key.Key)}] = c
	}
	return nil
}

// makeRoom looks at a few cells, whichever the map gives, and removes those that are
// full by now; if there are as many as may be, also the one that is full next. It
// returns how many it removed that were not full.
func (sh *storeShard) makeRoom(most int, now int64) (lost int64) {
	looked, next, nextAt := 0, StoreKey{}, int64(math.MaxInt64)
	for key, c := range sh.cells {
		if c.fullAt <= now {
			delete(sh.cells, key)
		} else if c.fullAt < nextAt {
			next, nextAt = key, c.fullAt
		}
		if looked++; looked == few {
			break
		}
	}
	if len(sh.cells) < most {
		return 0
	}
	delete(sh.cells, next)
	return 1
}
