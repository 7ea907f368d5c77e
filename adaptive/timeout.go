package adaptive

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
)

// Timeout is a time limit for the calls to one dependency that follows how long
// they take: long enough that hardly any call is cut off that would have been
// answered, and hardly longer.
//
// It promises that the limit stays within base and max, that it can always grow
// again however many calls it cuts off, and that in an outage it stays near what it
// was before. A call that fails, is refused or is throttled says nothing about time
// and leaves no trace; one that somebody else cuts off counts as longer than that.
//
// Most callers want Do, or sluice.Call for a result. Begin and Attempt are for code
// that begins and ends a call in different places, Value for drivers that take a
// duration, and Meter for calls that end by themselves.
//
// Value, Begin and settling take no lock and allocate nothing, except that every
// 250 ms the call that ends works out the limit anew. Do and Attempt.Context
// allocate the context with the deadline, unless the caller's ends sooner. A Timeout
// starts no goroutine and needs no closing. It is safe for concurrent use and must
// not be copied. A nil *Timeout lets everything pass, without a limit; the zero
// Timeout is of no use, make one with NewTimeout.
type Timeout struct {
	// cur is the limit in force. Written by tick and Update, by CAS.
	cur atomic.Pointer[term]
	// next is when the limit is to be worked out again. Written by tick.
	next    atomic.Int64
	ticking atomic.Bool // somebody is working it out
	// plan is what is decided on. Written under mu, by Update.
	plan  atomic.Pointer[timeoutPlan]
	name  string
	hooks *timeoutHooks
	// refusal is what Begin returns where there is too little time.
	refusal *DeadlineError
	mu      sync.Mutex              // puts Updates in order
	member  *roster.Member[Timeout] // the place in a TimeoutGroup, nil if in none
	made    int64                   // when, for the TimeoutGroup

	_ [64]byte // what calls write keeps away from what they read
	// Calls since the last probe that went because of its share, and when the next
	// goes in any case.
	asked     atomic.Uint32
	nextProbe atomic.Int64
	// nextHurried is when a call with too little time left may go all the same.
	nextHurried atomic.Int64
	timeoutTally
	said atomic.Pointer[timeoutReported] // made by the first Collect
}

// NewTimeout returns a Timeout for the resource of that name, which must not be
// empty. Its limit begins at max, see WithInitial, and stays within base and max. It
// returns every complaint about its arguments at once.
//
// For package variables there is sluice.Must.
func NewTimeout(name string, base, max time.Duration, opts ...TimeoutOption) (*Timeout, error) {
	s := newTimeoutSettings(base, max)
	s.apply(opts)
	if name == "" {
		s.errs = append(s.errs, errors.New("adaptive: the name is empty"))
	}
	if s.group != nil {
		s.errs = append(s.errs, errGroupOption)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	t := newTimeout(name, &s.TimeoutConfig, s.hooks.keep(), clock.Now())
	if f, ok := t.plan.Load().est.(*foreign); ok {
		if err := f.prepare(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// newTimeout makes a Timeout of what has been validated. It runs no foreign code.
func newTimeout(name string, c *TimeoutConfig, h *timeoutHooks, now int64) *Timeout {
	t := &Timeout{name: name, hooks: h}
	t.refusal = &DeadlineError{t}
	p := t.newPlan(c, newTracker(c, h, now))
	t.plan.Store(p)
	t.cur.Store(t.newTerm(p, Estimate{Limit: c.first(), State: Cold}))
	return t
}

// Name returns the name given to NewTimeout.
func (t *Timeout) Name() string {
	if t == nil {
		return ""
	}
	return t.name
}

// Value returns the limit for a call that begins now, 0 for a nil Timeout. It is
// one atomic load.
func (t *Timeout) Value() time.Duration {
	if t == nil {
		return 0
	}
	return t.cur.Load().limit
}

// Begin begins a call. The Attempt must be settled by one of its methods when the
// call has ended. A call whose ctx leaves it less time than the median call takes is
// refused with an error that matches ErrDeadlineTooShort: it would very likely be in
// vain. Four such calls a second go all the same, so that the median cannot be wrong
// for ever. If ctx is done already, its own error is returned and nothing is counted.
func (t *Timeout) Begin(ctx context.Context) (Attempt, error) {
	if t == nil {
		return Attempt{}, nil
	}
	if err := ctx.Err(); err != nil {
		return Attempt{}, err
	}
	return t.begin(ctx, clock.Now())
}

// Do runs call under the limit and learns from how long it took. It returns call's
// error as it is, or a refusal, see Begin, without having run call. context.Cause
// of the ctx that call is given matches sluice.ErrTimeout if the limit has ended it. That
// ctx ends when call returns: the body of an HTTP response must be read within call.
// A panic or runtime.Goexit in call goes on, and nothing is learnt from it.
func (t *Timeout) Do(ctx context.Context, call func(context.Context) error) error {
	a, err := t.Begin(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	ctx, cancel := a.Context(ctx)
	defer cancel()
	err = call(ctx)
	a.Done(err)
	return err
}

// begin is Begin at a given time, with a ctx that is not done.
func (t *Timeout) begin(ctx context.Context, now int64) (Attempt, error) {
	w := t.cur.Load()
	if w.median > 0 {
		if deadline, ok := ctx.Deadline(); ok && clock.At(deadline)-now < int64(w.median) {
			if !once(&t.nextHurried, now, tickEvery) {
				t.refused.Add(1)
				return Attempt{}, t.refusal
			}
		}
	}
	if w.probing {
		w = t.probe(w, now)
	}
	return Attempt{term: w, start: now, ctx: ctx}, nil
}

// probe returns the term of a call that begins now, while there are probes: one in
// so many, and one a second at least, may run as long as Max.
func (t *Timeout) probe(w *term, now int64) *term {
	p := t.plan.Load()
	if p.probeEvery > 0 && t.asked.Add(1) >= p.probeEvery {
		t.asked.Store(0)
		t.nextProbe.Store(clock.After(now, time.Second))
	} else if !once(&t.nextProbe, now, time.Second) {
		return w
	}
	t.probes.Add(1)
	return p.longest
}

// once is true for one caller in each time of every.
func once(next *atomic.Int64, now int64, every time.Duration) bool {
	at := next.Load()
	return now >= at && next.CompareAndSwap(at, clock.After(now, every))
}
