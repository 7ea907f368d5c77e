package ratelimit

import (
	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/metrics"
)

// PrioritiesSnapshot is what a Priorities looks like at one moment, as plain data. Its
// numbers are read one after another while calls go on, so they need not add up to the
// call.
type PrioritiesSnapshot struct {
	Name string `json:"name"`
	Rate Rate   `json:"rate"`
	// Classes are P0, P1 and P2, in this order.
	Classes [classes]PriorityClassSnapshot `json:"classes"`
	// Shared is what is left of the rate when each class has what it is assured.
	Shared BucketSnapshot `json:"shared"`
	// Plenty counts the calls of Do that passed before their class was looked at,
	// because there was plenty for all. They are in no class's numbers.
	Plenty int64 `json:"plenty"`
	// Refunded is how many admitted calls were given back.
	Refunded int64 `json:"refunded"`
}

// PriorityClassSnapshot is one class's part of a PrioritiesSnapshot.
type PriorityClassSnapshot struct {
	Own BucketSnapshot `json:"own"`
	// Admitted calls, their Tokens, and Refused calls since NewPriorities. The numbers
	// never go down.
	Admitted int64           `json:"admitted"`
	Tokens   int64           `json:"tokens"`
	Refused  RefusedSnapshot `json:"refused"`
}

// BucketSnapshot is how many tokens there are in a bucket, and can be; both 0 if there
// is no such bucket.
type BucketSnapshot struct {
	Level    float64 `json:"level"`
	Capacity int64   `json:"capacity"`
}

// Snapshot returns what the limiter looks like now. It has no side effect, does not
// disturb calls and allocates nothing.
func (q *Priorities) Snapshot() PrioritiesSnapshot {
	if q == nil {
		return PrioritiesSnapshot{Rate: Unlimited()}
	}
	return q.snapshot(clock.Now())
}

func (q *Priorities) snapshot(now int64) PrioritiesSnapshot {
	p := q.cur.Load()
	s := PrioritiesSnapshot{Name: q.name, Rate: p.config.Rate}
	var levels [classes + 1]BucketSnapshot
	for i := range p.buckets {
		b := &p.buckets[i]
		if !b.inUse() {
			continue
		}
		level, ok := b.level(now)
		if !ok {
			q.renew(p, now)
			return q.snapshot(now)
		}
		levels[i] = BucketSnapshot{float64(level) / float64(b.unit), b.burst / b.unit}
	}
	s.Shared = levels[classes]
	for i := range s.Classes {
		totals, refused := q.tallies[i].totals()
		s.Classes[i] = PriorityClassSnapshot{levels[i], totals.Admitted, totals.Tokens, refused}
	}
	all, _ := q.tallies[classes].totals()
	s.Plenty, s.Refunded = all.Admitted, all.Refunded
	return s
}

var (
	descByPriority = metrics.Desc{Name: "priority_admitted", Help: "Calls that got their tokens, by priority; \"any\" passed before theirs was looked at.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "priority"}}
	descShed       = metrics.Desc{Name: "priority_rejected", Help: "Calls refused, by priority; they are in rejected too.", Unit: "{call}", Kind: metrics.Counter, Labels: []string{"resource", "priority"}}
	descOwnLevel   = metrics.Desc{Name: "priority_level", Help: "Tokens there are in the bucket of a priority, or in the shared one.", Unit: "{token}", Kind: metrics.Gauge, Labels: []string{"resource", "bucket"}}
)

// Collect yields the limiter's figures, for metrics.Set. Counters never go down.
func (q *Priorities) Collect(yield func(metrics.Sample) bool) {
	if q == nil {
		return
	}
	s, more := q.Snapshot(), true
	say := func(desc *metrics.Desc, value float64, labels ...string) {
		more = more && yield(metrics.Sample{Desc: desc, Labels: append([]string{q.name}, labels...), Value: value})
	}
	var sum RefusedSnapshot
	for i, class := range s.Classes {
		name := sluice.Priority(i - 1).String()
		say(&descByPriority, float64(class.Admitted), name)
		say(&descShed, float64(class.Refused.all()), name)
		say(&descOwnLevel, class.Own.Level, name)
		sum = sum.plus(class.Refused)
	}
	say(&descByPriority, float64(s.Plenty), "any")
	say(&descOwnLevel, s.Shared.Level, "shared")
	say(&descRefunded, float64(s.Refunded), "priorities")
	say(&descRefused, float64(sum.Limited), "priorities", ReasonLimited)
	say(&descRefused, float64(sum.ExceedsCapacity), "priorities", ReasonExceedsCapacity)
	say(&descRefused, float64(sum.Blocked), "priorities", ReasonBlocked)
	say(&descRefused, float64(sum.Invalid), "priorities", ReasonInvalid)
}

// View returns the Snapshot, for metrics.Set.
func (q *Priorities) View() any { return q.Snapshot() }

// all is how many were refused for any reason.
func (r RefusedSnapshot) all() int64 {
	return r.Limited + r.ExceedsCapacity + r.Blocked + r.Invalid + r.MaxWait + r.Deadline + r.MaxWaiters
}

func (r RefusedSnapshot) plus(o RefusedSnapshot) RefusedSnapshot {
	return RefusedSnapshot{
		r.Limited + o.Limited, r.ExceedsCapacity + o.ExceedsCapacity, r.Blocked + o.Blocked, r.Invalid + o.Invalid,
		r.MaxWait + o.MaxWait, r.Deadline + o.Deadline, r.MaxWaiters + o.MaxWaiters,
	}
}
