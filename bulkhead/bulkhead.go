package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/roster"
	"github.com/sluicego/sluice/internal/stage"
	"github.com/sluicego/sluice/internal/waitq"
)

// Bulkhead bounds how many calls to one resource are under way at once, so that a
// slow one cannot take all goroutines, connections and memory with it.
//
// It promises that no more places are taken than its limit says, except while a
// lowered limit waits for calls to end; that a call which ends, gives up or is cut
// off gives back exactly what it took; and that nobody passes those that wait.
//
// Most callers want Do, or sluice.Call for a result. Acquire and Permit are for code
// that begins and ends a call in different places, and TryAcquire for code that must
// not wait. By default nobody waits; WithQueue lets some, for a while.
//
// Acquiring and settling take no lock and allocate nothing while nobody waits, nor
// does refusing when nobody may wait or the queue is full (with AdaptiveLIFO and
// WithAging, whoever could take another's room in a full queue takes a mutex for a
// few instructions). Waiting takes that mutex, and blocks until there is a place,
// the wait is over or the ctx is done. A Bulkhead starts no goroutine and needs no
// closing. It is safe for concurrent use and must not be copied. A nil *Bulkhead
// lets everything pass; the zero Bulkhead is of no use, make one with New.
type Bulkhead struct {
	places *waitq.Semaphore
	name   string
	// refusals are the errors that it gives, by reason.
	refusals *[reasons]FullError
	tally

	mu     sync.Mutex               // puts updates in order
	config atomic.Pointer[Config]   // written under mu; what it points to never changes
	member *roster.Member[Bulkhead] // the place in a Group, nil if in none
	use                             // what the Group knows of its use
}

// New returns a bulkhead of that name, which must not be empty, for limit calls at
// once; 0 lets none pass. It returns every complaint about the options at once.
//
// For package variables there is sluice.Must.
func New(name string, limit int, opts ...Option) (*Bulkhead, error) {
	s := newSettings(limit)
	s.apply(opts)
	if name == "" {
		s.errs = append(s.errs, errors.New("bulkhead: the name is empty"))
	}
	if s.group != nil {
		s.errs = append(s.errs, errGroupOption)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	return newBulkhead(name, s.Config), nil
}

func newBulkhead(name string, c Config) *Bulkhead {
	b := &Bulkhead{
		places:   waitq.NewSemaphore(c.Limit, c.policy(), clock.Now),
		name:     name,
		refusals: newRefusals(name, "bulkhead"),
	}
	b.config.Store(&c)
	return b
}

// Name returns the name given to New.
func (b *Bulkhead) Name() string {
	if b == nil {
		return ""
	}
	return b.name
}

// Acquire asks for leave to make one call, and waits for it if it must and may. The
// permit must be settled by one of its methods when the call has ended. A refusal
// matches ErrFull. If ctx is done, before or while it waits, its own error is
// returned and nothing is taken.
func (b *Bulkhead) Acquire(ctx context.Context) (Permit, error) { return b.AcquireN(ctx, 1) }

// AcquireN is Acquire for a call that takes n places, at least 1. It is served in
// its turn: while it waits for n places, calls that come later and want fewer wait
// behind it.
func (b *Bulkhead) AcquireN(ctx context.Context, n int) (Permit, error) {
	if b == nil {
		return Permit{}, nil
	}
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	if n > 0 && b.places.TryAcquire(n) {
		return Permit{bulkhead: b, n: n}, nil
	}
	open := b.places.Open()
	if open == 0 {
		return Permit{}, b.turnAway(n, b.places.Wanted())
	}
	if _, err := b.wait(ctx, n, 0, open); err != nil {
		return Permit{}, err
	}
	return Permit{bulkhead: b, n: n}, nil
}

// TryAcquire is Acquire without waiting: it refuses if there is no place, or if
// others wait for one. If ctx is done, its own error is returned.
func (b *Bulkhead) TryAcquire(ctx context.Context) (Permit, error) { return b.TryAcquireN(ctx, 1) }

// TryAcquireN is TryAcquire for a call that takes n places, at least 1.
func (b *Bulkhead) TryAcquireN(ctx context.Context, n int) (Permit, error) {
	if b == nil {
		return Permit{}, nil
	}
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	if n > 0 && b.places.TryAcquire(n) {
		return Permit{bulkhead: b, n: n}, nil
	}
	return Permit{}, b.turnAway(n, false)
}

// Do runs call when it has a place, for which it waits if it must and may. It
// returns call's error as it is, or a refusal, which matches ErrFull, or ctx's own
// error if that ended first, without having run call. The place is given back also
// when call panics or ends its goroutine.
func (b *Bulkhead) Do(ctx context.Context, call func(context.Context) error) error {
	p, err := b.Acquire(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	return call(ctx)
}

// Admit and Settle let sluice.Call and sluice.Chain run the bulkhead in two steps.
func (b *Bulkhead) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	if b == nil {
		return stage.Ticket{At: now}, nil
	}
	if b.places.TryAcquire(1) {
		return stage.Ticket{Ref: b, At: now}, nil
	}
	open := b.places.Open()
	if open == 0 {
		return stage.Ticket{}, b.turnAway(1, b.places.Wanted())
	}
	at, err := b.wait(ctx, 1, now, open)
	if err != nil {
		return stage.Ticket{}, err
	}
	return stage.Ticket{Ref: b, At: at}, nil
}

// Settle is the second step after Admit.
func (b *Bulkhead) Settle(t stage.Ticket, _ context.Context, _ int64, _ error, _ bool) {
	if b, ok := t.Ref.(*Bulkhead); ok {
		b.places.Release(1)
	}
}

// wait is for a call that has found no place for n, while calls of the classes in
// open may find room to wait: it waits if its own is one of them, and returns when it
// got its places. now is 0 if nobody has read the time yet; it is read if the call is
// to wait.
func (b *Bulkhead) wait(ctx context.Context, n int, now int64, open uint32) (at int64, err error) {
	if n <= 0 || b.places.Refuses(n) != waitq.Full {
		return now, b.turnAway(n, true)
	}
	class := middleClass
	if b.config.Load().Aging > 0 {
		class = classOf(ctx)
	}
	if open&(1<<class) == 0 {
		return now, b.refuse(refusedQueueFull)
	}
	if now == 0 {
		now = clock.Now()
	}
	at, v := b.places.Wait(ctx, n, class, now)
	switch v {
	case waitq.Admitted:
		return at, nil
	case waitq.Left:
		b.gaveUp.Add(1)
		return at, stage.EndOf(ctx)
	}
	return at, b.refuse(reasonOf[v])
}

// turnAway refuses n places at once; queue says that the call would have waited, had
// there been room.
func (b *Bulkhead) turnAway(n int, queue bool) error {
	if n <= 0 {
		return fmt.Errorf("bulkhead %q: %d places are asked for, at least 1 is wanted", b.name, n)
	}
	switch v := b.places.Refuses(n); {
	case v == waitq.TooLarge:
		return b.refuse(refusedCapacity)
	case v == waitq.Closed:
		return b.refuse(refusedClosed)
	case queue:
		return b.refuse(refusedQueueFull)
	}
	return b.refuse(refusedFull)
}

// middleClass is the class of calls without a priority.
const middleClass = int(sluice.P1 - sluice.P0)

// classOf is the class of ctx's calls in the queue; priorities beyond P0 and P2
// count as these.
func classOf(ctx context.Context) int {
	return int(min(max(sluice.PriorityOf(ctx), sluice.P0), sluice.P2) - sluice.P0)
}
