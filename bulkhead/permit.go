package bulkhead

import "github.com/sluicego/sluice"

// Permit is leave to make one call: the places that it takes. One of its methods
// gives them back when the call has ended; the first one counts, later ones do
// nothing. A bulkhead does not care how the call ended, so all of them do the same;
// there are four so that every guard is settled by the same words.
//
//	p, err := b.Acquire(ctx)
//	if err != nil {
//		return err
//	}
//	defer p.Close()
//	return call(ctx)
//
// A Permit is a local value of one goroutine: it must not be copied. The methods of
// the zero Permit do nothing.
type Permit struct {
	_        noCopy
	bulkhead *Bulkhead
	n        int
}

// Done gives the places back, whatever err is.
func (p *Permit) Done(err error) { p.Close() }

// Settle gives the places back, whatever o is.
func (p *Permit) Settle(o sluice.Outcome) { p.Close() }

// Cancel gives the places back: the call was not made.
func (p *Permit) Cancel() { p.Close() }

// Close gives the places back, and is for defer. Most callers want this.
func (p *Permit) Close() {
	if b := p.bulkhead; b != nil {
		p.bulkhead = nil
		b.places.Release(p.n)
	}
}

// noCopy makes go vet complain about copies.
type noCopy struct{}

func (*noCopy) Lock()   {}
func (*noCopy) Unlock() {}
