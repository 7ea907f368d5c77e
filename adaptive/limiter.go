package adaptive

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
	"github.com/sluicego/sluice/internal/stage"
	"github.com/sluicego/sluice/internal/waitq"
)

// Limiter bounds how many calls are under way at once, by a limit that follows what they
// say: so many that what serves them is busy, and not so many that they wait for each
// other. It belongs in front of what serves calls, or around those to one dependency.
//
// It promises that the limit stays within Min and Max, and that no more calls are under
// way than the limit says, except while a limit that has become lower waits for calls to
// end; that calls which are throttled or time out lower it; that it never grows while
// less than half of it is used; and that time spent waiting for leave is not taken for
// the call's own. A call that fails, is ignored or is refused leaves no trace in it.
//
// Most callers want Do, or sluice.Call for a result. Acquire and LimiterPermit are for
// code that begins and ends a call in different places, and TryAcquire for code that
// must not wait. By default nobody waits; WithQueue lets some, for a while, the more
// important ones first (sluice.WithPriority).
//
// Acquiring and settling take no lock and allocate nothing while nobody waits, except
// that the call that ends a window, once a second or so, works out the limit anew; nor
// does being refused by TryAcquire, or by Acquire if nobody may wait. Waiting takes a
// mutex for a few instructions, and blocks until there is a place, the wait is over or
// the ctx is done. A Limiter starts no goroutine and needs no closing. It is safe for
// concurrent use and must not be copied. A nil *Limiter lets everything pass; the zero
// Limiter is of no use, make one with NewLimiter.
type Limiter struct {
	places *waitq.Semaphore
	// window is where calls are recorded. Written by look, and by Update.
	window atomic.Pointer[limitWindow]
	name   string
	hooks  *limiterHooks
	// refusals are the errors that it gives, by reason.
	refusals *[limitReasons]LimitError
	// plan is what is decided on. Written under mu, by Update; what it points to never
	// changes but for its tracker, which is of whoever has looking.
	plan    atomic.Pointer[limiterPlan]
	looking atomic.Bool // somebody is working out the limit
	// found is what the last window said. Written by whoever has looking.
	found  atomic.Pointer[limitFound]
	mu     sync.Mutex              // puts changes of the limit and the plan in order
	exact  float64                 // the limit with its fraction; guarded by mu
	draw   func() uint32           // a random number; another one in tests
	member *roster.Member[Limiter] // the place in a LimiterGroup, nil if in none
	limiterUse
	limiterTally
}

// NewLimiter returns a Limiter of that name, which must not be empty. It returns every
// complaint about the options at once.
//
// For package variables there is sluice.Must.
func NewLimiter(name string, opts ...LimiterOption) (*Limiter, error) {
	s := newLimiterSettings()
	s.apply(opts)
	if name == "" {
		s.errs = append(s.errs, errors.New("adaptive: the name is empty"))
	}
	if s.group != nil {
		s.errs = append(s.errs, errLimiterGroupOption)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	l := newLimiter(name, &s.LimiterConfig, s.hooks.keep(), rand.Uint32, clock.Now())
	if f, ok := l.plan.Load().tracker.(*foreignLimit); ok {
		if err := f.prepare(); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// newLimiter makes a Limiter of what has been validated. It runs no foreign code.
func newLimiter(name string, c *LimiterConfig, h *limiterHooks, draw func() uint32, now int64) *Limiter {
	l := &Limiter{
		places: waitq.NewSemaphore(c.first(), c.policy(), clock.Now),
		name:   name, hooks: h, refusals: newLimitRefusals(name), exact: float64(c.first()), draw: draw,
	}
	l.plan.Store(&limiterPlan{config: c, ranked: c.ranked(), tracker: newLimitTracker(&c.Rule, h, draw)})
	// The first call that ends has a look: it may be in a synctest bubble, which is another
	// time.
	l.window.Store(&limitWindow{began: now})
	return l
}

// Name returns the name given to NewLimiter.
func (l *Limiter) Name() string {
	if l == nil {
		return ""
	}
	return l.name
}

// Limit returns how many calls may be under way at once, 0 for a nil Limiter.
func (l *Limiter) Limit() int {
	if l == nil {
		return 0
	}
	return l.places.Limit()
}

// InFlight returns how many calls are under way. It may be more than Limit after that
// has become lower.
func (l *Limiter) InFlight() int {
	if l == nil {
		return 0
	}
	return l.places.InUse()
}

// Acquire asks for leave to make one call, and waits for it if it must and may. The
// permit must be settled by one of its methods when the call has ended. A refusal
// matches ErrLimited. If ctx is done, before or while it waits, its own error is
// returned and nothing is taken.
func (l *Limiter) Acquire(ctx context.Context) (LimiterPermit, error) {
	if l == nil {
		return LimiterPermit{}, nil
	}
	if err := ctx.Err(); err != nil {
		return LimiterPermit{}, err
	}
	if l.places.TryAcquire(1) {
		return LimiterPermit{limiter: l, start: clock.Now(), ctx: ctx}, nil
	}
	at, err := l.wait(ctx, 0)
	if err != nil {
		return LimiterPermit{}, err
	}
	return LimiterPermit{limiter: l, start: at, ctx: ctx}, nil
}

// TryAcquire is Acquire without waiting: it refuses if there is no place, or if others
// wait for one, whatever the priority. If ctx is done, its own error is returned.
func (l *Limiter) TryAcquire(ctx context.Context) (LimiterPermit, error) {
	if l == nil {
		return LimiterPermit{}, nil
	}
	if err := ctx.Err(); err != nil {
		return LimiterPermit{}, err
	}
	if l.places.TryAcquire(1) {
		return LimiterPermit{limiter: l, start: clock.Now(), ctx: ctx}, nil
	}
	return LimiterPermit{}, l.refuse(refusedLimit)
}

// Do runs call when it has leave, for which it waits if it must and may. It returns
// call's error as it is, or a refusal, which matches ErrLimited, or ctx's own error if
// that ended first, without having run call. A panic or runtime.Goexit in call goes on,
// and the place is given back.
func (l *Limiter) Do(ctx context.Context, call func(context.Context) error) error {
	p, err := l.Acquire(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	err = call(ctx)
	p.Done(err)
	return err
}

// Admit and Settle let sluice.Call and sluice.Chain run the Limiter in two steps.
func (l *Limiter) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	if l == nil {
		return stage.Ticket{At: now}, nil
	}
	if l.places.TryAcquire(1) {
		return stage.Ticket{Ref: l, At: now}, nil
	}
	at, err := l.wait(ctx, now)
	if err != nil {
		return stage.Ticket{}, err
	}
	return stage.Ticket{Ref: l, At: at}, nil
}

// Settle is the second step after Admit.
func (l *Limiter) Settle(t stage.Ticket, ctx context.Context, now int64, err error, completed bool) {
	l, ok := t.Ref.(*Limiter)
	switch {
	case !ok:
	case completed:
		l.done(ctx, t.At, now, err)
	default:
		l.settle(ctx, t.At, now, abandoned(ctx), false)
	}
}

// wait is for a call that has found no place: it waits if it may, and returns when it
// got one. now is 0 if nobody has read the time yet.
func (l *Limiter) wait(ctx context.Context, now int64) (at int64, err error) {
	open := l.places.Open()
	if open == 0 {
		if l.places.Wanted() {
			return 0, l.refuse(refusedLimitQueue)
		}
		return 0, l.refuse(refusedLimit)
	}
	class := middleClass
	if l.plan.Load().ranked {
		class = classOf(ctx)
	}
	if open&(1<<class) == 0 {
		return 0, l.refuse(refusedLimitQueue)
	}
	if now == 0 {
		now = clock.Now()
	}
	at, v := l.places.Wait(ctx, 1, class, now)
	switch v {
	case waitq.Admitted:
		return at, nil
	case waitq.Left:
		l.gaveUp.Add(1)
		return 0, stage.EndOf(ctx)
	case waitq.Expired:
		return 0, l.refuse(refusedLimitWait)
	}
	return 0, l.refuse(refusedLimitQueue)
}

// middleClass is the class of calls without a priority.
const middleClass = int(sluice.P1 - sluice.P0)
