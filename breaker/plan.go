package breaker

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// plan is a Config worked out for use, with the override in force. It never
// changes; Update and Force put another in its place.
type plan struct {
	config Config

	plain     bool  // a closed breaker admits without looking further: no override, no overdue calls
	timed     bool  // the start of a call is wanted
	errorRule bool  // failures trip
	rows      bool  // failures in a row trip
	slowLimit int64 // the shortest slow limit in ns, 0 without slow rules
	minBudget int64
	lease     time.Duration
	ramp      int64 // how long recovery takes

	mode      Mode
	modeUntil int64      // 0 is until Unforce
	refusal   *OpenError // of ForcedOpen
}

// newPlan works out a valid c, which it keeps.
func newPlan(c Config) *plan {
	p := &plan{config: c}
	for _, r := range c.Rules {
		if limit := int64(r.SlowerThan); limit > 0 && (p.slowLimit == 0 || limit < p.slowLimit) {
			p.slowLimit = limit
		}
		p.errorRule = p.errorRule || r.Kind != SlowCallRatio
		p.rows = p.rows || r.Kind == ConsecutiveFailures
	}
	p.minBudget = int64(c.MinBudget)
	if c.MinBudget == Auto {
		p.minBudget = p.slowLimit
	}
	p.lease = c.ProbeLease
	if c.ProbeLease == Auto {
		p.lease = max(c.OpenFor, 10*time.Second)
	}
	for _, s := range c.Recovery {
		p.ramp = clock.After(p.ramp, s.For)
	}
	p.timed = p.slowLimit > 0 || p.minBudget > 0
	p.plain = !c.InFlightSlow
	return p
}

// withConfig returns a plan for c under the override that p has.
func (p *plan) withConfig(c Config) *plan {
	q := newPlan(c)
	q.mode, q.modeUntil, q.refusal = p.mode, p.modeUntil, p.refusal
	q.plain = q.plain && p.mode == 0
	return q
}

// withMode returns p under another override, or under none if mode is 0. until is
// when the override ends, 0 if only by Unforce.
func (p *plan) withMode(name string, mode Mode, until int64) *plan {
	q := newPlan(p.config)
	q.mode, q.modeUntil = mode, until
	q.plain = q.plain && mode == 0
	if mode == ForcedOpen {
		q.refusal = &OpenError{name: name, reason: refusedForced}
		if until != 0 {
			q.refusal.until = new(atomic.Int64)
			q.refusal.until.Store(until)
		}
	}
	return q
}

// modeAt is the override in force at now, 0 if none is.
func (p *plan) modeAt(now int64) Mode {
	if p.modeUntil != 0 && now >= p.modeUntil {
		return 0
	}
	return p.mode
}

// shareAt is the share of calls, in millionths, that a breaker admits the given
// time after it closed.
func (p *plan) shareAt(sinceClosed int64) int64 {
	for _, s := range p.config.Recovery {
		if sinceClosed < int64(s.For) {
			return ppm(s.Share)
		}
		sinceClosed -= int64(s.For)
	}
	return million
}

// openFor is the open period before backoff after the given rule has tripped: its
// own, also if an Update has given it another one since, or the breaker's for nil
// and for a rule that is not there any more.
func (p *plan) openFor(tripped *Rule) time.Duration {
	own := p.config.ruleLike(tripped)
	if own == nil || own.OpenFor == 0 {
		return p.config.OpenFor
	}
	return own.OpenFor
}

// period is the open period at the given level of backoff, without jitter.
func (p *plan) period(base time.Duration, level int32) time.Duration {
	most := p.backoffMax(base)
	d := float64(base) * math.Pow(p.config.BackoffFactor, float64(level))
	if d >= float64(most) { // also when d is infinite
		return most
	}
	return time.Duration(d)
}

// topLevel is the first level at which the period is as long as it gets, so that
// a long outage does not take equally long to be forgotten.
func (p *plan) topLevel(base time.Duration) int32 {
	factor, most := p.config.BackoffFactor, p.backoffMax(base)
	if factor == 1 || base >= most {
		return 0
	}
	level := int32(math.Ceil(math.Log(float64(most)/float64(base)) / math.Log(factor)))
	for p.period(base, level) < most { // the logarithms may be off by a rounding
		level++
	}
	for level > 0 && p.period(base, level-1) >= most {
		level--
	}
	return level
}

func (p *plan) backoffMax(base time.Duration) time.Duration {
	if p.config.BackoffMax == Auto {
		return max(base, time.Minute)
	}
	return p.config.BackoffMax
}

const million = 1_000_000

// ppm turns a ratio into millionths, exact for every ratio written with up to six
// decimals.
func ppm(ratio float64) int64 { return int64(ratio*million + 1e-3) }
