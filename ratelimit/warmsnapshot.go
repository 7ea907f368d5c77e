package ratelimit

import (
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/metrics"
)

// WarmUpSnapshot is what a WarmUp looks like at one moment, as plain data. Its numbers
// are read one after another while calls go on, so they need not add up to the call.
type WarmUpSnapshot struct {
	Name string `json:"name"`
	Rate Rate   `json:"rate"`
	// Heat is how warm it is, from 0 to 1, and Share how much of the rate it gives.
	Heat  float64 `json:"heat"`
	Share float64 `json:"share"`
	// Burst is how many tokens there can be, Level how many there are, with their
	// fractions: below 0 while what calls cost more in the cold is not paid. Both are 0
	// if the rate is none.
	Burst int64   `json:"burst"`
	Level float64 `json:"level"`
	// Waiting callers stand in line.
	Waiting int64 `json:"waiting"`

	Totals  TotalsSnapshot  `json:"totals"`
	Refused RefusedSnapshot `json:"refused"`
}

// Snapshot returns what the limiter looks like now. It has no side effect, does not
// disturb calls and allocates nothing.
func (u *WarmUp) Snapshot() WarmUpSnapshot {
	if u == nil {
		return WarmUpSnapshot{Rate: Unlimited(), Heat: 1, Share: 1}
	}
	now := clock.Now()
	d := u.peek(0, 0, now)
	s := WarmUpSnapshot{Name: u.desk.name, Rate: d.Limit(), Heat: 1, Share: 1, Waiting: u.line.waiting.Load()}
	if p, ok := d.by.judge.(*warmPlan); ok && p.most > 0 {
		s.Burst, s.Level = p.most, float64(p.left(d))/float64(p.own.unit)
		s.Heat, s.Share = p.heat.share(now), float64(p.own.unit)/float64(p.fare(now).units)
	}
	s.Totals, s.Refused = u.desk.tally.totals()
	return s
}

var descShare = metrics.Desc{Name: "ratelimit_warm_up_ratio", Help: "Share of its rate that a limiter gives, below 1 while it is cold.", Unit: "1", Kind: metrics.Gauge, Labels: []string{"resource"}}

// Collect yields the limiter's figures, for metrics.Set. Counters never go down.
func (u *WarmUp) Collect(yield func(metrics.Sample) bool) {
	if u == nil {
		return
	}
	s := u.Snapshot()
	f := figures{s.Name, "warm_up", s.Totals, s.Refused, s.Level, s.Burst, s.Waiting}
	if f.collect(yield) {
		yield(metrics.Sample{Desc: &descShare, Labels: []string{s.Name}, Value: s.Share})
	}
}

// View returns the Snapshot, for metrics.Set.
func (u *WarmUp) View() any { return u.Snapshot() }
