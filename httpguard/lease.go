package httpguard

import (
	"context"
	"runtime"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// A lease is what a call holds while its breaker waits for the end of its response
// body. Only the body holds it. So when a caller drops a response without closing
// it, the garbage collector finds the lease, and the call is settled all the same.
//
// To be told by the garbage collector costs several times what the rest of the call
// does, so leases are used again, each with its one cleanup.
type lease struct{ *term }

// term is what a lease is for. It stands apart, because a cleanup must not hold what
// it waits for: neither does anything in it lead to the lease.
type term struct {
	// runs is set when the rest has been written. Whoever clears it settles the call.
	runs    atomic.Bool
	t       *Transport
	breaker *breaker.Breaker
	ticket  stage.Ticket
	ctx     context.Context
	release context.CancelCauseFunc // nil without one
}

// lease takes a lease for a call.
func (t *Transport) lease(b *breaker.Breaker, ticket stage.Ticket, ctx context.Context, release context.CancelCauseFunc) *lease {
	l, ok := t.leases.Get().(*lease)
	if !ok {
		l = &lease{new(term)}
		runtime.AddCleanup(l, (*term).lost, l.term)
	}
	l.t, l.breaker, l.ticket, l.ctx, l.release = t, b, ticket, ctx, release
	l.runs.Store(true)
	return l
}

// end gives the lease back. The body that held it is over, and must not touch it
// again.
func (l *lease) end() (*breaker.Breaker, stage.Ticket) {
	l.runs.Store(false)
	t, b, ticket := l.t, l.breaker, l.ticket
	l.t, l.breaker, l.ticket, l.ctx, l.release = nil, nil, stage.Ticket{}, nil, nil
	t.leases.Put(l)
	return b, ticket
}

// lost is called when nobody holds the lease any more. How long it took to find that
// out says nothing, so the breaker learns no more than that the call is over. No
// foreign code may run here: the process would not survive its panic.
func (m *term) lost() {
	if !m.runs.Swap(false) {
		return // it was not in use
	}
	m.t.leakedBodies.Add(1)
	if m.release != nil {
		m.release(nil)
	}
	m.breaker.Settle(m.ticket, m.ctx, clock.Now(), lostError{}, true)
}

// lostError tells a breaker to count nothing, and not to ask its classifier, as for a
// call that was refused further in.
type lostError struct{}

func (lostError) Error() string {
	return "httpguard: the response body was neither read to its end nor closed"
}

func (lostError) Is(target error) bool { return target == sluice.ErrRejected }
