package adaptive

import (
	"cmp"
	"context"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// LimiterPermit is leave to make one call. Exactly one of Done, Settle and Cancel should
// follow when the call has ended; the first one counts, later ones do nothing. Defer
// Close to cover a panic and a forgotten path.
//
//	p, err := l.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	resp, err := call(ctx)
//	p.Done(err)
//
// A LimiterPermit is a local value of one goroutine: it must not be copied. It keeps the
// ctx given to Acquire. The methods of the zero LimiterPermit do nothing.
type LimiterPermit struct {
	_       noCopy
	limiter *Limiter
	start   int64
	ctx     context.Context
}

// Done settles the call by its error, of which sluice.Classify or the classifier says
// what it means. Most callers want this.
func (p *LimiterPermit) Done(err error) {
	if l := p.take(); l != nil {
		l.done(p.ctx, p.start, clock.Now(), err)
	}
}

// Settle settles the call by an outcome that the caller has found: Success is an answer
// that took its time, Throttled lowers the limit, and so does Failure if the ctx is done;
// nothing follows from another. Zero counts as Success, as a nil error does, and a number
// that is no Outcome as Ignored.
func (p *LimiterPermit) Settle(o sluice.Outcome) {
	if l := p.take(); l != nil {
		l.settle(p.ctx, p.start, clock.Now(), cmp.Or(o, sluice.Success), false)
	}
}

// Cancel gives the permit back: the call was not made.
func (p *LimiterPermit) Cancel() {
	if l := p.take(); l != nil {
		l.settle(p.ctx, 0, 0, sluice.Ignored, false)
	}
}

// Close is for defer. A permit that is not settled by then counts as a failure: its call
// panicked, its goroutine ended, or a path was forgotten. If the ctx is done it is
// ignored instead. After another settling Close does nothing.
func (p *LimiterPermit) Close() {
	if l := p.take(); l != nil {
		l.settle(p.ctx, p.start, clock.Now(), abandoned(p.ctx), false)
	}
}

// take returns the Limiter to whoever settles first, nil to all others.
func (p *LimiterPermit) take() *Limiter {
	l := p.limiter
	p.limiter = nil
	return l
}
