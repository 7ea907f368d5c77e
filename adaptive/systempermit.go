package adaptive

import (
	"cmp"
	"context"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// SystemPermit is leave to make one call. Exactly one of Done, Settle and Cancel should
// follow when the call has ended; the first one counts, later ones do nothing. Defer
// Close to cover a panic and a forgotten path.
//
//	p, err := s.Allow(ctx)
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	resp, err := call(ctx)
//	p.Done(err)
//
// A SystemPermit is a local value of one goroutine: it must not be copied. It keeps the
// ctx given to Allow. The methods of the zero SystemPermit do nothing.
type SystemPermit struct {
	_      noCopy
	system *System
	start  int64 // 0: nobody wants to know
	ctx    context.Context
}

// Done settles the call by its error, of which sluice.Classify says what it means. Most
// callers want this.
func (p *SystemPermit) Done(err error) {
	if s := p.take(); s != nil {
		s.done(p.ctx, p.start, p.now(), err)
	}
}

// Settle settles the call by an outcome that the caller has found. Zero counts as
// Success, as a nil error does, and a number that is no Outcome as Ignored.
func (p *SystemPermit) Settle(o sluice.Outcome) {
	if s := p.take(); s != nil {
		s.settle(p.start, p.now(), cmp.Or(o, sluice.Success))
	}
}

// Cancel gives the permit back: the call was not made.
func (p *SystemPermit) Cancel() {
	if s := p.take(); s != nil {
		s.settle(0, 0, sluice.Ignored)
	}
}

// Close is for defer. A permit that is not settled by then counts as a failure: its
// call panicked, its goroutine ended, or a path was forgotten. If the ctx is done it is
// ignored instead. After another settling Close does nothing.
func (p *SystemPermit) Close() {
	if s := p.take(); s != nil {
		s.settle(p.start, p.now(), abandoned(p.ctx))
	}
}

// abandoned is the outcome of a call that nobody has settled.
func abandoned(ctx context.Context) sluice.Outcome {
	if ctx.Err() != nil {
		return sluice.Ignored
	}
	return sluice.Failure
}

// now reads the clock if anybody wants to know how long the call took.
func (p *SystemPermit) now() int64 {
	if p.start == 0 {
		return 0
	}
	return clock.Now()
}

// take returns the System to whoever settles first, nil to all others.
func (p *SystemPermit) take() *System {
	s := p.system
	p.system = nil
	return s
}
