package ratelimit

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// Reservation is tokens that were taken ahead of time: the holder goes when Delay is
// over, or gives them back with Cancel. It is a local value of one goroutine and must
// not be copied. The methods of the zero Reservation say that there is nothing to
// wait for, and do nothing.
type Reservation struct {
	_     noCopy
	l     *Limiter
	taken Decision // the zero Decision once it is cancelled
	at    int64    // when the tokens are there
}

// Reserve takes n tokens that will be there within maxWait, for a caller who does his
// own waiting. It refuses with a *LimitError and takes nothing if they will not. A
// maxWait below 0 counts as 0.
//
// An n of 0 reserves nothing. MaxWait and MaxWaiters are about Wait and do not matter
// here.
func (l *Limiter) Reserve(n int64, maxWait time.Duration) (Reservation, error) {
	if l == nil {
		return Reservation{}, nil
	}
	now := clock.Now()
	d, at := l.reserve(n, clock.After(now, min(maxWait, maxFill)), now)
	if !d.OK() && n > 0 && !d.Never() {
		return Reservation{}, l.refuse(d, ReasonMaxWait)
	}
	l.tally.count(d)
	return Reservation{l: l, taken: d, at: at}, d.Err()
}

// Delay returns how long from now the holder has to wait yet, 0 if he may go.
func (r *Reservation) Delay() time.Duration {
	if r.at == 0 {
		return 0
	}
	return time.Duration(max(0, r.at-clock.Now()))
}

// Cancel gives the tokens back, as Limiter.Refund does, also when the time to go has
// come. Those who reserved later keep the time that they were promised. Only the
// first Cancel counts.
func (r *Reservation) Cancel() {
	r.l.Refund(r.taken)
	r.taken = Decision{}
}

// reserve takes n tokens that will be there by latest, at the time at. If they will
// not, d is the refusal of taking them now.
func (l *Limiter) reserve(n, latest, now int64) (d Decision, at int64) {
	for {
		p := l.cur.Load()
		if !p.can(n) {
			if d, ok := p.peek(n, now); ok {
				return d, now
			}
		} else if end, lack, mark, ok := p.own.reserve(n, latest, now); ok {
			return Decision{&p.origin, n, lack, mark}, clock.After(p.own.epoch, p.own.span(end))
		}
		l.renew(p, now)
	}
}

// noCopy makes go vet complain about copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
