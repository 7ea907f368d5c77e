package breaker

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/notify"
	"github.com/sluicego/sluice/internal/roster"
	"github.com/sluicego/sluice/internal/stage"
	"github.com/sluicego/sluice/slidingwindow"
)

// Breaker is a circuit breaker for one resource: it watches how calls end, stops
// them when too many end badly, and finds out by a bounded number of probes when
// they may go on.
//
// It promises that an open breaker admits nothing before its deadline, that
// half-open admits exactly its probes, that a result which comes after the state
// has changed decides nothing, and that no probe can block it for longer than its
// lease. Its own refusals and those of guards further in are counted nowhere as
// calls.
//
// Most callers want Do, or sluice.Call for a result. Allow and Permit are for code
// that begins and ends a call in different places.
//
// Allow, Do and settling take no lock and allocate nothing while the breaker is
// closed, open or refuses in half-open; probes and changes of state take a mutex
// for a few instructions. A Breaker starts no goroutine and needs no closing. It
// is safe for concurrent use and must not be copied. A nil *Breaker lets
// everything pass; the zero Breaker is of no use, make one with New.
type Breaker struct {
	// cur is the stay in the current state. Written by move only, under mu.
	cur atomic.Pointer[episode]
	// plan is what is decided on. Written under mu, by Update, Force and Unforce.
	plan  atomic.Pointer[plan]
	name  string
	hooks *hooks
	// mu puts changes of state and plan in order, and guards the trial of the
	// current episode. It is never held while foreign code runs.
	mu     sync.Mutex
	events *notify.Queue[Event]    // nil if nobody listens
	member *roster.Member[Breaker] // the place in a Group, nil if in none
	totals slidingwindow.Totals    // what has left the windows
	tally
	// history is nil until the breaker refuses for the first time. Made by
	// countRefusals, and then stays.
	history atomic.Pointer[history]
	said    atomic.Pointer[reported] // made by the first Collect
}

// New returns a closed breaker for the resource of that name, which must not be
// empty. It returns every complaint about the options at once.
//
// For package variables there is sluice.Must.
func New(name string, opts ...Option) (*Breaker, error) {
	s := newSettings()
	s.apply(opts)
	if name == "" {
		s.errs = append(s.errs, errors.New("breaker: the name is empty"))
	}
	if s.group != nil {
		s.errs = append(s.errs, errGroupOption)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return newBreaker(name, newPlan(s.Config.Clone()), s.hooks.keep(), clock.Now()), nil
}

func newBreaker(name string, p *plan, h *hooks, now int64) *Breaker {
	b := &Breaker{name: name, hooks: h}
	if h.listening() {
		b.events = new(notify.Queue[Event])
	}
	b.plan.Store(p)
	first := b.newClosed(p, now, Cause{}, nil)
	first.generation = 1
	b.cur.Store(first)
	return b
}

// Name returns the name given to New.
func (b *Breaker) Name() string {
	if b == nil {
		return ""
	}
	return b.name
}

// Allow asks for leave to make one call and answers at once. The permit must be
// settled by one of its methods when the call has ended. A refusal matches
// ErrOpen. If ctx is done already, its own error is returned and nothing is
// spent.
func (b *Breaker) Allow(ctx context.Context) (Permit, error) {
	if b == nil {
		return Permit{}, nil
	}
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	e, p := b.cur.Load(), b.plan.Load()
	if e.state == Closed && p.plain && !e.closed.recovering.Load() {
		var start int64
		if p.timed {
			start = clock.Now()
		}
		return Permit{seat: &e.seat, start: start, ctx: ctx}, nil
	}
	now := clock.Now()
	s, err := b.admit(ctx, now)
	return Permit{seat: s, start: now, ctx: ctx}, err
}

// Do runs call if the breaker admits it, and counts how it ended. It returns
// call's error as it is, or a refusal, which matches ErrOpen, without having run
// call. A panic or runtime.Goexit in call counts as a failure and goes on. In the
// ctx of a half-open probe, sluice.IsProbe is true.
func (b *Breaker) Do(ctx context.Context, call func(context.Context) error) error {
	p, err := b.Allow(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	if p.seat != nil && p.seat.probe != nil {
		ctx = stage.WithProbe(ctx)
	}
	err = call(ctx)
	p.Done(err)
	return err
}

// Peek returns the refusal that Allow would give now, nil if it would admit. It
// has no side effect, and promises nothing: in recovery it is always nil.
func (b *Breaker) Peek() error {
	if b == nil {
		return nil
	}
	now := clock.Now()
	e, p := b.cur.Load(), b.plan.Load()
	switch p.modeAt(now) {
	case ForcedOpen:
		return p.refusal
	case ForcedClosed, Shadow, Disabled:
		return nil
	}
	if e.refuses(now) {
		return e.refusal
	}
	return nil
}

// State returns where the breaker stands. It has no side effect, and tells what
// the next call will find: HalfOpen as soon as the open period is over. An
// override does not change it, see Snapshot.
func (b *Breaker) State() State {
	if b == nil {
		return Closed
	}
	return b.state(clock.Now())
}

// Probe runs ping as a half-open probe if one may go now, so that a breaker can
// recover without risking a real call: run it from a ticker of your own. It does
// nothing in Closed, and returns the refusal if no probe may go.
func (b *Breaker) Probe(ctx context.Context, ping func(context.Context) error) error {
	if b.State() == Closed {
		return nil
	}
	return b.Do(ctx, ping)
}

// Admit and Settle let sluice.Call and sluice.Chain run the breaker in two steps.
func (b *Breaker) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	s, err := b.seatFor(ctx, now)
	if s == nil {
		return stage.Ticket{At: now}, err
	}
	t := stage.Ticket{Ref: s, At: now}
	if s.probe != nil {
		t.Mark = stage.ProbeMark
	}
	return t, nil
}

// Settle is the second step after Admit.
func (b *Breaker) Settle(t stage.Ticket, ctx context.Context, now int64, err error, completed bool) {
	s, ok := t.Ref.(*seat)
	switch {
	case !ok:
	case completed:
		s.done(ctx, t.At, now, err)
	default:
		s.abandon(ctx, t.At, now)
	}
}

// allow is Allow at a given time.
func (b *Breaker) allow(ctx context.Context, now int64) (Permit, error) {
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	s, err := b.seatFor(ctx, now)
	return Permit{seat: s, start: now, ctx: ctx}, err
}

// seatFor gives a call its seat. None and no error means that the call passes and
// is not counted.
func (b *Breaker) seatFor(ctx context.Context, now int64) (*seat, error) {
	if b == nil {
		return nil, nil
	}
	e, p := b.cur.Load(), b.plan.Load()
	if e.state == Closed && p.plain && !e.closed.recovering.Load() {
		return &e.seat, nil
	}
	return b.admit(ctx, now)
}

// admit is seatFor where a closed breaker's short way does not do.
func (b *Breaker) admit(ctx context.Context, now int64) (*seat, error) {
	for {
		// Both afresh each time: a listener may have put an override in force.
		e, p := b.cur.Load(), b.plan.Load()
		mode := p.modeAt(now)
		switch mode {
		case Disabled:
			return nil, nil
		case ForcedOpen:
			return nil, b.refuse(ctx, p.refusal, now)
		}
		s, again := b.enter(ctx, e, p, now)
		switch {
		case again:
		case s != nil || mode == ForcedClosed:
			return s, nil
		case mode == Shadow:
			b.history.Load().shadowed.Add(1)
			return nil, nil
		default:
			return nil, b.refuse(ctx, e.refusal, now)
		}
	}
}

// enter gives a call its seat in e, or none. again says that e has ended, because
// its time had come or by somebody else, and that the call has to ask anew.
func (b *Breaker) enter(ctx context.Context, e *episode, p *plan, now int64) (s *seat, again bool) {
	switch e.state {
	case Closed:
		s = b.enterClosed(ctx, e, p, now)
		return s, s == nil && b.cur.Load() != e // overdue calls may have just tripped it
	case Open:
		if now < e.open.until.Load() {
			return nil, false
		}
		b.change(ctx, e, func(p *plan) *episode { return b.newHalfOpen(p, now, e) })
		return nil, true
	}
	return b.enterTrial(ctx, e, now)
}

// refuses reports whether e would refuse a call at now, as far as that can be
// told without asking for real.
func (e *episode) refuses(now int64) bool {
	switch e.state {
	case Open:
		return now < e.open.until.Load()
	case HalfOpen:
		return now < e.trial.busyUntil.Load()
	}
	return false
}

// state is State at a given time.
func (b *Breaker) state(now int64) State {
	e := b.cur.Load()
	if e.state == Open && now >= e.open.until.Load() {
		return HalfOpen
	}
	return e.state
}

// deliver hands waiting events to the listeners. The caller holds no lock.
func (b *Breaker) deliver() {
	if b.events != nil {
		b.events.Deliver(b.tell, nil)
	}
}
