package adaptive

import (
	"context"

	"github.com/sluicego/sluice/internal/stage"
)

// Meter is a Guard that lets a Timeout learn from calls and leaves it to them to
// keep its limit: for drivers that have a time limit of their own, which is set to
// Value before each call or now and then.
//
//	conn.SetReadDeadline(time.Now().Add(t.Value()))
//
// It refuses what Begin refuses. A call that ends with a timeout error after the
// limit counts as cut off by it, one that does so before as cut off by another.
//
// It makes no context, so unlike a Timeout it costs sluice.Call and sluice.Chain
// neither an allocation nor a closure. It is safe for concurrent use. Make one with
// Timeout.Meter and keep it; a nil Meter, and that of a nil Timeout, let everything
// pass.
type Meter struct{ t *Timeout }

// Meter returns the Meter of t.
func (t *Timeout) Meter() *Meter { return &Meter{t} }

// Do runs call and learns from how long it took.
func (m *Meter) Do(ctx context.Context, call func(context.Context) error) error {
	if m == nil {
		return call(ctx)
	}
	a, err := m.t.Begin(ctx)
	if err != nil {
		return err
	}
	defer a.Close()
	err = call(ctx)
	a.Done(err)
	return err
}

// Admit and Settle let sluice.Call and sluice.Chain run the Meter in two steps.
func (m *Meter) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	if m == nil || m.t == nil {
		return stage.Ticket{At: now}, nil
	}
	a, err := m.t.begin(ctx, now)
	if err != nil {
		return stage.Ticket{}, err
	}
	return stage.Ticket{Ref: a.term, At: now}, nil
}

// Settle is the second step after Admit.
func (m *Meter) Settle(t stage.Ticket, ctx context.Context, now int64, err error, completed bool) {
	w, ok := t.Ref.(*term)
	switch {
	case !ok:
	case completed:
		w.done(ctx, t.At, now, err)
	default:
		w.abandon(ctx)
	}
}
