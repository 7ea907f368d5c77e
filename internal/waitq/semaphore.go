package waitq

import (
	"context"
	"sync"
	"sync/atomic"
)

// MaxLimit is the largest limit of a Semaphore.
const MaxLimit = 1 << 30

// A Verdict is what became of a wish for places.
type Verdict uint8

const (
	// Admitted: the places are taken, and have to be released.
	Admitted Verdict = iota + 1
	// Full: there is no place, and no room to wait for one, or not any more.
	Full
	// Expired: it has waited for as long as it may.
	Expired
	// Left: the caller's ctx ended first.
	Left
	// TooLarge: it wants more places than there are.
	TooLarge
	// Closed: the limit is 0.
	Closed
)

// The parts of Semaphore.word.
const (
	waiting = 1 << 31 // somebody waits
	one     = 1 << 32 // one admission
	// borrowed is there after a Release of places that nobody had, and never after a
	// right one: fewer than MaxLimit are taken then.
	borrowed = MaxLimit
)

// A Semaphore hands out a limited number of places. TryAcquire takes some if they
// are free and nobody waits for them; Wait queues for them, in the order of a
// Policy. The limit and the policy can be changed at any time: a higher limit lets
// those that wait in at once, a lower one holds until enough places have been
// released, and nobody is made to wait for that.
//
// TryAcquire and Release take no lock and allocate nothing while nobody waits. A
// Semaphore starts no goroutine, is safe for concurrent use and must not be copied.
// Make one with NewSemaphore.
type Semaphore struct {
	// word is, from the lowest bit: places taken 31 | somebody waits 1 | admissions 32.
	//
	// While nobody waits, whoever takes places changes it by CompareAndSwap. While
	// somebody waits, only the holder of mu takes places, so what it finds free stays
	// so. Release subtracts at any time and looks for the mark in the same step; who
	// sets the mark, under mu, looks for free places after that; so no place is released
	// unseen. The mark is taken off, under mu, when the queue is empty.
	//
	// Admissions overflow off the top into overflows.
	word atomic.Uint64
	// limit is written under mu, and read by whoever takes places.
	limit atomic.Int64
	// open is Queue.Open, written under mu, so that a full queue refuses without it.
	open      atomic.Uint32
	overflows atomic.Uint64
	_         [64 - 32]byte // what follows is for those that wait

	mu     sync.Mutex
	queue  Queue[*waiter]
	spare  *waiter // waiters to be used again, linked by next; none while nobody waits
	spares int
	now    func() int64

	waits     atomic.Uint64 // admissions that had to wait
	waitNanos atomic.Int64  // how long they did, together
}

// maxSpares is how many waiters a Semaphore keeps to use them again.
const maxSpares = 64

// NewSemaphore returns one with that limit, in [0, MaxLimit]. now is the clock
// whose time Wait and the others are given; it is called when somebody leaves a
// place or the queue while others wait.
func NewSemaphore(limit int, p Policy, now func() int64) *Semaphore {
	s := &Semaphore{now: now}
	s.limit.Store(int64(limit))
	s.queue.SetPolicy(p)
	s.publish()
	return s
}

// TryAcquire takes n places, at least 1, if they are free and nobody waits.
func (s *Semaphore) TryAcquire(n int) bool {
	for {
		w := s.word.Load()
		// The mark makes what is taken more than any limit. A sum with n could overflow.
		if int64(n) > s.limit.Load()-int64(uint32(w)) {
			return false
		}
		if s.word.CompareAndSwap(w, w+one+uint64(n)) {
			if w >= 1<<64-one {
				s.overflows.Add(1)
			}
			return true
		}
	}
}

// Release gives n places back, which have been acquired.
func (s *Semaphore) Release(n int) {
	if w := s.word.Add(-uint64(n)); w&(waiting|borrowed) != 0 {
		s.released(w, n)
	}
}

// released is what is left to do after n places have been given back, when the word
// is w, and says that somebody waits or that nobody had these places.
func (s *Semaphore) released(w uint64, n int) {
	if before := w + uint64(n); before&(waiting-1) < uint64(n) {
		// A permit was copied, and settled twice. The mark may have gone into the borrow,
		// or come out of it.
		s.word.Add(uint64(n))
	}
	s.pass(s.now())
}

// Refuses says why TryAcquire refuses n places: TooLarge, Closed or Full.
func (s *Semaphore) Refuses(n int) Verdict {
	switch limit := s.limit.Load(); {
	case limit == 0:
		return Closed
	case int64(n) > limit:
		return TooLarge
	}
	return Full
}

// Wanted reports whether somebody waits. It takes no lock.
func (s *Semaphore) Wanted() bool { return s.word.Load()&waiting != 0 }

// Open returns the classes whose calls may find room to wait, as bits; a call of
// another class is refused by Wait. It takes no lock.
func (s *Semaphore) Open() uint32 { return s.open.Load() }

// Wait acquires n places, at least 1, and waits for them if it must and the policy
// allows, as long as ctx lives. It returns when it was admitted, and how it ended.
func (s *Semaphore) Wait(ctx context.Context, n, class int, now int64) (at int64, v Verdict) {
	w, v := s.enter(n, class, now)
	if w == nil {
		return now, v
	}
	return s.await(ctx, w)
}

// Update changes the limit, in [0, MaxLimit], and the policy. It does not block on
// anybody who has places or waits for some. Those that wait stay, unless the new limit
// is 0; who wants more places than there are is refused when its turn comes.
func (s *Semaphore) Update(limit int, p Policy) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit.Store(int64(limit))
	s.queue.SetPolicy(p)
	s.passLocked(s.now())
}

// InUse returns how many places are taken. It may be more than the limit after that
// has been lowered.
func (s *Semaphore) InUse() int { return int(s.inUse()) }

func (s *Semaphore) inUse() int64 { return int64(s.word.Load() & (waiting - 1)) }

// Limit returns the limit.
func (s *Semaphore) Limit() int { return int(s.limit.Load()) }

// Queue returns how many wait, and whether they are so many, for so long, that it is
// overload. It takes the lock of those that wait.
func (s *Semaphore) Queue(now int64) (n int, overload bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.queue.Len(), s.queue.Overloaded(now)
}

// Totals are counted since NewSemaphore.
type Totals struct {
	Admitted  uint64 // acquisitions that succeeded
	Waited    uint64 // those among them that had to wait
	WaitNanos int64  // how long they did, together
}

// Totals returns what has been counted. While acquisitions go on, Admitted may for a
// moment be too small.
func (s *Semaphore) Totals() Totals {
	over := s.overflows.Load() // before word: it is raised after it
	return Totals{Admitted: over<<32 + s.word.Load()>>32, Waited: s.waits.Load(), WaitNanos: s.waitNanos.Load()}
}
