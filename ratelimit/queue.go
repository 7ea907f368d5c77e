package ratelimit

// queue is those whose tokens were taken ahead of time, in the order of their
// tokens: callers who wait, and reservations. It is what lets those behind move up
// when somebody leaves: only so does giving back neither lose what was reserved nor
// let more go at a time than the bucket allows. Guarded by Limiter.mu.
//
// A place is told by a mark, as a take's: a turn's tokens are there when at reaches
// mark − returned. Each turn knows only how far it is behind the one before it, so
// that leaving is done in a few steps, however many there are.
type queue struct {
	first, last *turn
	head, tail  int64 // marks of first and last
}

// A turn is a place in a queue.
type turn struct {
	prev, next *turn
	n, cost    int64 // tokens, and what they cost in units
	gap        int64 // from the mark of prev
	promised   int64 // when it will go at the latest, whatever becomes of the rate
	// wake tells a waiter to look at his time again; nil for a reservation. It holds
	// one call.
	wake   chan struct{}
	queued bool
	taken  Decision // what was taken, once a reservation has left the queue
}

// add puts t at the end.
func (q *queue) add(t *turn, mark int64) {
	t.queued = true
	if q.last == nil {
		q.first, q.last, q.head, q.tail = t, t, mark, mark
		return
	}
	t.gap, t.prev = mark-q.tail, q.last
	q.last.next = t
	q.last, q.tail = t, mark
}

// remove takes t out. Those behind it move up by back units.
func (q *queue) remove(t *turn, back int64) {
	switch {
	case t.next != nil && t.prev != nil:
		t.next.gap += t.gap - back
		q.tail -= back
	case t.next != nil:
		q.head += t.next.gap - back
		q.tail -= back
		t.next.gap = 0
	case t.prev != nil:
		q.tail -= t.gap
	}
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		q.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		q.last = t.prev
	}
	t.prev, t.next, t.queued = nil, nil, false
}

// mark is where t's tokens end. It is looked for from both ends, for those who leave
// are mostly the first, as their time is over, or the last, as they changed their mind.
func (q *queue) mark(t *turn) int64 {
	front, head := q.first, q.head
	back, tail := q.last, q.tail
	for front != t && back != t {
		front = front.next
		head += front.gap
		tail -= back.gap
		back = back.prev
	}
	if front == t {
		return head
	}
	return tail
}

// waiter is the first who waits, nil if nobody does.
func (q *queue) waiter() *turn {
	for t := q.first; t != nil; t = t.next {
		if t.wake != nil {
			return t
		}
	}
	return nil
}

// cost is how many units all turns cost together.
func (q *queue) cost() (units int64) {
	for t := q.first; t != nil; t = t.next {
		units += t.cost
	}
	return units
}

// restart takes the tokens of all turns from b, which nobody else knows yet, in the
// same order.
func (q *queue) restart(b *bucket) {
	end := b.used.Load()
	for t := q.first; t != nil; t = t.next {
		t.cost = min(rescale(t.n, 1, b.unit), maxLevel-end)
		t.gap = t.cost
		if end += t.cost; t == q.first {
			q.head = end
		}
	}
	q.tail = end
	b.used.Store(end)
}
