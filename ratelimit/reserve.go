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
	_ noCopy
	l *Limiter
	t *turn // nil if there is nothing to wait for or to give back
}

// Reserve takes n tokens that will be there within maxWait, for a caller who does his
// own waiting. It refuses with a *LimitError and takes nothing if they will not. A
// maxWait below 0 counts as 0. An n of 0 reserves nothing.
//
// MaxWait and MaxWaiters are about Wait and do not matter here. Reserve takes a mutex
// for a few instructions and allocates the place in the queue.
func (l *Limiter) Reserve(n int64, maxWait time.Duration) (Reservation, error) {
	if l == nil {
		return Reservation{}, nil
	}
	now, t := clock.Now(), &turn{n: n}
	d, _ := l.enqueue(t, clock.After(now, min(maxWait, maxFill)), now)
	switch {
	case n == 0: // refused if it is in debt
		return Reservation{}, d.Err()
	case !d.OK():
		return Reservation{}, l.refuse(d, ReasonMaxWait)
	}
	l.tally.count(d)
	if d.by.limit.IsUnlimited() {
		return Reservation{}, nil
	}
	return Reservation{l: l, t: t}, nil
}

// Delay returns how long from now the holder has to wait yet, 0 if he may go. It gets
// shorter when somebody before him gives his tokens back, or when Update raises the
// rate; it never gets longer.
func (r *Reservation) Delay() time.Duration {
	if r.t == nil {
		return 0
	}
	at, _ := r.l.turnOf(r.t)
	return time.Duration(max(0, at-clock.Now()))
}

// Cancel gives the tokens back. If they are not there yet, it is as if they had never
// been reserved; else it is worth what Limiter.Refund says. Only the first Cancel
// counts.
func (r *Reservation) Cancel() {
	if r.t != nil {
		r.l.cancel(r.t)
		r.l.tally.countRefund()
		r.t = nil
	}
}

// noCopy makes go vet complain about copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
