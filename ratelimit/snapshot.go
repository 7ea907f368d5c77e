package ratelimit

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// Snapshot is what a Limiter looks like at one moment, as plain data. Its numbers are
// read one after another while calls go on, so they need not add up to the call.
type Snapshot struct {
	Name string `json:"name"`
	Rate Rate   `json:"rate"`
	// Burst is how many tokens there can be, Level how many there are, with their
	// fractions: below 0 in debt, and while callers wait.
	Burst int64   `json:"burst"`
	Level float64 `json:"level"`
	// Waiting callers have been promised their tokens. The last has his in Queue.
	Waiting int64         `json:"waiting"`
	Queue   time.Duration `json:"queue"`

	Totals  TotalsSnapshot  `json:"totals"`
	Refused RefusedSnapshot `json:"refused"`
}

// TotalsSnapshot counts answers since New; the numbers never go down.
type TotalsSnapshot struct {
	// Admitted is how many calls got their tokens, and Tokens how many these were
	// together, with those of Debit.
	Admitted int64 `json:"admitted"`
	Tokens   int64 `json:"tokens"`
	// Refunded is how many of Admitted were given back.
	Refunded int64 `json:"refunded"`
	// Gone is how many callers went away while they waited.
	Gone int64 `json:"gone"`
}

// RefusedSnapshot counts refused calls since New, by reason.
type RefusedSnapshot struct {
	Limited         int64 `json:"limited"`
	ExceedsCapacity int64 `json:"exceeds_capacity"`
	Blocked         int64 `json:"blocked"`
	Invalid         int64 `json:"invalid"`
	MaxWait         int64 `json:"max_wait"`
	Deadline        int64 `json:"deadline"`
	MaxWaiters      int64 `json:"max_waiters"`
}

// Snapshot returns what the limiter looks like now. It has no side effect, does not
// disturb calls and allocates nothing.
func (l *Limiter) Snapshot() Snapshot {
	if l == nil {
		return Snapshot{Rate: Unlimited()}
	}
	return l.snapshot(clock.Now())
}

func (l *Limiter) snapshot(now int64) Snapshot {
	p := l.cur.Load()
	s := Snapshot{Name: l.name, Rate: p.limit, Burst: p.most, Waiting: l.waiting.Load()}
	if p.most > 0 {
		level, ok := p.own.level(now)
		if !ok {
			l.renew(p, now)
			return l.snapshot(now)
		}
		s.Level = float64(level) / float64(p.own.unit)
		s.Queue = p.own.span(-level)
	}
	s.Totals, s.Refused = l.tally.totals()
	return s
}

// totals adds the cells up.
func (t *tally) totals() (s TotalsSnapshot, r RefusedSnapshot) {
	if t == nil {
		return s, r
	}
	s.Refunded, s.Gone = t.refunded.Load(), t.gone.Load()
	for i := range t.cells {
		c := &t.cells[i]
		s.Admitted += c.admitted.Load()
		s.Tokens = sumOf(s.Tokens, c.extra.Load())
		r.Limited += c.limited.Load()
	}
	s.Tokens = sumOf(s.Tokens, s.Admitted)
	for i, n := range []*int64{&r.ExceedsCapacity, &r.Blocked, &r.Invalid, &r.MaxWait, &r.Deadline, &r.MaxWaiters} {
		*n = t.refused[i].Load()
	}
	return s, r
}
