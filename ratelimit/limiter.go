package ratelimit

import (
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
)

// Limiter is a token bucket: tokens come at its rate and are kept up to its burst,
// and a call goes when it can take one.
//
// It promises that in any time w at most burst + rate × w tokens are taken, whatever
// the interleaving of goroutines and whatever a clock does, and that at least the
// rate is given to whoever asks for it: times are worked out in whole numbers from
// the beginning of the limiter, so no rounding adds up (see Rate for what rates there
// are). Giving back makes no tokens, see Refund.
//
// Most callers want Allow, to shed what is too much, or Wait, to slow down. Take says
// more: what is left and when to come again. Do is both for a sluice.Guard, such as
// in a sluice.Chain.
//
// Asking and giving back take no lock and allocate nothing; a refusal by Take writes
// nothing but a count. Waiting uses a timer. A Limiter starts no goroutine and needs
// no closing. It is safe for concurrent use and must not be copied. A nil *Limiter
// lets everything pass; the zero Limiter is of no use, make one with New.
type Limiter struct {
	// cur is the configuration in force with its bucket. Written by swap only, under
	// mu.
	cur  atomic.Pointer[plan]
	name string
	tier tier
	// strict says that it is the bucket of a StrictWindow.
	strict bool
	// mu puts changes of the configuration in order, and guards queue.
	mu    sync.Mutex
	queue queue
	// queued counts turns in queue, waiting those of waiters. Written under mu.
	queued, waiting atomic.Int64
	last            lastRefusal
	tally           *tally // nil if nothing is counted
}

// New returns a limiter of that name, which must not be empty, and that rate. It
// returns every complaint about them and the options at once.
//
// For package variables there is sluice.Must.
func New(name string, rate Rate, opts ...Option) (*Limiter, error) {
	s, err := apply(name, rate, opts)
	if err != nil {
		return nil, err
	}
	return newLimiter(name, s, clock.Now()), nil
}

func newLimiter(name string, s settings, now int64) *Limiter {
	l := &Limiter{name: name, strict: s.strict}
	l.tier.taker, l.tier.uncounted = l, s.uncounted
	if !s.uncounted {
		l.tally = new(tally)
	}
	l.cur.Store(l.newPlan(s.Config, now))
	return l
}

// Name returns the name given to New.
func (l *Limiter) Name() string {
	if l == nil {
		return ""
	}
	return l.name
}

// Allow takes a token if there is one, and reports whether.
func (l *Limiter) Allow() bool { return l.AllowN(1) }

// AllowN takes n tokens if there are so many, and reports whether. It reports whether
// the limiter is in debt for an n of 0, and never takes a negative number.
func (l *Limiter) AllowN(n int64) bool { return l.Take(n).OK() }

// Take takes n tokens if there are so many, and tells what it decided. An n of 0
// takes nothing; it is refused while the limiter is in debt. An n that is negative or
// more than the burst is never admitted.
func (l *Limiter) Take(n int64) Decision {
	if l == nil {
		return unlimited(n)
	}
	d := l.take(0, n, clock.Now())
	l.count(0, d)
	return d
}

// TakeUpTo takes as many whole tokens as there are, at least least and at most most;
// Tokens of the Decision is how many. If there are fewer than least it takes none.
// With a least of 0 it takes what there is. Negative or crossed bounds are never
// admitted.
func (l *Limiter) TakeUpTo(least, most int64) Decision {
	if l == nil {
		return unlimited(most)
	}
	d := l.takeUpTo(least, most, clock.Now())
	l.count(0, d)
	return d
}

// Peek tells what Take would answer, and takes and counts nothing. Peek(0) is for
// looking at what is there.
func (l *Limiter) Peek(n int64) Decision {
	if l == nil {
		return unlimited(n)
	}
	return l.peek(0, n, clock.Now())
}

// Debit takes n tokens whether they are there or not: for what a call turned out to
// cost. The limiter goes into debt by at most MaxDebt, and admits nothing until time
// has paid it. What is beyond MaxDebt is not charged. Debit returns what Peek(0) then
// says: it is OK unless the limiter is in debt, or n negative.
func (l *Limiter) Debit(n int64) Decision {
	if l == nil {
		return unlimited(n)
	}
	return l.debit(n, clock.Now())
}

// Refund gives back what d took: the call was not made after all, or is not to count.
// As long as nobody has taken since, it is as if d had never been. After that it may be
// less, because tokens have come for which the burst would have had no room; and as
// long after d as an empty limiter takes to fill, nothing is left. So what is kept
// never exceeds burst + rate × time. It is for a Decision of this limiter, once; for
// one that took nothing it does nothing.
func (l *Limiter) Refund(d Decision) {
	if l != nil && d.tookSome() {
		l.refund(0, d)
	}
}

// Layer returns the limiter as a Layer of TakeAll.
func (l *Limiter) Layer() Layer {
	if l == nil {
		return Layer{}
	}
	return Layer{of: &l.tier}
}

// take, peek, giveBack and count make the limiter a taker, refund a refunder.
func (l *Limiter) take(_ uint64, n, now int64) Decision {
	for {
		p := l.cur.Load()
		if d, ok := p.take(n, now); ok {
			return d
		}
		l.renew(p, now)
	}
}

func (l *Limiter) peek(_ uint64, n, now int64) Decision {
	for {
		p := l.cur.Load()
		if d, ok := p.peek(n, now); ok {
			return d
		}
		l.renew(p, now)
	}
}

func (l *Limiter) giveBack(_ uint64, d Decision, _ int64) {
	if c, ok := d.by.judge.(*claim); ok && c.most > 0 {
		c.bucket.undo(d.n, d.mark)
	}
}

func (l *Limiter) count(_ uint64, d Decision) { l.tally.count(d) }

func (l *Limiter) refund(_ uint64, d Decision) {
	l.giveBack(0, d, 0)
	l.tally.countRefund()
	l.stir()
}

func (l *Limiter) takeUpTo(least, most, now int64) Decision {
	if least < 0 || most < least {
		return l.peek(0, -1, now)
	}
	for {
		there := l.peek(0, 0, now)
		n := max(least, min(most, there.Remaining()))
		d := l.take(0, n, now)
		if d.OK() || n == least {
			return d
		}
	}
}

func (l *Limiter) debit(n, now int64) Decision {
	for n > 0 {
		p := l.cur.Load()
		if p.most == 0 { // there is nothing to take from
			break
		}
		debt := p.config.debt()
		if n = min(n, p.most+debt); p.own.debit(n, debt*p.own.unit, now) {
			l.tally.tokens(n)
			break
		}
		l.renew(p, now)
	}
	return l.peek(0, min(n, 0), now)
}
