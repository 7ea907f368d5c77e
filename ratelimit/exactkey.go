package ratelimit

import (
	"context"
	"unsafe"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
)

// An exactKey is a key of a KeyedExact: a limiter that may be let go when it is full. So
// whoever has taken from it looks whether it is held still. A nil *exactKey lets
// everything pass.
type exactKey struct {
	*Limiter
	member *roster.Member[exactKey] // nil for the overflow limiter
	tier   tier
}

// get returns the key of that name, or the overflow limiter.
func (k *KeyedExact) get(key string) *exactKey {
	if k == nil {
		return nil
	}
	if e := k.members.Find(key); e != nil {
		return e
	}
	if e := k.members.Get(key, clock.Now()); e != nil {
		return e
	}
	k.overflows.Add(1)
	return k.overflow
}

// get2 is get for a key of two parts. Only for one that is not known, it makes a string
// of them.
func (k *KeyedExact) get2(first, second string) *exactKey {
	if k == nil {
		return nil
	}
	var short [128]byte
	name := append(append(append(short[:0], first...), ' '), second...)
	if e := k.members.Find(unsafe.String(&name[0], len(name))); e != nil {
		return e
	}
	return k.get(string(name))
}

// newKey returns the key of that name and configuration.
func (k *KeyedExact) newKey(key string, c Config, now int64) *exactKey {
	e := &exactKey{Limiter: newLimiter(k.name+"/"+key, settings{Config: c, uncounted: !k.counted}, now)}
	e.tier.taker = e
	return e
}

// make, full and fullAt are the roster's.
func (k *KeyedExact) make(m *roster.Member[exactKey], now int64) *exactKey {
	e := k.newKey(m.Key, k.plan.Load().of(m.Key), now)
	e.member = m
	return e
}

// full reports whether e has nothing to lose.
func (e *exactKey) full(now int64) bool {
	p := e.cur.Load()
	if p.most == 0 || e.queued.Load() > 0 {
		return p.most == 0
	}
	level, ok := p.own.level(now)
	return ok && level == p.own.burst
}

// fullAt is since when e is full.
func (e *exactKey) fullAt(int64) int64 {
	p := e.cur.Load()
	if p.most == 0 {
		return 0
	}
	return clock.After(p.own.epoch, p.own.span(p.own.used.Load()+p.own.burst))
}

// Take, Debit, WaitN and take are those of the limiter that take something.
func (e *exactKey) Take(n int64) Decision {
	if e == nil {
		return unlimited(n)
	}
	d := e.Limiter.Take(n)
	e.member.Needed(e)
	return d
}

func (e *exactKey) Debit(n int64) Decision {
	if e == nil {
		return unlimited(n)
	}
	d := e.Limiter.Debit(n)
	e.member.Needed(e)
	return d
}

func (e *exactKey) WaitN(ctx context.Context, n int64) error {
	if e == nil {
		return ctx.Err()
	}
	err := e.Limiter.WaitN(ctx, n)
	e.member.Needed(e)
	return err
}

func (e *exactKey) take(_ uint64, n, now int64) Decision {
	d := e.Limiter.take(0, n, now)
	e.member.Needed(e)
	return d
}

func (e *exactKey) Peek(n int64) Decision {
	if e == nil {
		return unlimited(n)
	}
	return e.Limiter.Peek(n)
}

func (e *exactKey) Refund(d Decision) {
	if e != nil {
		e.Limiter.Refund(d)
	}
}

func (e *exactKey) Layer() Layer {
	if e == nil {
		return Layer{}
	}
	return Layer{of: &e.tier}
}
