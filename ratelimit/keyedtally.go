package ratelimit

import (
	"sync/atomic"

	"github.com/sluicego/sluice/internal/stripe"
)

// keyTally counts answers and what happens to the table, spread over cache lines.
// Nothing in it but held is ever lowered.
type keyTally struct {
	answers *tally // nil if they are not counted
	_       [stripe.Line]byte
	cells   [stripe.Cells]keyCell
}

// keyCell is one cache line. The first three are raised by settle, under some page's
// lock.
type keyCell struct {
	held    atomic.Int64 // slots that got their first key, less those emptied by renew
	settled atomic.Int64 // keys that got a slot
	evicted atomic.Int64 // keys that lost theirs with a bucket that was not full
	denied  atomic.Int64 // answers to keys that found no slot
	shared  atomic.Int64 // answers from the bucket that such keys share
	_       [stripe.Line - 5*8]byte
}

func (t *keyTally) settle(fresh bool) {
	c := &t.cells[stripe.Index()]
	c.settled.Add(1)
	if fresh {
		c.held.Add(1)
	}
}

func (t *keyTally) evict() {
	c := &t.cells[stripe.Index()]
	c.settled.Add(1)
	c.evicted.Add(1)
}

func (t *keyTally) empty() { t.cells[stripe.Index()].held.Add(-1) }

// count counts d as an answer.
func (t *keyTally) count(d Decision) {
	if d.by.reason == ReasonTooManyKeys && d.n != 0 {
		c := &t.cells[stripe.Index()]
		if _, denied := d.by.judge.(noSlot); denied {
			c.denied.Add(1)
			return
		}
		c.shared.Add(1)
	}
	t.answers.count(d)
}

// KeysSnapshot is what the table of a Keyed holds, and what has happened to it since it
// was made.
type KeysSnapshot struct {
	// Slots is how many keys the table can hold at the very most; it is made for four
	// fifths. Held is how many it holds, those that are full again included.
	Slots int64 `json:"slots"`
	Held  int64 `json:"held"`
	// Settled is how many keys came that were not there.
	Settled int64 `json:"settled"`
	// Evicted is how many of these took the slot of a key whose bucket was not full, and
	// which may have up to one burst more for it.
	Evicted int64 `json:"evicted"`
	// Denied is how many answers were a refusal for want of a slot; Shared how many came
	// from the bucket that keys without a slot share.
	Denied int64 `json:"denied"`
	Shared int64 `json:"shared"`
}

// keys adds the cells up.
func (t *keyTally) keys() (s KeysSnapshot) {
	for i := range t.cells {
		c := &t.cells[i]
		s.Held += c.held.Load()
		s.Settled += c.settled.Load()
		s.Evicted += c.evicted.Load()
		s.Denied += c.denied.Load()
		s.Shared += c.shared.Load()
	}
	return s
}
