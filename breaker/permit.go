package breaker

import (
	"cmp"
	"context"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// Permit is leave to make one call. Exactly one of Done, Settle and Cancel should
// follow when the call has ended; the first one counts, later ones do nothing.
// Defer Close to cover a panic and a forgotten path.
//
//	p, err := b.Allow(ctx)
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	resp, err := call(ctx)
//	p.Done(err)
//
// A Permit is a local value of one goroutine: it must not be copied. It keeps the
// ctx given to Allow. The methods of the zero Permit do nothing.
type Permit struct {
	_     noCopy
	seat  *seat
	start int64 // when it was given; 0 if no rule wants to know
	ctx   context.Context
}

// Done settles the call by its error: nil is a success, and what an error means
// is said by the classifier, if any, and sluice.Classify. Most callers want this.
func (p *Permit) Done(err error) { p.done(clock.Now(), err) }

// Settle settles the call by an outcome that the caller has found. Zero counts as
// Success, as a nil error does, and a number that is no Outcome as Ignored.
func (p *Permit) Settle(o sluice.Outcome) { p.settle(clock.Now(), o) }

// Cancel gives the permit back unspent: the call was not made. It leaves no trace,
// and the place of a probe is free at once.
func (p *Permit) Cancel() {
	if p.seat != nil {
		p.cancel(clock.Now())
	}
}

// Close is for defer. A permit that is not settled by then counts as a failure:
// its call panicked, its goroutine ended, or a path was forgotten. If the ctx is
// done it is ignored instead. After another settling Close does nothing.
func (p *Permit) Close() {
	if p.seat != nil {
		p.close(clock.Now())
	}
}

func (p *Permit) done(now int64, err error) {
	if s := p.take(); s != nil {
		s.done(p.ctx, p.start, now, err)
	}
}

func (p *Permit) settle(now int64, o sluice.Outcome) {
	if s := p.take(); s != nil {
		v := verdict{outcome: cmp.Or(known(o), sluice.Success)}
		if v.outcome == sluice.Ignored && p.ctx.Err() != nil {
			v.manner = abandoned
		}
		s.settle(p.ctx, p.start, now, v)
	}
}

func (p *Permit) cancel(now int64) {
	if s := p.take(); s != nil {
		s.settle(p.ctx, p.start, now, verdict{outcome: sluice.Ignored, manner: unmade})
	}
}

func (p *Permit) close(now int64) {
	if s := p.take(); s != nil {
		s.abandon(p.ctx, p.start, now)
	}
}

// take returns the seat to whoever settles first, nil to all others.
func (p *Permit) take() *seat {
	s := p.seat
	p.seat = nil
	return s
}

// noCopy makes go vet complain about copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
