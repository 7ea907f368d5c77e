package breaker

import (
	"context"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// levelAt is the level of backoff at which e, in Closed, would open at now: one
// more if the recovery did not last, one less for each time it lasted as long as
// the last open period, which is how long it takes to forget.
func (e *episode) levelAt(p *plan, now int64, base time.Duration) int {
	if e.steady == 0 {
		return 0
	}
	healthy := now - e.began
	if healthy < int64(e.steady) || e.closed.recovering.Load() && healthy < p.ramp {
		return e.level + 1
	}
	level := int64(min(e.level, p.topLevel(base)))
	return int(max(0, level-healthy/int64(e.steady)))
}

// tripFor opens the breaker for exactly d, without backoff and jitter, unless e
// has ended. The level of backoff stays.
func (b *Breaker) tripFor(ctx context.Context, e *episode, now int64, d time.Duration) {
	b.change(ctx, e, b.newOpenFor(e, now, d))
}

// newOpenFor begins a stay in Open after e for a period that was asked for.
func (b *Breaker) newOpenFor(e *episode, now int64, d time.Duration) *episode {
	next := b.newOpenUntil(now, Cause{Reason: TripRequested}, clock.After(now, d))
	next.open.fixed = true
	next.level, next.steady = e.level, d
	return next
}
