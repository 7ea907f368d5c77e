package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
)

// KeyedExact is a Limiter for each of some keys that have names, such as tenants or the
// routes of an API, made when the key is first asked for, all with the same configuration
// except those that have one of their own. Its figures are shown by key. For many keys, or
// for keys that callers can make up, use Keyed.
//
// It holds at most MaxKeys of them, and never two of one key. For one more, the one that
// has been full longest is let go, which loses nothing but its counts. If none is full,
// new keys share one overflow limiter until that changes. So a flood of keys costs bounded
// memory, and never makes a key forget that it is over its limit. A key takes about 2 KiB.
//
// The methods do for a key what those of a Limiter do, and those whose names end in 2 take
// keys of two parts: they mean the key whose name is both with a space between, such as
// "GET /orders", and build no string of it. Asking for a known key and giving back take no
// lock and allocate nothing. A KeyedExact starts no goroutine, is safe for concurrent use
// and must not be copied. A nil *KeyedExact lets everything pass; the zero KeyedExact is of
// no use, make one with NewKeyedExact.
type KeyedExact struct {
	name      string
	counted   bool
	members   *roster.Roster[exactKey]
	overflow  *exactKey
	overflows atomic.Int64 // how often a key got the overflow limiter
	// plan is the configuration in force. Written by Update, under mu.
	plan atomic.Pointer[exactPlan]
	mu   sync.Mutex // puts updates in order
}

// NewKeyedExact returns a KeyedExact of that name, which must not be empty, with that rate
// for each key that has none of its own. It returns every complaint about them and the
// options at once.
//
// For package variables there is sluice.Must.
func NewKeyedExact(name string, rate Rate, opts ...KeyedExactOption) (*KeyedExact, error) {
	c, counted, err := applyKeyedExact(name, rate, opts)
	if err != nil {
		return nil, err
	}
	k := &KeyedExact{name: name, counted: counted}
	k.plan.Store(newExactPlan(c))
	k.overflow = k.newKey(overflowName, c.Config, clock.Now())
	k.members = roster.New(c.MaxKeys, roster.Kind[exactKey]{Make: k.make, Idle: (*exactKey).full, LastAt: (*exactKey).fullAt})
	return k, nil
}

// overflowName is what the overflow limiter is called.
const overflowName = "_overflow"

// Name returns the name given to NewKeyedExact.
func (k *KeyedExact) Name() string {
	if k == nil {
		return ""
	}
	return k.name
}

// Allow takes a token of key if there is one, and reports whether.
func (k *KeyedExact) Allow(key string) bool { return k.Take(key, 1).OK() }

// Allow2 is Allow for a key of two parts.
func (k *KeyedExact) Allow2(first, second string) bool { return k.Take2(first, second, 1).OK() }

// Take takes n tokens of key if there are so many, as Limiter.Take does.
func (k *KeyedExact) Take(key string, n int64) Decision { return k.get(key).Take(n) }

// Take2 is Take for a key of two parts.
func (k *KeyedExact) Take2(first, second string, n int64) Decision {
	return k.get2(first, second).Take(n)
}

// Peek tells what Take would answer, as Limiter.Peek does.
func (k *KeyedExact) Peek(key string, n int64) Decision { return k.get(key).Peek(n) }

// Peek2 is Peek for a key of two parts.
func (k *KeyedExact) Peek2(first, second string, n int64) Decision {
	return k.get2(first, second).Peek(n)
}

// Debit takes n tokens of key whether they are there or not, as Limiter.Debit does.
func (k *KeyedExact) Debit(key string, n int64) Decision { return k.get(key).Debit(n) }

// Debit2 is Debit for a key of two parts.
func (k *KeyedExact) Debit2(first, second string, n int64) Decision {
	return k.get2(first, second).Debit(n)
}

// Refund gives back what d took of key, as Limiter.Refund does.
func (k *KeyedExact) Refund(key string, d Decision) { k.get(key).Refund(d) }

// Refund2 is Refund for a key of two parts.
func (k *KeyedExact) Refund2(first, second string, d Decision) { k.get2(first, second).Refund(d) }

// Wait takes a token of key, and waits for it if need be, as Limiter.Wait does.
func (k *KeyedExact) Wait(ctx context.Context, key string) error { return k.WaitN(ctx, key, 1) }

// WaitN takes n tokens of key and returns nil when they are there, as Limiter.WaitN does.
func (k *KeyedExact) WaitN(ctx context.Context, key string, n int64) error {
	return k.get(key).WaitN(ctx, n)
}

// By returns key as a Layer of TakeAll.
func (k *KeyedExact) By(key string) Layer { return k.get(key).Layer() }

// By2 is By for a key of two parts.
func (k *KeyedExact) By2(first, second string) Layer { return k.get2(first, second).Layer() }

// Len returns how many keys are held.
func (k *KeyedExact) Len() int {
	if k == nil {
		return 0
	}
	return k.members.Len()
}
