package retry

import (
	"context"
	"errors"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Attempts is one call's way through a Policy, step by step, for code that cannot put
// the call into a function, or has something to do between two attempts:
//
//	a, err := policy.Begin(ctx)
//	if err != nil {
//		return nil, err
//	}
//	for {
//		resp, err := send(ctx)
//		wait, again := a.Next(ctx, err)
//		if !again {
//			return resp, a.Err()
//		}
//		discard(resp) // before the wait, not after it
//		if !a.Wait(ctx, wait) {
//			return nil, a.Err()
//		}
//	}
//
// Each attempt ends with Next, or with Done if there can be no other; the same ctx is
// to be given to all. An attempt that panics need not be told of.
//
// It is a local value of one goroutine and must not be copied. The zero Attempts, and
// those of a nil *Policy, allow no second one. None of it allocates before there is a
// retry or an error to return.
type Attempts struct {
	_       noCopy
	policy  *Policy
	plan    *plan // as it was at the beginning
	shared  bool  // a Hedger has the same budget
	counted bool  // somebody further out has deposited the call
	made    int
	charged int64 // when the budget was charged for the next attempt or the one under way; 0 if it was not
	last    error // the last that was worth another attempt
	err     error // what the call returns, if this is the end
}

// Begin starts a call. If ctx is done already, its own error is returned.
func (p *Policy) Begin(ctx context.Context) (a Attempts, err error) {
	if p != nil {
		a.begin(ctx, p)
		err = ctx.Err()
	}
	return // and does not copy a
}

// Made returns how many attempts have ended. One that was refused locally was none.
func (a *Attempts) Made() int { return a.made }

// Next tells how an attempt ended, nil for well, and asks for another. If there may
// be one, again is true, the budget has been charged for it, and Wait is to be called
// for the time before it. Otherwise Err tells what to return.
func (a *Attempts) Next(ctx context.Context, err error) (wait time.Duration, again bool) {
	if err == nil {
		a.succeed()
		return 0, false
	}
	if a.policy == nil {
		a.ended()
		a.err = err
		return 0, false
	}
	return a.next(ctx, clock.Now(), err)
}

// Done tells how an attempt ended, nil for well, after which there can be no other
// whatever the policy says: for a request that cannot be sent twice. Err then returns
// err as it is.
func (a *Attempts) Done(err error) {
	if err == nil {
		a.succeed()
		return
	}
	a.err = err
	if refused(err) {
		a.unmade()
		return
	}
	a.ended()
	if a.made == 1 && a.policy != nil && !a.counted {
		a.policy.budget.Deposit()
	}
}

// Wait waits, and reports whether to make the next attempt: not if ctx ended before.
// Err then tells what to return.
func (a *Attempts) Wait(ctx context.Context, d time.Duration) bool {
	err := sleep(ctx, d)
	if err == nil {
		return true
	}
	a.unmade()
	a.err = err
	a.giveUp(gaveUpEnded, &Error{ctxErr: err, cause: context.Cause(ctx)})
	return false
}

// Err returns what the call is to return: nil if the last attempt went well, an
// *Error if the policy would have liked another and could not have it, and else the
// last attempt's error as it is.
func (a *Attempts) Err() error { return a.err }

// Limit returns how long the attempt that is about to be made may take by the policy,
// for a caller that keeps the time himself: until the headers of a response have come,
// say. It is 0 if ctx ends sooner anyway or there is no limit.
func (a *Attempts) Limit(ctx context.Context) time.Duration {
	if a.plan == nil || !a.plan.limited {
		return 0
	}
	return a.plan.limit(ctx, a.made, clock.Now())
}

// Marked returns the ctx for the attempt that is about to be made, without the limit of
// time. Further in, AttemptOf tells the number of a further attempt, and nobody repeats
// it.
func (a *Attempts) Marked(ctx context.Context) context.Context {
	if a.shared && !a.counted {
		ctx = withDeposit(ctx, a.policy.budget)
	}
	if a.made > 0 && a.policy != nil {
		ctx = withAttempt(ctx, a.made+1)
	}
	return ctx
}

// Context returns what Marked does, with the limit of time as a deadline, and what is
// to be called when nothing of the attempt is needed any more, such as the body of a
// response.
func (a *Attempts) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := a.Limit(ctx)
	ctx = a.Marked(ctx)
	if limit == 0 {
		return ctx, nothing
	}
	return context.WithTimeoutCause(ctx, limit, &limitError{a.policy.name, a.made + 1, limit})
}

func nothing() {}

func (a *Attempts) begin(ctx context.Context, p *Policy) {
	a.policy, a.plan = p, p.plan.Load()
	if a.shared = p.budget.isHedged(); a.shared {
		a.counted = isDeposited(ctx, p.budget)
	}
}

// repeat makes further attempts after one that ended with err, as long as there shall
// be any.
func (a *Attempts) repeat(ctx context.Context, call func(context.Context) error, err error) error {
	for {
		wait, again := a.Next(ctx, err)
		if !again || !a.Wait(ctx, wait) {
			return a.err
		}
		err = a.attempt(ctx, call)
	}
}

// attempt makes the next attempt.
func (a *Attempts) attempt(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := a.Context(ctx)
	defer cancel()
	return call(ctx)
}

// succeed ends the call well.
func (a *Attempts) succeed() {
	a.ended()
	a.err = nil
	switch {
	case a.policy == nil:
	case a.made > 1:
		a.policy.recovered.Add(1)
	case !a.counted:
		a.policy.budget.Deposit()
	}
}

// next is Next at a given time, for an attempt that ended badly.
func (a *Attempts) next(ctx context.Context, now int64, err error) (wait time.Duration, again bool) {
	p := a.policy
	a.err = err
	if refused(err) {
		a.unmade()
		if a.made > 0 {
			a.giveUp(gaveUpRefused, &Error{refusal: err})
		}
		return 0, false
	}
	a.ended()
	if a.made == 1 && !a.counted {
		p.budget.deposit(now)
	}
	outcome := p.outcome(ctx, err)
	switch {
	case outcome == sluice.Success:
		if a.made > 1 {
			p.recovered.Add(1)
		}
		return 0, false
	case ctx.Err() != nil:
		if a.made > 1 {
			if !isEnd(ctx, err) {
				a.last = err
			}
			a.giveUp(gaveUpEnded, &Error{ctxErr: ctx.Err(), cause: context.Cause(ctx)})
		}
		return 0, false
	case outcome != sluice.Failure && outcome != sluice.Throttled:
		return 0, false
	case a.plan.Attempts == 1:
		return 0, false
	case repeatedFurtherIn(err) || repeated(ctx):
		p.givenUp[gaveUpNested].Add(1)
		return 0, false
	case sluice.IsProbe(ctx):
		p.givenUp[gaveUpProbe].Add(1)
		return 0, false
	}
	a.last = err
	return a.decide(ctx, now)
}

// decide finds out whether there may be an attempt after one that was worth it. What
// takes something from others comes last.
func (a *Attempts) decide(ctx context.Context, now int64) (wait time.Duration, again bool) {
	p := a.policy
	if a.made >= a.plan.Attempts {
		a.giveUp(gaveUpAttempts, &Error{})
		return 0, false
	}
	wait, ok := a.plan.wait(a.made, a.last, p.random)
	if !ok {
		a.giveUp(gaveUpRetryAfter, &Error{})
		return 0, false
	}
	if deadline, ok := ctx.Deadline(); ok && clock.After(now, wait) >= clock.At(deadline) {
		a.giveUp(gaveUpDeadline, &Error{})
		return 0, false
	}
	if !p.budget.withdraw(now) {
		a.giveUp(gaveUpBudget, &Error{})
		return 0, false
	}
	a.charged = now
	return wait, true
}

// ended counts an attempt that was made.
func (a *Attempts) ended() {
	a.made++
	a.charged = 0
	if a.made > 1 && a.policy != nil {
		a.policy.retries.Add(1)
	}
}

// sleep waits, and returns the error of a ctx that ended before.
func sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return stage.EndOf(ctx)
		}
	}
	return ctx.Err()
}

// unmade gives back what was taken for an attempt that was not made.
func (a *Attempts) unmade() {
	if a.policy != nil {
		a.policy.budget.giveBack(a.charged)
		a.charged = 0
	}
}

// giveUp ends the call with e, of which it fills in the rest, if there is an error
// that was worth another attempt.
func (a *Attempts) giveUp(why givenUp, e *Error) {
	if a.last == nil {
		return
	}
	a.policy.givenUp[why].Add(1)
	e.name, e.why, e.attempts, e.last = a.policy.name, why, a.made, a.last
	a.err = e
}

// isEnd reports whether err says no more than that ctx has ended.
func isEnd(ctx context.Context, err error) bool {
	return errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))
}

// noCopy makes go vet complain about copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
