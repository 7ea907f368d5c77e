package ratelimit

import (
	"context"
	"errors"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Wait takes a token, and waits for it if need be: see WaitN.
func (s *Shared) Wait(ctx context.Context) error { return s.WaitN(ctx, 1) }

// WaitN takes n tokens and returns nil when they are there. It waits only if it will
// get them: if that is not before ctx's deadline, or within MaxWait, or if MaxWaiters
// wait already, it returns at once with a *LimitError and takes nothing. One that says
// so because of the deadline matches context.DeadlineExceeded.
//
// Who waits has his tokens reserved by the store, so those of all nodes go in the
// order in which they came, whatever their n. If ctx ends while he waits his tokens go
// back, and ctx's own error is returned; so it is if ctx has ended before.
func (s *Shared) WaitN(ctx context.Context, n int64) error {
	if err := ctx.Err(); err != nil || s == nil {
		return err
	}
	d, ok := s.spend(n)
	if !ok {
		now := clock.Now()
		d = s.decide(ctx, n, now)
		if err := over(ctx); !d.OK() && err != nil {
			return err
		}
		if !d.OK() && n > 0 && !d.Never() {
			_, err := s.wait(ctx, n, clock.Now())
			return err
		}
	}
	s.count(0, d)
	return d.Err()
}

// Do runs call if there is a token for it, and returns its error, or the refusal,
// which matches ErrLimited. It waits for a token only if MaxWait says so. When call's
// error says that a guard further in refused, the token is given back.
func (s *Shared) Do(ctx context.Context, call func(context.Context) error) error {
	if s == nil {
		return call(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := s.Admit(ctx, clock.Now())
	if err != nil {
		return err
	}
	if err = call(ctx); err != nil {
		s.Settle(t, ctx, 0, err, true)
	}
	return err
}

// Admit and Settle let sluice.Call and sluice.Chain run the limiter in two steps.
func (s *Shared) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	if s == nil {
		return stage.Ticket{At: now}, nil
	}
	d, ok := s.spend(1)
	if !ok {
		if d = s.decide(ctx, 1, now); !d.OK() {
			return s.admitLater(ctx, d, now)
		}
	}
	s.count(0, d)
	return ticket(d, now), nil
}

// Settle is the second step after Admit.
func (s *Shared) Settle(t stage.Ticket, _ context.Context, _ int64, err error, completed bool) {
	if err == nil || !completed || !errors.Is(err, sluice.ErrRejected) {
		return
	}
	if by, ok := t.Ref.(*origin); ok {
		s.Refund(Decision{by: by, n: 1, mark: t.Mark})
	}
}

// admitLater waits after d, a refusal, if it may.
func (s *Shared) admitLater(ctx context.Context, d Decision, now int64) (stage.Ticket, error) {
	if err := over(ctx); err != nil {
		return stage.Ticket{}, err
	}
	if s.current().config.MaxWait <= 0 || d.Never() {
		s.count(0, d)
		return stage.Ticket{}, s.last.of(d, clock.After(now, d.RetryAfter()))
	}
	d, err := s.wait(ctx, 1, now)
	if err != nil {
		return stage.Ticket{}, err
	}
	return ticket(d, clock.Now()), nil
}

// wait waits for n tokens, which are not there, and returns the decision that took
// them.
func (s *Shared) wait(ctx context.Context, n, now int64) (Decision, error) {
	t := s.current()
	if s.waiting.Add(1) > int64(t.config.MaxWaiters) {
		s.waiting.Add(-1)
		return s.refuse(t, n, now, ReasonMaxWaiters)
	}
	defer s.waiting.Add(-1)
	st := s.node.cur.Load()
	if !t.asks || !s.node.mayTry(st, now) {
		return s.waitLocally(ctx, t, st, n, now)
	}
	longest, why := t.local.longest(), ReasonMaxWait
	if deadline, ok := ctx.Deadline(); ok {
		if d := time.Duration(clock.At(deadline) - 1 - now); d < longest { // a token at the deadline is of no use
			longest, why = max(0, d), ReasonDeadline
		}
	}
	g, err := s.order(ctx, t, Ask{Min: n, Max: n, MaxWait: longest}, n, 0)
	if gone := over(ctx); err != nil && gone != nil {
		return Decision{}, gone
	}
	now = clock.Now()
	if err != nil {
		return s.waitLocally(ctx, t, s.node.cur.Load(), n, now)
	}
	if g.Tokens < n {
		s.node.stats.denials.Add(1)
		s.deny(t, n, g, now, 0)
		return s.refuse(t, n, now, why)
	}
	d := s.sold(t, n, n, g)
	if err := sleep(ctx, g.Wait); err != nil {
		s.takeBack(d)
		s.node.tally.countGone()
		return d, err
	}
	s.node.tally.count(d)
	return d, nil
}

// refuse counts and returns the refusal of n tokens at now, for a reason of its own.
func (s *Shared) refuse(t *terms, n, now int64, reason string) (Decision, error) {
	s.node.tally.refuse(reason)
	d, ok := s.denial(t, n, now)
	if !ok {
		d = Decision{&t.bought, n, max(1, int64(t.lasts(1))), s.left()}
	}
	return d, d.refusal(reason, nil)
}

// waitLocally waits for n tokens without the store.
func (s *Shared) waitLocally(ctx context.Context, t *terms, st *stay, n, now int64) (Decision, error) {
	if t.asks {
		if p := t.config.OnFailure; p == FailOpen || p == FailClosed || n > t.local.burst() {
			d := s.locally(t, st, n, now)
			s.count(0, d)
			if d.OK() {
				return d, nil
			}
			return d, d.refusal(d.reason(), st.cause)
		}
		s.prepare(t, st, now)
	}
	d, err := s.mirror.wait(ctx, n, now)
	var refused *LimitError
	switch {
	case errors.As(err, &refused):
		s.node.tally.refuse(refused.reason)
	case err != nil:
		s.node.tally.countGone()
	default:
		s.node.tally.count(d)
		if t.asks {
			s.node.stats.fallback.Add(1)
			s.owe(n)
		}
	}
	return d, err
}

// sleep waits for d, or returns ctx's error.
func sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return stage.EndOf(ctx)
		}
	}
	return ctx.Err()
}
