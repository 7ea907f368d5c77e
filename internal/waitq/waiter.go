package waitq

import (
	"context"
	"time"
)

// A waiter is a caller in the queue of a Semaphore.
type waiter struct {
	Entry[*waiter]
	n     int
	told  chan verdict // room for one: whoever takes the waiter off the queue tells it
	timer *time.Timer  // made when first needed
	next  *waiter      // among the spare ones
}

type verdict struct {
	is Verdict
	at int64
}

// enter takes n places or queues for them. A nil waiter says that it is decided.
func (s *Semaphore) enter(n, class int, now int64) (*waiter, Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.Refuses(n); v != Full {
		return nil, v
	}
	if s.TryAcquire(n) {
		return nil, Admitted
	}
	s.word.Or(waiting) // before passLocked looks for places that have been released since
	w := s.waiter(n)
	out := s.queue.Push(&w.Entry, class, now)
	if out != nil && out != &w.Entry {
		s.tell(out.Owner, Full, now)
	}
	s.passLocked(now)
	if out == &w.Entry {
		s.keep(w)
		return nil, Full
	}
	return w, 0
}

// await waits until w has been told, or ctx is done, or its deadline has come. When
// several of these have happened, ctx comes first.
func (s *Semaphore) await(ctx context.Context, w *waiter) (int64, Verdict) {
	var late <-chan time.Time
	if w.Deadline() != Never {
		late = w.alarm(time.Duration(w.Deadline() - w.At()))
	}
	var v verdict
	select {
	case v = <-w.told:
	case <-ctx.Done():
		v = s.leave(w, Left)
	case <-late:
		v = s.leave(w, Expired)
	}
	switch {
	case ctx.Err() != nil:
		if v.is == Admitted {
			s.Release(w.n)
		}
		v.is = Left
	case v.is == Admitted:
		s.waited(v.at - w.At())
	}
	if w.timer != nil {
		w.timer.Stop()
	}
	if s.Wanted() {
		s.mu.Lock()
		s.keep(w)
		s.mu.Unlock()
	}
	return v.at, v.is
}

// leave takes w off the queue for the reason is, unless somebody has told it what
// became of it before.
func (s *Semaphore) leave(w *waiter, is Verdict) verdict {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !w.Queued() {
		return <-w.told
	}
	s.queue.Remove(&w.Entry)
	s.passLocked(now) // it may have stood before one that wants less
	return verdict{is, now}
}

// pass hands free places on to those that wait.
func (s *Semaphore) pass(now int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passLocked(now)
}

// passLocked admits those that are next for as long as there are places, and takes
// off the queue what has no business there any more. Everything that changes the
// queue, the limit or the policy ends with it. The caller holds s.mu.
func (s *Semaphore) passLocked(now int64) {
	for {
		e := s.queue.Next(now)
		if e == nil {
			s.word.And(^uint64(waiting))
			s.spare, s.spares = nil, 0
			break
		}
		w := e.Owner
		if now >= e.Deadline() {
			s.queue.Remove(e)
			s.tell(w, Expired, now)
			continue
		}
		if v := s.Refuses(w.n); v != Full {
			s.queue.Remove(e)
			s.tell(w, v, now)
			continue
		}
		if s.inUse()+int64(w.n) > s.limit.Load() {
			break
		}
		s.queue.Serve(e)
		s.word.Add(uint64(w.n))
		s.tell(w, Admitted, now)
	}
	s.publish()
}

// publish says who may find room to wait. The caller holds s.mu.
func (s *Semaphore) publish() {
	open := s.queue.Open()
	if s.limit.Load() == 0 {
		open = 0
	}
	s.open.Store(open)
}

// waited counts an admission after a wait, once it is sure that somebody uses it.
func (s *Semaphore) waited(nanos int64) {
	if s.word.Add(one) < one {
		s.overflows.Add(1)
	}
	s.waits.Add(1)
	s.waitNanos.Add(nanos)
}

// tell wakes w, which is not in the queue any more. Whoever does that may have read
// the time before w came.
func (s *Semaphore) tell(w *waiter, is Verdict, at int64) { w.told <- verdict{is, max(at, w.At())} }

// alarm returns a channel that gets a value after d.
func (w *waiter) alarm(d time.Duration) <-chan time.Time {
	if w.timer == nil {
		w.timer = time.NewTimer(d)
	} else {
		w.timer.Reset(d)
	}
	return w.timer.C
}

// waiter returns a spare waiter, or a new one. The caller holds s.mu.
func (s *Semaphore) waiter(n int) *waiter {
	w := s.spare
	if w == nil {
		w = &waiter{told: make(chan verdict, 1)}
		w.Owner = w
	} else {
		s.spare, w.next = w.next, nil
		s.spares--
	}
	w.n = n
	return w
}

// keep puts w by, to be used again while others wait: under overload, when waiting
// must cost least. It is not kept beyond that, because in a synctest bubble w is the
// bubble's, and the Semaphore may be used elsewhere when that one has ended. The
// caller holds s.mu.
func (s *Semaphore) keep(w *waiter) {
	if s.queue.Len() > 0 && s.spares < maxSpares {
		w.next, s.spare = s.spare, w
		s.spares++
	}
}
