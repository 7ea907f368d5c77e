package adaptive

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// timeoutTally counts what the estimator does not. Raised by whoever settles the call, and
// never lowered.
type timeoutTally struct {
	timedOut, cutShort         atomic.Int64
	failed, throttled, ignored atomic.Int64
	probes                     atomic.Int64 // of the Timeout's own
	refused                    atomic.Int64 // for want of time
	finishedBefore             atomic.Int64 // as estimators had observed that were replaced
}

// done settles a call by its error. Methods of an error and a classifier are foreign code:
// if one of them panics, the call counts as failed, and the panic goes on.
func (w *term) done(ctx context.Context, start, now int64, err error) {
	if err == nil {
		w.observe(start, now, Finished)
		return
	}
	looked := false
	defer func() {
		if !looked {
			w.t.failed.Add(1)
		}
	}()
	o := w.outcome(ctx, err)
	says := errorTraits{refusal: errors.Is(err, sluice.ErrRejected), timeout: isTimeout(err)}
	looked = true
	w.settle(ctx, start, now, o, says)
}

// errorTraits are what else an error says. Those of no error are zero.
type errorTraits struct {
	refusal bool // a local one
	timeout bool // that of some time limit
}

// settle settles a call by its outcome, and by what its error says.
func (w *term) settle(ctx context.Context, start, now int64, o sluice.Outcome, says errorTraits) {
	switch {
	case o == sluice.Success:
		w.observe(start, now, Finished)
	case o == sluice.Throttled:
		w.t.throttled.Add(1)
	case o != sluice.Failure && (ctx.Err() == nil || says.refusal):
		w.t.ignored.Add(1)
	case w.ended(ctx, start, now):
		w.t.timedOut.Add(1)
		w.observe(start, now, TimedOut)
	case ctx.Err() != nil || says.timeout:
		w.t.cutShort.Add(1)
		w.observe(start, now, CutShort)
	default:
		w.t.failed.Add(1)
	}
}

// abandon settles a call that did not complete.
func (w *term) abandon(ctx context.Context) {
	if ctx.Err() != nil {
		w.t.ignored.Add(1)
	} else {
		w.t.failed.Add(1)
	}
}

// outcome is what a non-nil err means. The classifier is not shown local refusals.
func (w *term) outcome(ctx context.Context, err error) sluice.Outcome {
	if classify := w.t.hooks.classify; classify != nil && !errors.Is(err, sluice.ErrRejected) {
		if o := classify(ctx, err); o != 0 {
			return o
		}
	}
	return sluice.Classify(ctx, err)
}

// ended reports whether the limit has ended the call, and not the caller's own
// deadline before it. ctx is the one given to Begin.
func (w *term) ended(ctx context.Context, start, now int64) bool {
	if now-start < int64(w.limit) {
		return false
	}
	deadline, ok := ctx.Deadline()
	return !ok || clock.At(deadline) > clock.After(start, w.limit)
}

// isTimeout reports whether err is that of some time limit: context's, a
// connection's, or one further in.
func isTimeout(err error) bool {
	timeout, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return ok && timeout.Timeout()
}
