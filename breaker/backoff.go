package breaker

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// levelAt is the level of backoff at which e, in Closed, would open at now: one
// more if the recovery did not last, one less for each time it lasted as long as
// the last open period, which is how long it takes to forget. The time of the ramp
// proves nothing: not all calls were admitted.
func (e *episode) levelAt(p *plan, now int64, base time.Duration) int {
	if e.steady == 0 {
		return 0
	}
	healthy := now - e.began
	if e.closed.ramped {
		healthy -= p.ramp
	}
	if healthy < int64(e.steady) {
		return e.level + 1
	}
	level := int64(min(e.level, p.topLevel(base)))
	return int(max(0, level-healthy/int64(e.steady)))
}

// newOpenFor begins a stay in Open after e for a period that was asked for.
func (b *Breaker) newOpenFor(e *episode, now int64, d time.Duration) *episode {
	next := b.newOpenUntil(now, Cause{Reason: TripRequested}, clock.After(now, d))
	next.open.fixed = true
	next.level, next.steady = e.level, d
	return next
}
