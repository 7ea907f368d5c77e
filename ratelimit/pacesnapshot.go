package ratelimit

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/metrics"
)

// PacerSnapshot is what a Pacer looks like at one moment, as plain data. Its numbers are
// read one after another while calls go on, so they need not add up to the call.
type PacerSnapshot struct {
	Name string `json:"name"`
	Rate Rate   `json:"rate"`
	// Level is how many calls may go now, in parts too; less than 0 is how many slots
	// are promised. 0 if the rate is none.
	Level float64 `json:"level"`
	// Queue is how long who comes now has to wait, and Waiting how many do.
	Queue   time.Duration `json:"queue"`
	Waiting int64         `json:"waiting"`

	Totals  TotalsSnapshot  `json:"totals"`
	Refused RefusedSnapshot `json:"refused"`
}

// Snapshot returns what the pacer looks like now. It has no side effect, does not disturb
// calls and allocates nothing.
func (p *Pacer) Snapshot() PacerSnapshot {
	if p == nil {
		return PacerSnapshot{Rate: Unlimited()}
	}
	d := p.peek(0, 0, clock.Now())
	s := PacerSnapshot{Name: p.desk.name, Rate: d.Limit(), Queue: d.RetryAfter(), Waiting: p.waiting.Load()}
	if plan, ok := d.by.judge.(*pacePlan); ok && plan.most > 0 {
		s.Level = 1 - float64(d.lack)/float64(plan.unit)
	}
	s.Totals, s.Refused = p.desk.tally.totals()
	return s
}

// Collect yields the pacer's figures, for metrics.Set. Counters never go down.
func (p *Pacer) Collect(yield func(metrics.Sample) bool) {
	if p == nil {
		return
	}
	s := p.Snapshot()
	figures{s.Name, "pacer", s.Totals, s.Refused, s.Level, 1 + p.Config().Slack, s.Waiting}.collect(yield)
}

// View returns the Snapshot, for metrics.Set.
func (p *Pacer) View() any { return p.Snapshot() }
