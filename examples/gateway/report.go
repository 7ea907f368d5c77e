package main

import (
	"context"
	"math"
	"time"

	"github.com/sluicego/sluice/breaker"
)

// A report is what became of one service's requests since the report before.
type report struct {
	state    breaker.State
	requests int64 // that have ended: those made, and those refused
	refused  int64
	failures float64 // share of the calls that were answered, or should have been
	slow     float64
}

// newReport tells what has changed from one snapshot of a breaker to the next.
func newReport(before, now breaker.Snapshot) report {
	was, is := before.Totals, now.Totals
	judged := (is.Success - was.Success) + (is.Failure - was.Failure) + (is.Throttled - was.Throttled)
	refused := refusals(now) - refusals(before)
	return report{
		state:    now.State,
		requests: judged + (is.Ignored - was.Ignored) + (is.Stale - was.Stale) + refused,
		refused:  refused,
		failures: share(is.Failure-was.Failure, judged),
		slow:     share(is.Slow-was.Slow, judged),
	}
}

func refusals(s breaker.Snapshot) int64 {
	return s.Refused.Open + s.Refused.HalfOpen + s.Refused.Recovering + s.Refused.Forced
}

// share is part of whole, to four places; the two are read one after the other
// while calls go on, so part may be a little too large.
func share(part, whole int64) float64 {
	if whole <= 0 {
		return 0
	}
	return math.Round(1e4*min(float64(part)/float64(whole), 1)) / 1e4
}

// report logs a report of the service each interval, until ctx is done; 0 is never.
func (l *lane) report(ctx context.Context, interval time.Duration) {
	if interval == 0 {
		return
	}
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	var before breaker.Snapshot // of a new breaker, all is zero
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		now := l.breaker.Snapshot()
		r := newReport(before, now)
		before = now
		l.log.Info("report", "state", r.state.String(), "requests", r.requests, "refused", r.refused,
			"failure_rate", r.failures, "slow_rate", r.slow, "timeout", l.config.base)
	}
}
