package ratelimit

import (
	"context"
	"errors"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Do runs call if there is a token for it, and returns its error, or the refusal,
// which matches ErrLimited. It waits for a token only if MaxWait says so. When call's
// error says that a guard further in refused, the token is given back.
//
// A refusal is built once for all calls that are refused between one token and the
// next.
func (l *Limiter) Do(ctx context.Context, call func(context.Context) error) error {
	if l == nil {
		return call(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := l.Admit(ctx, clock.Now())
	if err != nil {
		return err
	}
	if err = call(ctx); err != nil {
		l.Settle(t, ctx, 0, err, true)
	}
	return err
}

// Admit and Settle let sluice.Call and sluice.Chain run the limiter in two steps.
func (l *Limiter) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	if l == nil {
		return stage.Ticket{At: now}, nil
	}
	d := l.take(0, 1, now)
	if !d.OK() {
		if wait := l.cur.Load().config.MaxWait; wait > 0 && !d.Never() {
			return l.admitLater(ctx, now)
		}
		l.tally.count(d)
		return stage.Ticket{}, l.last.of(d, d.mark+d.lack)
	}
	l.tally.count(d)
	return ticket(d, now), nil
}

// Settle is the second step after Admit.
func (l *Limiter) Settle(t stage.Ticket, _ context.Context, _ int64, err error, completed bool) {
	if err == nil || !completed || !errors.Is(err, sluice.ErrRejected) {
		return
	}
	if by, ok := t.Ref.(*origin); ok {
		l.Refund(Decision{by: by, n: 1, mark: t.Mark})
	}
}

// admitLater waits for a token, which is not there at now.
func (l *Limiter) admitLater(ctx context.Context, now int64) (stage.Ticket, error) {
	d, err := l.wait(ctx, 1, now)
	if err != nil {
		return stage.Ticket{}, err
	}
	return ticket(d, clock.Now()), nil
}

// ticket is for giving back what d took at now.
func ticket(d Decision, now int64) stage.Ticket {
	return stage.Ticket{Ref: d.by, At: now, Mark: d.mark}
}
