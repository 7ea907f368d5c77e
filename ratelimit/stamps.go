package ratelimit

import (
	"math"
	"sync"
	"sync/atomic"
)

// stamps is when each of the last tokens was taken, in the order of time, in a ring:
//
//	ring  │ 41 │ 42 │ 43 │ 36 │ 37 │ 38 │ 39 │ 40 │
//	                   ▲    ▲
//	            end − 1      begin
//
// Tokens are numbered from 0 on, and number k has its place at k mod the ring's size,
// which is a power of two and at least what anybody looks back. It is changed under
// mu, and read without: who reads looks at turn before and after, and if it is odd or
// another one, what he has read is worth nothing.
type stamps struct {
	mu   sync.Mutex
	turn atomic.Uint64 // raised before each change, which makes it odd, and after
	ring atomic.Pointer[[]atomic.Int64]
	// end is how many tokens there are in all, and begin the first that has not been
	// overwritten. What was overwritten was of no account any more.
	begin, end atomic.Int64
	// latest is when a token was taken last, be it there yet or given back. Nobody
	// comes before it: he might find that what forbade it has been overwritten.
	latest atomic.Int64
}

// longAgo is the stamp of a token that nobody remembers.
const longAgo = math.MinInt64 / 2

// still reports whether nothing has changed since that turn, nor did then.
func (l *stamps) still(turn uint64) bool { return turn&1 == 0 && l.turn.Load() == turn }

// at returns when token k was taken; k is less than end.
func (l *stamps) at(k int64) int64 {
	if k < l.begin.Load() {
		return longAgo
	}
	ring := *l.ring.Load()
	return ring[int(k)&(len(ring)-1)].Load()
}

// newest returns when the last token was taken.
func (l *stamps) newest() int64 { return l.at(l.end.Load() - 1) }

// after returns the first token from number k on that was taken after time.
func (l *stamps) after(k, time int64) int64 {
	end := l.end.Load()
	for k < end {
		if middle := k + (end-k)/2; l.at(middle) > time {
			end = middle
		} else {
			k = middle + 1
		}
	}
	return k
}

// add adds n tokens taken at time, which is no earlier than latest. The caller holds
// mu.
func (l *stamps) add(n, time int64) {
	l.turn.Add(1)
	ring, end := *l.ring.Load(), l.end.Load()
	if begin := end + n - int64(len(ring)); begin > l.begin.Load() {
		l.begin.Store(begin)
	}
	for k := end; k < end+n; k++ {
		ring[int(k)&(len(ring)-1)].Store(time)
	}
	l.end.Store(end + n)
	l.latest.Store(time)
	l.turn.Add(1)
}

// remove takes out n of the tokens that were taken at time, or as many as there are.
// Later ones take the places of those. The caller holds mu.
func (l *stamps) remove(n, time int64) {
	begin, end := l.begin.Load(), l.end.Load()
	from := l.after(begin, time-1)
	n = min(n, l.after(from, time)-from)
	l.turn.Add(1)
	ring := *l.ring.Load()
	for k := from + n; k < end; k++ {
		ring[int(k-n)&(len(ring)-1)].Store(l.at(k))
	}
	l.end.Store(end - n)
	l.turn.Add(1)
}

// reach lets the ring hold at least so many tokens. The caller holds mu.
func (l *stamps) reach(tokens int64) {
	size := int64(1)
	for size < tokens {
		size <<= 1
	}
	old := l.ring.Load()
	if old != nil && int64(len(*old)) >= size {
		return
	}
	ring := make([]atomic.Int64, size)
	for k := l.begin.Load(); k < l.end.Load(); k++ {
		ring[k&(size-1)].Store(l.at(k))
	}
	l.turn.Add(1)
	l.ring.Store(&ring)
	l.turn.Add(1)
}
