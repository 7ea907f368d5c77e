// Package notify hands events to listeners with empty hands: whoever causes an
// event enqueues it under its own lock and delivers after letting go, and the
// events of one object still arrive in order, one at a time, exactly once.
package notify

import "sync"

// Limit is how many events of one Queue may wait behind a slow listener.
const Limit = 1024

// A Queue holds the events of one object until its listener has seen them.
//
// The owner calls Push where the order is decided, usually with its own lock
// held, and Deliver after it has let go. At most Limit events wait; each one
// more pushes out the oldest, which is counted.
//
// The zero value is ready, and an idle Queue holds no other memory. It starts
// no goroutine: events are delivered by the goroutines that call Deliver. A
// Queue is safe for concurrent use and must not be copied.
type Queue[T any] struct {
	mu      sync.Mutex // held for a few instructions, never while foreign code runs
	ring    []T        // its length is a power of two at most Limit, or 0; slots that hold no event are zero
	dropped uint64
	panics  uint64
	head    uint16 // index of the oldest event
	waiting uint16
	busy    bool // somebody is in drain, and will look once more before leaving
}

// Push enqueues v and returns. It runs no foreign code and takes no lock but
// the queue's own, so a caller may hold any lock.
func (q *Queue[T]) Push(v T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == Limit {
		q.take()
		q.dropped++
	}
	if int(q.waiting) == len(q.ring) {
		q.resize(max(1, 2*len(q.ring)))
	}
	q.ring[q.slot(q.waiting)] = v
	q.waiting++
}

// Deliver calls f with each event that waits, oldest first, with no lock held,
// and returns when none is left. When another goroutine is delivering, or f
// itself calls Deliver, it returns at once: the events that wait now are
// delivered by the one already at it. So every Deliver of one Queue must be
// given the same f.
//
// A panic of f is recovered, counted and told to onPanic, which may be nil and
// can still see the panic's stack; a panic of onPanic is swallowed. When f or
// onPanic calls runtime.Goexit, the rest is delivered before the goroutine ends.
func (q *Queue[T]) Deliver(f func(T), onPanic func(recovered any)) {
	q.mu.Lock()
	ours := !q.busy && q.waiting > 0
	if ours {
		q.busy = true
	}
	q.mu.Unlock()
	if ours {
		q.drain(f, onPanic)
	}
}

// Dropped returns how many events were pushed out because Limit others waited.
func (q *Queue[T]) Dropped() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// Panics returns how many deliveries ended in a panic.
func (q *Queue[T]) Panics() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.panics
}

// drain delivers until nothing waits, and then lets go of busy. Each Goexit of
// the listener adds a few frames to the stack of the goroutine that it ends.
func (q *Queue[T]) drain(f func(T), onPanic func(any)) {
	finished := false
	defer func() {
		if !finished { // the goroutine is ending
			q.drain(f, onPanic)
		}
	}()
	for v, ok := q.next(); ok; v, ok = q.next() {
		q.call(f, v, onPanic)
	}
	finished = true
}

// next takes the oldest event. When there is none it lets go of busy in the
// same step, so no event can be pushed between the last look and the leaving
// and then find nobody to deliver it.
func (q *Queue[T]) next() (v T, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting == 0 {
		q.busy = false
		return v, false
	}
	v = q.take()
	if n := int(q.waiting); n == 0 {
		q.ring, q.head = nil, 0
	} else if n <= len(q.ring)/4 {
		q.resize(len(q.ring) / 2)
	}
	return v, true
}

func (q *Queue[T]) call(f func(T), v T, onPanic func(any)) {
	defer func() {
		recovered := recover()
		if recovered == nil {
			return // f returned, or the goroutine is ending
		}
		q.mu.Lock()
		q.panics++
		q.mu.Unlock()
		if onPanic != nil {
			defer func() { _ = recover() }()
			onPanic(recovered)
		}
	}()
	f(v)
}

// take removes the oldest event, and keeps nothing of it alive.
func (q *Queue[T]) take() T {
	var none T
	v := q.ring[q.head]
	q.ring[q.head] = none
	q.head = uint16(q.slot(1))
	q.waiting--
	return v
}

// slot is the index of the n-th event after the oldest.
func (q *Queue[T]) slot(n uint16) int {
	return (int(q.head) + int(n)) & (len(q.ring) - 1)
}

// resize moves what waits into a ring of n slots.
func (q *Queue[T]) resize(n int) {
	ring := make([]T, n)
	for i := range q.waiting {
		ring[i] = q.ring[q.slot(i)]
	}
	q.ring, q.head = ring, 0
}
