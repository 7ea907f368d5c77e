package ratelimit

import (
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
)

// Layer is one of several limits that must all agree to a call: see TakeAll. It is
// a limiter, or one key of a keyed one; their methods Layer and By return it. It is
// a small value, and making it allocates nothing. The zero Layer limits nothing.
type Layer struct {
	of  *tier
	key uint64 // which key of a keyed limiter; only that one reads it
}

// tier is a limiter as TakeAll sees it. A limiter that can be a Layer has one, and
// sets taker to itself in its constructor.
type tier struct {
	taker
	// refusing says that this layer refused when it was asked last. Written by
	// takeAll, only when the answer changes, so readers share the line.
	refusing atomic.Bool
}

// A taker decides for TakeAll. It takes no lock and allocates nothing.
type taker interface {
	// take decides, and takes the tokens if there are enough, but does not count the
	// decision: the call may yet be refused by another layer.
	take(key uint64, n, now int64) Decision
	// peek is what take would answer, and takes nothing.
	peek(key uint64, n, now int64) Decision
	// giveBack takes back what d, given by take, took, so that it is as if it had
	// never been asked, and no token more.
	giveBack(key uint64, d Decision, now int64)
	// count counts d as the answer that the caller got.
	count(key uint64, d Decision)
}

// TakeAll takes n tokens from every layer, or from none. The layers come from the
// most specific to the most general, so that a user who is over his own limit uses
// nothing up that others share:
//
//	d := ratelimit.TakeAll(1, perUser.By(user), perAPI.By(route), global.Layer())
//
// The first layer that refuses decides, and the Decision names it; those before it
// get back exactly what they gave. If all agree, the Decision is that of the first
// layer. The clock is read once. It takes no lock and allocates nothing.
func TakeAll(n int64, layers ...Layer) Decision { return takeAll(n, clock.Now(), layers) }

// takeAll asks a layer that refused last before anything is taken: most likely it
// refuses again, and then there is nothing to give back. The first layer needs no
// such question.
func takeAll(n, now int64, layers []Layer) Decision {
	for i := 1; i < len(layers); i++ {
		l := layers[i]
		if l.of == nil || !l.of.refusing.Load() {
			continue
		}
		if d := l.of.peek(l.key, n, now); !d.OK() {
			l.of.count(l.key, d)
			return d
		}
		l.of.refusing.Store(false)
	}
	if len(layers) == 0 {
		return Decision{}
	}
	return takeFrom(n, now, layers)
}

// takeFrom takes from the first of layers and from those after it. That each waits
// for the rest in a frame of its own keeps what has to be given back out of memory.
func takeFrom(n, now int64, layers []Layer) Decision {
	first, rest := layers[0], layers[1:]
	if first.of == nil {
		if len(rest) == 0 {
			return Decision{}
		}
		return takeFrom(n, now, rest)
	}
	d := first.of.take(first.key, n, now)
	if !d.OK() {
		if !first.of.refusing.Load() {
			first.of.refusing.Store(true)
		}
		first.of.count(first.key, d)
		return d
	}
	if len(rest) > 0 {
		if refused := takeFrom(n, now, rest); !refused.OK() {
			first.of.giveBack(first.key, d, now)
			return refused
		}
	}
	first.of.count(first.key, d)
	return d
}
