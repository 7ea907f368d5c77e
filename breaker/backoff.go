package breaker

import (
	"time"
)

// levelAt is the level of backoff at which e, in Closed, would open at now if a
// rule tripped: one more if the recovery did not last, else what has not been
// forgotten: one less for each time that it lasted as long as the last open
// period. The time of the ramp proves nothing: not all calls were admitted.
func (e *episode) levelAt(p *plan, now int64, base time.Duration) int32 {
	if e.steady == 0 {
		return 0
	}
	healthy := now - e.began
	if e.ramped {
		healthy -= p.ramp
	}
	if healthy < int64(e.steady) {
		return e.level + 1
	}
	level := int64(min(e.level, p.topLevel(base)))
	return int32(max(0, level-healthy/int64(e.steady)))
}

// levelKept is the level of backoff at which e opens at now on request, which does
// not mean that a recovery has failed.
func (e *episode) levelKept(p *plan, now int64) int32 {
	if e.state != Closed {
		return e.level
	}
	return min(e.level, e.levelAt(p, now, p.config.OpenFor))
}
