package ratelimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// WarmUp is a token bucket for what is slow when it is cold: a service that was just
// started, whose caches and pools are empty. It begins at rate / ColdFactor, and while
// it is in demand it gets faster, until after the warm-up period it gives the whole
// rate. Under steady demand it gives after t of the period W, for a rate R and a
// ColdFactor f,
//
//	q(t) = R / √(f² − (f² − 1) × t / W)
//
//	 R ┤                ╭──────
//	   │              ╭─╯
//	   │          ╭───╯
//	   │ ╭────────╯
//	R/f┼─╯
//	   0                W
//
// and 2 × W × R / (1 + f) tokens in all of it. This is the curve of the SmoothWarmingUp
// of Guava's RateLimiter, and of Sentinel's warm-up. When it is asked for less than
// R / f it gets cold, in the time that it took to get warm.
//
// It promises what a Limiter of the same rate and burst does, burst + rate × w tokens in
// any time w: each token costs up to ColdFactor tokens while it is cold, and comes no
// sooner for it. What counts as demand is what is asked for, admitted or not, so
// however low the rate and however rare the calls that are admitted, it gets warm under
// demand; and as a call goes as soon as there is a whole token, and what it costs more
// is paid by those who come after, each call comes to its turn.
//
// Most callers want Allow, Wait, or Do.
//
// Asking and giving back take no lock and allocate nothing. Wait uses timers. A WarmUp
// starts no goroutine and needs no closing. It is safe for concurrent use and must not
// be copied. A nil *WarmUp lets everything pass; the zero WarmUp is of no use, make one
// with NewWarmUp.
type WarmUp struct {
	// cur is the configuration in force, with its bucket and its heat. Written under
	// mu.
	cur  atomic.Pointer[warmPlan]
	mu   sync.Mutex // puts changes of the configuration in order
	desk desk
	line line
}

// NewWarmUp returns a limiter of that name, which must not be empty, and that rate, that
// is cold and gets warm in period; 0 is no warm-up. It returns every complaint about
// them and the options at once.
//
// For package variables there is sluice.Must.
func NewWarmUp(name string, rate Rate, period time.Duration, opts ...WarmUpOption) (*WarmUp, error) {
	s := newKindSettings(rate)
	s.period, s.coldFactor = period, DefaultWarmUpConfig().ColdFactor
	for i, o := range opts {
		if s.given(i, o != nil) {
			o.warmUp(s)
		}
	}
	c := WarmUpConfig{s.Rate, period, s.coldFactor, s.Burst, s.MaxWait, s.MaxWaiters}
	if err := s.check(name, "WarmUp", c, "WithBurst", "WithMaxWaiters"); err != nil {
		return nil, err
	}
	return newWarmUp(name, c, !s.uncounted, clock.Now()), nil
}

func newWarmUp(name string, c WarmUpConfig, counted bool, now int64) *WarmUp {
	u := new(WarmUp)
	u.desk.init(name, u, counted)
	u.cur.Store(newWarmPlan(name, c, now))
	return u
}

// Name returns the name given to NewWarmUp.
func (u *WarmUp) Name() string { return u.front().title() }

// Allow takes a token if there is one, and reports whether.
func (u *WarmUp) Allow() bool { return u.Take(1).OK() }

// AllowN takes n tokens if there are so many, and reports whether.
func (u *WarmUp) AllowN(n int64) bool { return u.Take(n).OK() }

// Take takes n tokens if there are so many, and tells what it decided. An n of 0 takes
// nothing; one that is negative or more than the burst is never admitted.
func (u *WarmUp) Take(n int64) Decision { return u.front().take(n) }

// Peek tells what Take would answer, and takes and counts nothing. Peek(0) is for
// looking at what is there.
func (u *WarmUp) Peek(n int64) Decision { return u.front().peek(n) }

// Refund gives back what d took, with what was paid for being cold, as Limiter.Refund
// does: the call was not made after all, or is not to count. Nor does it warm anything
// then. It is for a Decision of this limiter, once; for one that took nothing it does
// nothing.
func (u *WarmUp) Refund(d Decision) { u.front().refund(d) }

// Layer returns the limiter as a Layer of TakeAll.
func (u *WarmUp) Layer() Layer { return u.front().layer() }

// Wait takes a token, and waits for it if need be: see WaitN.
func (u *WarmUp) Wait(ctx context.Context) error { return u.WaitN(ctx, 1) }

// WaitN takes n tokens and returns nil when it has them. If they cannot be there
// before ctx's deadline, or within MaxWait, or if MaxWaiters wait already, it returns
// at once with a *LimitError and takes nothing. One that says so because of the
// deadline matches context.DeadlineExceeded.
//
// Callers get their tokens in the order in which they came, whatever their n: while
// one waits, nobody passes him. How long those before him will take is not known to
// the last, so a caller may also be refused later, when it is clear. If ctx ends while
// he waits, its own error is returned; so it is if it has ended before.
func (u *WarmUp) WaitN(ctx context.Context, n int64) error { return u.front().wait(ctx, n) }

// Do runs call if there is a token for it, and returns its error, or the refusal,
// which matches ErrLimited. It waits for a token only if MaxWait says so. When call's
// error says that a guard further in refused, the token is given back.
func (u *WarmUp) Do(ctx context.Context, call func(context.Context) error) error {
	return u.front().do(ctx, call)
}

// Admit and Settle let sluice.Call and sluice.Chain run the limiter in two steps.
func (u *WarmUp) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	return u.front().admit(ctx, now)
}

// Settle is the second step after Admit.
func (u *WarmUp) Settle(t stage.Ticket, _ context.Context, _ int64, err error, completed bool) {
	u.front().settle(t, err, completed)
}

// front is the desk of the limiter, nil for a nil WarmUp.
func (u *WarmUp) front() *desk {
	if u == nil {
		return nil
	}
	return &u.desk
}

// The methods below make it a teller.

func (u *WarmUp) take(_ uint64, n, now int64) Decision {
	return u.takeBehind(u.line.ahead.Load(), n, now)
}

// takeFirst is take for whoever is in front of the line.
func (u *WarmUp) takeFirst(n, now int64) Decision { return u.takeBehind(0, n, now) }

func (u *WarmUp) takeBehind(ahead, n, now int64) Decision {
	for {
		p := u.cur.Load()
		if d, ok := p.take(n, ahead, now); ok {
			return d
		}
		u.renew(p, now)
	}
}

func (u *WarmUp) peek(_ uint64, n, now int64) Decision {
	for {
		p := u.cur.Load()
		if d, ok := p.peek(n, u.line.ahead.Load(), now); ok {
			return d
		}
		u.renew(p, now)
	}
}

func (u *WarmUp) giveBack(_ uint64, d Decision, _ int64) {
	if p, ok := d.by.judge.(*warmPlan); ok {
		p.giveBack(d)
		u.line.stir()
	}
}

func (u *WarmUp) refund(_ uint64, d Decision) {
	if d.mark != untaken {
		u.giveBack(0, d, 0)
		u.desk.tally.countRefund()
	}
}

func (u *WarmUp) count(_ uint64, d Decision) { u.desk.tally.count(d) }

func (u *WarmUp) receipt(d Decision) any {
	if p, ok := d.by.judge.(*warmPlan); ok {
		return p.paid(d)
	}
	return d.by
}

func (u *WarmUp) wait(ctx context.Context, d Decision, now int64) (Decision, error) {
	return u.desk.waited(u.line.wait(ctx, d, now, u.cur.Load().config.patience(), u.takeFirst))
}

func (u *WarmUp) waitsInDo() bool { return u.cur.Load().config.MaxWait > 0 }

func (u *WarmUp) state() (state int64, steady bool) {
	return u.cur.Load().own.used.Load(), u.line.ahead.Load() == 0
}
