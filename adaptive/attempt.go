package adaptive

import (
	"cmp"
	"context"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Attempt is one call under a limit. Exactly one of Done, Settle and Cancel should
// follow when the call has ended; the first one counts, later ones do nothing. Defer
// Close to cover a panic and a forgotten path.
//
//	a, err := t.Begin(ctx)
//	if err != nil {
//		return err
//	}
//	defer a.Close()
//	limited, cancel := a.Context(ctx)
//	defer cancel()
//	resp, err := call(limited)
//	a.Done(err)
//
// Whoever does not use Context keeps Limit by other means.
//
// An Attempt is a local value of one goroutine: it must not be copied. It keeps the
// ctx given to Begin. The methods of the zero Attempt do nothing, and its Context is
// the one it is given.
type Attempt struct {
	_     noCopy
	term  *term
	start int64
	ctx   context.Context
}

// Limit returns how long the call may take, 0 for the zero Attempt: what Value was
// when it began, or Max if it is a probe of the Timeout.
func (a *Attempt) Limit() time.Duration {
	if a.term == nil {
		return 0
	}
	return a.term.limit
}

// Context returns ctx with the limit as its deadline, counted from now, and what
// releases it, which must be called when the call has ended. If the limit ends it,
// its error is context.DeadlineExceeded as ever, and context.Cause of it is a
// *TimeoutError, which matches sluice.ErrTimeout; a deadline of the caller's has
// another cause. If ctx ends sooner anyway, it is returned as it is and nothing is
// allocated. The probe of a half-open breaker (see sluice.IsProbe) may take as long
// as Max, because a breaker can never close on a dependency that answers late if
// its probes are cut off.
func (a *Attempt) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.term == nil {
		return ctx, nothing
	}
	if stage.IsProbe(ctx) {
		a.term = a.term.t.plan.Load().longest
	}
	if deadline, ok := ctx.Deadline(); ok && clock.At(deadline) <= clock.After(a.start, a.term.limit) {
		return ctx, nothing
	}
	return context.WithTimeoutCause(ctx, a.term.limit, &a.term.over)
}

// Done settles the call by its error: nil is an answer, and what an error means is
// said by the classifier, if any, and sluice.Classify. Most callers want this.
func (a *Attempt) Done(err error) { a.done(clock.Now(), err) }

// Settle settles the call by an outcome that the caller has found. Zero counts as
// Success, as a nil error does, and a number that is no Outcome as Ignored. A
// Failure that took as long as the limit counts as cut off by it.
func (a *Attempt) Settle(o sluice.Outcome) { a.settle(clock.Now(), o) }

// Cancel says that the call was not made. Nothing is learnt.
func (a *Attempt) Cancel() {
	if w := a.take(); w != nil {
		w.t.ignored.Add(1)
	}
}

// Close is for defer. Of a call that is not settled by then nothing is learnt: it
// panicked, its goroutine ended, or a path was forgotten. It counts as failed, or as
// ignored if its ctx is done. After another settling Close does nothing.
func (a *Attempt) Close() {
	if w := a.take(); w != nil {
		w.abandon(a.ctx)
	}
}

func (a *Attempt) done(now int64, err error) {
	if w := a.take(); w != nil {
		w.done(a.ctx, a.start, now, err)
	}
}

func (a *Attempt) settle(now int64, o sluice.Outcome) {
	if w := a.take(); w != nil {
		w.settle(a.ctx, a.start, now, cmp.Or(o, sluice.Success), errorTraits{})
	}
}

// take returns the term to whoever settles first, nil to all others.
func (a *Attempt) take() *term {
	w := a.term
	a.term = nil
	return w
}

// nothing is the release of a context that was not made.
func nothing() {}

// noCopy makes go vet complain about copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
