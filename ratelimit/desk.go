package ratelimit

import (
	"context"
	"errors"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// A desk serves the callers of a limiter, for kinds that differ only in what they
// decide: that is up to the teller. A nil desk lets everything pass.
type desk struct {
	teller teller
	name   string
	tier   tier
	last   lastRefusal
	tally  *tally // nil if nothing is counted
}

// A teller decides for a desk. Of a decision of his that took something, mark is all
// that he needs to take it back.
type teller interface {
	taker
	refunder
	// receipt is what a ticket for d has, beside its mark: a pointer of the teller's.
	receipt(d Decision) any
	// wait waits for the tokens that were refused by d at now, and returns the decision
	// that took them, or the refusal. It counts either.
	wait(ctx context.Context, d Decision, now int64) (Decision, error)
	// waitsInDo reports whether Do waits.
	waitsInDo() bool
	// state is another one whenever the wait after a refusal may end at another time, or
	// not steady.
	state() (state int64, steady bool)
}

func (k *desk) init(name string, t teller, totals bool) {
	k.name, k.teller, k.tier.taker = name, t, t
	if totals {
		k.tally = new(tally)
	}
}

func (k *desk) title() string {
	if k == nil {
		return ""
	}
	return k.name
}

func (k *desk) take(n int64) Decision {
	if k == nil {
		return unlimited(n)
	}
	d := k.teller.take(0, n, clock.Now())
	k.teller.count(0, d)
	return d
}

func (k *desk) peek(n int64) Decision {
	if k == nil {
		return unlimited(n)
	}
	return k.teller.peek(0, n, clock.Now())
}

func (k *desk) wait(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil || k == nil {
		return err
	}
	now := clock.Now()
	d := k.teller.take(0, n, now)
	if d.OK() || n <= 0 || d.Never() {
		k.teller.count(0, d)
		return d.Err()
	}
	_, err := k.teller.wait(ctx, d, now)
	return err
}

func (k *desk) refund(d Decision) {
	if k != nil && d.tookSome() {
		k.teller.refund(0, d)
	}
}

func (k *desk) layer() Layer {
	if k == nil {
		return Layer{}
	}
	return Layer{of: &k.tier}
}

func (k *desk) do(ctx context.Context, call func(context.Context) error) error {
	if k == nil {
		return call(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := k.admit(ctx, clock.Now())
	if err != nil {
		return err
	}
	if err = call(ctx); err != nil {
		k.settle(t, err, true)
	}
	return err
}

func (k *desk) admit(ctx context.Context, now int64) (stage.Ticket, error) {
	if k == nil {
		return stage.Ticket{At: now}, nil
	}
	state, steady := k.teller.state() // before d, so that no refusal is kept for a later state than its own
	d := k.teller.take(0, 1, now)
	if !d.OK() && !d.Never() && k.teller.waitsInDo() {
		return k.admitLater(ctx, d, now)
	}
	k.teller.count(0, d)
	switch {
	case d.OK():
		return k.ticket(d, now), nil
	case !steady:
		return stage.Ticket{}, d.Err()
	}
	return stage.Ticket{}, k.last.of(d, state)
}

// admitLater waits for the token that was refused by d.
func (k *desk) admitLater(ctx context.Context, d Decision, now int64) (stage.Ticket, error) {
	d, err := k.teller.wait(ctx, d, now)
	if err != nil {
		return stage.Ticket{}, err
	}
	return k.ticket(d, clock.Now()), nil
}

// ticket is for giving back what d took at now.
func (k *desk) ticket(d Decision, now int64) stage.Ticket {
	return stage.Ticket{Ref: k.teller.receipt(d), At: now, Mark: d.mark}
}

func (k *desk) settle(t stage.Ticket, err error, completed bool) {
	if err == nil || !completed || !errors.Is(err, sluice.ErrRejected) {
		return
	}
	switch receipt := t.Ref.(type) {
	case *origin:
		k.refund(Decision{by: receipt, n: 1, mark: t.Mark})
	case *fare:
		k.refund(receipt.decision(t.Mark))
	}
}

// waited counts how a wait ended, and returns that: with d, or its refusal for that
// reason, or err.
func (k *desk) waited(d Decision, reason string, err error) (Decision, error) {
	switch {
	case err != nil:
		k.tally.countGone()
		return d, err
	case d.OK():
		k.teller.count(0, d)
		return d, nil
	}
	k.tally.refuse(reason)
	return d, d.refusal(reason, nil)
}
