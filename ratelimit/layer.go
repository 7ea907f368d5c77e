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
	// refusing says that this layer refused when it was asked last among several.
	// Written only when the answer changes, so readers share the line.
	refusing atomic.Bool
	// uncounted says that count does nothing.
	uncounted bool
}

// A taker decides for TakeAll. It takes no lock, with the exceptions that TakeAll names,
// and allocates nothing.
type taker interface {
	// take decides, and takes the tokens if there are enough, but does not count the
	// decision: the call may yet be refused by another layer.
	take(key uint64, n, now int64) Decision
	// peek is what take would answer, and takes nothing.
	peek(key uint64, n, now int64) Decision
	// giveBack takes back what d, given by take, took, so that it is as if it had
	// never been asked, and no token more. d took something.
	giveBack(key uint64, d Decision, now int64)
	// count counts d as the answer that the caller got.
	count(key uint64, d Decision)
}

// A refunder is a taker that counts what its callers give back.
type refunder interface {
	// refund gives back what d took, which was counted, and counts that.
	refund(key uint64, d Decision)
}

// TakeAll takes n tokens from every layer, or from none. The layers come from the
// most specific to the most general, so that a user who is over his own limit uses
// nothing up that others share:
//
//	d := ratelimit.TakeAll(1, perUser.By(user), perAPI.By(route), global.Layer())
//
// The first layer that refuses decides, and the Decision names it; those before it
// get back what they gave. If all agree, the Decision is that of the first
// layer. The clock is read once, unless others take from a layer between its giving
// and its getting back. It allocates nothing, and takes no lock but those that a layer
// takes by itself: a Keyed that of a page, for a few instructions, when a key is new or
// comes by another class than before; a SlidingLog its own when it admits or is given
// back; a KeyedExact its own when By makes a key. A Shared may wait for its store.
func TakeAll(n int64, layers ...Layer) Decision { return takeAll(n, clock.Now(), layers) }

// TakeEach is TakeAll for a caller who may have to give back later, or wants to know
// what every layer said: it writes their decisions into taken, in the order of the
// layers. taken must be as long as layers; what is in it is of use only if all agreed.
//
//	var taken [2]ratelimit.Decision
//	layers := [2]ratelimit.Layer{perUser.By(user), global.Layer()}
//	d := ratelimit.TakeEach(taken[:], 1, layers[:]...)
//	…
//	for i, l := range layers {
//		l.Refund(taken[i])
//	}
func TakeEach(taken []Decision, n int64, layers ...Layer) Decision {
	return takeEach(taken[:len(layers)], n, clock.Now(), layers)
}

func takeEach(taken []Decision, n, now int64, layers []Layer) Decision {
	if d := peekRefusing(n, now, layers); !d.OK() {
		return d
	}
	for i, l := range layers {
		taken[i] = unlimited(n)
		if l.of == nil {
			continue
		}
		d := l.of.take(l.key, n, now)
		if !d.OK() {
			for l.refused(d); i > 0; i-- {
				layers[i-1].giveBack(taken[i-1], now)
			}
			return d
		}
		taken[i] = d
	}
	for i, l := range layers {
		l.count(taken[i])
	}
	if len(taken) == 0 {
		return unlimited(n)
	}
	return taken[0]
}

// Refund gives back what d, which TakeEach wrote for this layer, took, as
// Limiter.Refund does. It is for a decision once; for one that took nothing it does
// nothing.
func (l Layer) Refund(d Decision) {
	if l.of == nil || !d.tookSome() {
		return
	}
	if r, ok := l.of.taker.(refunder); ok {
		r.refund(l.key, d)
		return
	}
	l.of.giveBack(l.key, d, clock.Now())
}

func takeAll(n, now int64, layers []Layer) Decision {
	if d := peekRefusing(n, now, layers); !d.OK() || len(layers) == 0 {
		return d
	}
	return takeFrom(n, now, layers)
}

// peekRefusing asks a layer that refused last before anything is taken: most likely it
// refuses again, and then there is nothing to give back. The first layer needs no such
// question.
func peekRefusing(n, now int64, layers []Layer) Decision {
	for i := 1; i < len(layers); i++ {
		l := layers[i]
		if l.of == nil || !l.of.refusing.Load() {
			continue
		}
		if d := l.of.peek(l.key, n, now); !d.OK() {
			l.count(d)
			return d
		}
		l.of.refusing.Store(false)
	}
	return unlimited(n)
}

// takeFrom takes from the first of layers and from those after it. That each waits
// for the rest in a frame of its own keeps what has to be given back out of memory.
func takeFrom(n, now int64, layers []Layer) (d Decision) {
	first, rest := layers[0], layers[1:]
	d = unlimited(n)
	if first.of != nil {
		if d = first.of.take(first.key, n, now); !d.OK() {
			first.refused(d)
			return d
		}
	}
	if len(rest) > 0 {
		if refused := takeFrom(n, now, rest); !refused.OK() {
			first.giveBack(d, now)
			return refused
		}
	}
	first.count(d)
	return d
}

// refused counts d, a refusal, and keeps in mind that there was one.
func (l Layer) refused(d Decision) {
	if !l.of.refusing.Load() {
		l.of.refusing.Store(true)
	}
	l.count(d)
}

func (l Layer) giveBack(d Decision, now int64) {
	if l.of != nil && d.n > 0 {
		l.of.giveBack(l.key, d, now)
	}
}

func (l Layer) count(d Decision) {
	if l.of != nil && !l.of.uncounted {
		l.of.count(l.key, d)
	}
}
