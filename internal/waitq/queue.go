package waitq

import "math"

// Never is a deadline that does not come.
const Never int64 = math.MaxInt64

// An Entry is the place in a Queue of what it belongs to. It is part of its owner,
// so that waiting needs no memory of its own, and is in one Queue at most.
type Entry[T any] struct {
	Owner      T // set by whoever makes the entry
	prev, next *Entry[T]
	at         int64 // when it came
	deadline   int64 // when it has waited long enough
	class      uint8
	queued     bool
}

// Queued reports whether the entry is waiting.
func (e *Entry[T]) Queued() bool { return e.queued }

// At returns when the entry came.
func (e *Entry[T]) At() int64 { return e.at }

// Deadline returns when the entry has waited long enough, or Never.
func (e *Entry[T]) Deadline() int64 { return e.deadline }

// A Queue is a bounded queue of entries in classes. Every method takes what it
// needs to know of time; nothing happens by itself. The owner looks whether the one
// that is next has passed its deadline.
//
// A Queue is not safe for concurrent use. The zero Queue lets nobody wait.
type Queue[T any] struct {
	policy Policy
	lines  [Classes]line[T]
	n      int
	since  int64 // when the queue last ceased to be empty
}

// line is the entries of one class, the oldest first.
type line[T any] struct {
	oldest, newest *Entry[T]
	n              int
	// credit is what the class may claim of its share, in millionths of an entry. It
	// grows with each entry that is served while any of the class wait.
	credit int
}

// SetPolicy changes the policy. Those that wait stay, with the deadlines they have.
func (q *Queue[T]) SetPolicy(p Policy) { q.policy = p }

// Len returns how many are waiting.
func (q *Queue[T]) Len() int { return q.n }

// Overloaded reports whether the queue has not been empty for Interval.
func (q *Queue[T]) Overloaded(now int64) bool {
	return q.n > 0 && now-q.since >= int64(q.policy.Interval)
}

// Push lets e wait. It returns the entry for which there is no room: none, e itself,
// or one that was waiting and had to go because it would have been served last.
func (q *Queue[T]) Push(e *Entry[T], class int, now int64) (out *Entry[T]) {
	overload := q.Overloaded(now)
	e.class, e.at = uint8(class), now
	e.deadline = after(now, q.policy.wait(overload))
	if q.n == 0 {
		q.since = now
	}
	if q.policy.MaxQueue == 0 {
		return e
	}
	if q.n >= q.policy.MaxQueue {
		if out = q.last(overload); out == nil || !q.yields(out, e, overload) {
			return e
		}
		q.Remove(out)
	}
	q.n++
	q.lines[class].add(e)
	return out
}

// Next returns the entry that is next, or nil. It stays where it is.
func (q *Queue[T]) Next(now int64) *Entry[T] {
	newest := q.policy.Newest && q.Overloaded(now)
	var next *Entry[T]
	claim := Whole - 1
	for class := range q.lines {
		l := &q.lines[class]
		e := l.oldest
		if newest {
			e = l.newest
		}
		if e == nil {
			continue
		}
		if l.credit > claim {
			next, claim = e, l.credit
		} else if claim < Whole && (next == nil || q.turn(e) < q.turn(next)) {
			next = e
		}
	}
	return next
}

// Serve removes e, which Next has returned, and gives every class that has entries
// waiting its share.
func (q *Queue[T]) Serve(e *Entry[T]) {
	for class := range q.lines {
		if l := &q.lines[class]; l.n > 0 {
			l.credit += q.policy.Shares[class]
		}
	}
	l := &q.lines[e.class]
	l.credit = max(0, l.credit-Whole)
	q.Remove(e)
}

// Remove removes e, which is waiting and will not be served.
func (q *Queue[T]) Remove(e *Entry[T]) {
	q.n--
	q.lines[e.class].remove(e)
}

// Open returns the classes of which another entry may find room, as bits: one of a
// class that is not among them would be refused by Push until something leaves.
func (q *Queue[T]) Open() (classes uint32) {
	const all = 1<<Classes - 1
	p := &q.policy
	if p.MaxQueue == 0 {
		return 0
	}
	if q.n < p.MaxQueue || p.Newest {
		return all
	}
	for class := range q.lines {
		n, kept := q.lines[class].n, p.reserved(class)
		if p.Aging > 0 && n > kept {
			classes |= 1<<class - 1 // whoever is more important may take its place
		}
		if n < kept {
			classes |= 1 << class
		}
	}
	return classes
}

// last is the entry that would be served last, of the classes that have more than
// is kept for them; nil if there is none.
func (q *Queue[T]) last(overload bool) (last *Entry[T]) {
	newest := q.policy.Newest && overload
	for class := range q.lines {
		l := &q.lines[class]
		if l.n <= q.policy.reserved(class) {
			continue
		}
		switch {
		case !newest:
			if last == nil || q.turn(l.newest) >= q.turn(last) {
				last = l.newest
			}
		case last == nil || q.policy.Aging > 0 || l.oldest.at < last.at:
			last = l.oldest
		}
	}
	return last
}

// yields reports whether last, which would be served last of all that wait, has to
// make room for e.
func (q *Queue[T]) yields(last, e *Entry[T], overload bool) bool {
	if q.lines[e.class].n < q.policy.reserved(int(e.class)) {
		return true
	}
	if q.policy.Newest && overload && (q.policy.Aging == 0 || e.class <= last.class) {
		return true
	}
	return e.class < last.class && q.turn(e) < q.turn(last)
}

// turn is the time by which entries are ordered.
func (q *Queue[T]) turn(e *Entry[T]) int64 { return e.at + q.policy.handicap(e.class) }

func (l *line[T]) add(e *Entry[T]) {
	e.queued = true
	e.prev, e.next = l.newest, nil
	if l.newest == nil {
		l.oldest = e
	} else {
		l.newest.next = e
	}
	l.newest = e
	l.n++
}

func (l *line[T]) remove(e *Entry[T]) {
	if e.prev == nil {
		l.oldest = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.newest = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next, e.queued = nil, nil, false
	if l.n--; l.n == 0 {
		l.credit = 0
	}
}
