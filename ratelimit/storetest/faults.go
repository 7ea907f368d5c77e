package storetest

import (
	"context"
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/ratelimit"
)

// faults are the checks of a store that does not answer.
func faults() []Check {
	return []Check{
		{"EndedContext", "with a ctx that has ended, a call is an error and takes nothing", endedContext},
		{"GivesUpInTime", "a call returns when its ctx ends, with an error: a limiter waits some milliseconds, not for a client's default", givesUpInTime},
		{"TakesAtMostOnce", "a take whose answer was lost is not repeated by the store: it would be charged twice", takesAtMostOnce},
		{"DeadStoreSaysSo", "a store that cannot be reached says so, and grants nothing; it works again when it can", deadStoreSaysSo},
	}
}

func endedContext(t *trial) {
	ctx, end := context.WithCancel(t.ctx)
	end()
	t.silent(ctx, "a ctx that has ended")
	t.want("what is left of 10", t.left(hourly), int64(10))
}

// silent calls every method and wants errors.
func (t *trial) silent(ctx context.Context, with string) {
	if g, err := t.Store.Take(ctx, t.key, hourly, ratelimit.Ask{Min: 1, Max: 1}); err == nil || g.Tokens > 0 {
		t.errorf("with %s, Take grants %d and says %v", with, g.Tokens, err)
	}
	if err := t.Store.Refund(ctx, t.key, hourly, ratelimit.Receipt{}, 1); err == nil {
		t.errorf("with %s, Refund says nothing", with)
	}
	if err := t.Store.Debit(ctx, t.key, hourly, 1); err == nil {
		t.errorf("with %s, Debit says nothing", with)
	}
	if n, err := t.Store.Beat(ctx, t.key.Limiter, "node", time.Hour); err == nil {
		t.errorf("with %s, Beat counts %d and says nothing", with, n)
	}
}

// slowness is what answers take in the checks of slow stores, and budget what a call
// is given. What lies between them is for the machine to lose.
const (
	slowness = 5 * time.Second
	budget   = 20 * time.Millisecond
)

func givesUpInTime(t *trial) {
	t.need(t.Slow != nil, "Slow")
	t.left(hourly) // so that it need not be connected first
	t.Slow(slowness)
	began := clock.Now()
	ctx, end := context.WithTimeout(t.ctx, budget)
	t.silent(ctx, "a ctx that ends")
	end()
	t.Slow(0)
	if took := time.Duration(clock.Now() - began); took > slowness/2 {
		t.errorf("four calls with 20 ms together took %v", took)
	}
}

func takesAtMostOnce(t *trial) {
	t.need(t.Slow != nil, "Slow")
	t.left(hourly)
	t.Slow(10 * budget)
	for range 3 {
		ctx, end := context.WithTimeout(t.ctx, budget)
		_, _ = t.Store.Take(ctx, t.key, hourly, ratelimit.Ask{Min: 1, Max: 1})
		end()
	}
	t.Slow(0)
	t.pass(20 * budget) // for what is still on its way
	if left := t.left(hourly); left < 7 {
		t.errorf("%d of 10 are left when three takes of 1 were given up, want at least 7", left)
	}
}

func deadStoreSaysSo(t *trial) {
	t.need(t.Die != nil && t.Revive != nil, "Die and Revive")
	t.take(hourly, 6)
	t.Die()
	ctx, end := context.WithTimeout(t.ctx, time.Second)
	t.silent(ctx, "a dead store")
	end()
	t.Revive()
	w := t.watch()
	for {
		left, err := t.Store.Take(t.ctx, t.key, hourly, ratelimit.Ask{})
		if err == nil {
			if n := left.Remaining; n != 4 && n != 10 {
				t.errorf("%d are left when it is back, want the 4 of before, or 10 if they were lost", n)
			}
			return
		}
		if w.least() > 10*time.Second {
			t.fatalf("it is still dead %v after it was revived: %v", w.least(), err)
		}
		t.pass(10 * time.Millisecond)
	}
}
