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
