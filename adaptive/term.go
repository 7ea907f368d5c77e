package adaptive

import (
	"math"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// A term is a limit and what belongs to it: all calls that begin while it is in
// force have it, and keep it. It is never changed, only replaced.
type term struct {
	t       *Timeout
	est     tracker
	limit   time.Duration
	median  time.Duration // calls with less time left are refused; 0 if not known
	probing bool
	state   TimeoutState
	over    TimeoutError // the cause of a context that this limit has ended
}

// A timeoutPlan is what a Timeout decides on. It is never changed, only replaced.
type timeoutPlan struct {
	config     *TimeoutConfig // nobody changes it
	est        tracker
	longest    *term  // of probes: Max
	probeEvery uint32 // one in so many calls is a probe, 0 for none
}

// tickEvery is how often the limit is worked out, at most.
const tickEvery = 250 * time.Millisecond

func (t *Timeout) newPlan(c *TimeoutConfig, est tracker) *timeoutPlan {
	p := &timeoutPlan{config: c, est: est}
	if c.ProbeShare > 0 {
		p.probeEvery = uint32(min(1/c.ProbeShare, math.MaxUint32))
	}
	p.longest = t.newTerm(p, Estimate{Limit: c.Max})
	return p
}

// newTerm is e within the bounds of p.
func (t *Timeout) newTerm(p *timeoutPlan, e Estimate) *term {
	limit := p.config.bounds().clamp(e.Limit)
	if e.State == 0 {
		e.State = Resolved
	}
	return &term{
		t: t, est: p.est, limit: limit, median: max(e.Median, 0), probing: e.Probing, state: e.State,
		over: TimeoutError{t.name, limit},
	}
}

// tick works the limit out anew. One goroutine at a time does, the others go on.
func (t *Timeout) tick(now int64) {
	if !t.ticking.CompareAndSwap(false, true) {
		return
	}
	defer t.ticking.Store(false)
	t.next.Store(clock.After(now, tickEvery))
	// The term before the plan: if an Update comes in between, the CAS fails.
	have, p := t.cur.Load(), t.plan.Load()
	e := p.est.Estimate(now, p.config.bounds())
	if e.Limit <= 0 {
		e.Limit = have.limit
	}
	w := t.newTerm(p, e)
	if *w != *have {
		t.cur.CompareAndSwap(have, w)
	}
	t.member.Needed(t) // there is something to lose now
}

// observe tells the estimator how a call ended, and works the limit out if it is
// time to.
func (w *term) observe(start, now int64, end End) {
	w.est.Observe(Sample{At: now, Took: time.Duration(now - start), Limit: w.limit, End: end})
	if now >= w.t.next.Load() {
		w.t.tick(now)
	}
}
