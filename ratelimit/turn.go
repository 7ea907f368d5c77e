package ratelimit

import "github.com/sluicego/sluice/internal/clock"

// enqueue takes t's tokens ahead of time, if they will be there by latest. The
// decision is that, or the refusal of taking them now; full says that t is a waiter
// too many.
func (l *Limiter) enqueue(t *turn, latest, now int64) (d Decision, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.current(now)
	if !p.can(t.n) {
		d, _ = p.peek(t.n, now)
		return d, false
	}
	l.settle(now)
	// queued says what to look for before there is something to be seen: see stir.
	l.queued.Add(1)
	if full = t.wake != nil && l.waiting.Load() >= int64(p.config.MaxWaiters); full {
		latest = 0
	}
	end, lack, mark := p.own.reserve(t.n, latest, now)
	d = Decision{&p.origin, t.n, lack, mark}
	if !d.OK() {
		l.queued.Add(-1)
		return d, full
	}
	if t.wake != nil {
		l.waiting.Add(1)
	}
	t.cost, t.promised = t.n*p.own.unit, clock.After(p.own.epoch, p.own.span(end))
	l.queue.add(t, mark)
	return d, false
}

// turnOf returns when t may go, and whether he is the first who waits.
func (l *Limiter) turnOf(t *turn) (at int64, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.due(t), l.queue.waiter() == t
}

// leave takes t, whose tokens are there, out of the queue, and returns the decision
// that took them.
func (l *Limiter) leave(t *turn) Decision {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.depart(t)
}

// cancel gives t's tokens back.
func (l *Limiter) cancel(t *turn) {
	if l.withdraw(t, clock.Now) {
		return
	}
	l.giveBack(0, t.taken, 0)
	l.stir()
}

// withdraw takes t out of the queue, as if he had never been there. It returns false
// if his tokens are there already; then they are t.taken.
func (l *Limiter) withdraw(t *turn, now func() int64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.queued {
		return false
	}
	if p := l.cur.Load(); p.most > 0 {
		if p.own.withdraw(t.cost, l.queue.mark(t)-p.own.returned.Load(), now) {
			l.queue.remove(t, t.cost)
			l.removed(t)
			return true
		}
	}
	t.taken = l.depart(t)
	return false
}

// stir wakes the first who waits, if anybody does, since something was given back
// that lets him go sooner. What was given back must be visible before.
func (l *Limiter) stir() {
	if l.queued.Load() > 0 {
		l.mu.Lock()
		l.wakeFirst()
		l.mu.Unlock()
	}
}

// The methods below are called with l.mu held.

// settle takes reservations whose tokens are there out of the front of the queue:
// their holders do not say when they go.
func (l *Limiter) settle(now int64) {
	for t := l.queue.first; t != nil && t.wake == nil && l.due(t) <= now; t = l.queue.first {
		t.taken = l.depart(t)
	}
}

// due is when t may go. Once it has left the queue, it may.
func (l *Limiter) due(t *turn) int64 {
	p := l.cur.Load()
	switch {
	case !t.queued || p.limit.IsUnlimited():
		return 0
	case p.most == 0:
		return t.promised
	}
	end := l.queue.mark(t) - p.own.returned.Load()
	return min(t.promised, clock.After(p.own.epoch, p.own.span(end)))
}

// depart takes t out of the queue with its tokens, and returns the decision that took
// them.
func (l *Limiter) depart(t *turn) Decision {
	p := l.cur.Load()
	d := Decision{by: &p.origin, n: t.n, mark: untaken}
	if p.most > 0 {
		// As that of a take, the mark is rather too low than too high.
		d.mark = l.queue.mark(t) - p.own.claimed.Load() + p.own.returned.Load()
	}
	l.queue.remove(t, 0)
	l.removed(t)
	return d
}

// removed is what is to be done when t has left the queue.
func (l *Limiter) removed(t *turn) {
	l.queued.Add(-1)
	if t.wake != nil {
		l.waiting.Add(-1)
	}
	l.wakeFirst()
}

func (l *Limiter) wakeFirst() {
	if l.waiting.Load() == 0 { // reservations are not looked through for nothing
		return
	}
	if t := l.queue.waiter(); t != nil {
		select {
		case t.wake <- struct{}{}:
		default: // he has been told, and has not looked yet
		}
	}
}
