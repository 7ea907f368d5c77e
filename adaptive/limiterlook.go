package adaptive

import (
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// A limiterPlan is what a Limiter decides on. It is never changed, only replaced; its
// tracker belongs to whoever has Limiter.looking.
type limiterPlan struct {
	config  *LimiterConfig // nobody changes it
	ranked  bool           // whether priorities matter
	tracker limitTracker
}

// A limitFound is what a window that was over said.
type limitFound struct {
	window LimitWindow
	limitFinding
}

// How much a window must have seen to be over.
const (
	// fewestCalls is how many calls say anything: below ten a second or so the limit
	// stays, and the window goes on.
	fewestCalls = 10
	// manyCalls is how many end a window early, if it is urgent.
	manyCalls = 50
	// longCalls is how many times as long as a call a window is at least.
	longCalls = 10
	// mostCalls is how many end a window in any case, long before a bucket overflows.
	mostCalls = 1 << 22
)

// look ends w if it is over, and works the limit out. One goroutine at a time does, the
// others go on.
func (l *Limiter) look(w *limitWindow, now int64) {
	if !l.looking.CompareAndSwap(false, true) {
		return
	}
	defer l.looking.Store(false)
	if l.window.Load() != w {
		return
	}
	p := l.plan.Load()
	if now < w.began {
		l.window.Store(newLimitWindow(now, p.config.lookEvery()))
		return
	}
	w.next.Store(clock.After(now, p.config.lookEvery()))
	seen := w.see(now)
	seen.Min, seen.Max, seen.Limit = p.config.Min, p.config.Max, l.fraction()
	if !p.over(&seen) {
		return
	}
	l.window.Store(newLimitWindow(now, p.config.lookEvery()))
	limit := p.tracker.next(&seen, &p.config.Rule)
	seen.counts = nil
	l.found.Store(&limitFound{seen, p.tracker.finding()})
	l.follow(p, limit)
	l.member.Needed(l) // there is something to lose now
}

// over reports whether what was seen of a window is enough.
func (p *limiterPlan) over(seen *LimitWindow) bool {
	if seen.ended() < fewestCalls {
		return false
	}
	if seen.Span >= max(p.config.Window, longCalls*seen.Took) || seen.ended() >= mostCalls {
		return true
	}
	return seen.ended() >= manyCalls && p.tracker.urgent(seen, &p.config.Rule)
}

// fraction is the limit with its fraction.
func (l *Limiter) fraction() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.exact
}

// follow puts the limit in force that the tracker of p has found.
func (l *Limiter) follow(p *limiterPlan, limit float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.plan.Load().tracker != p.tracker || !(limit > 0) { // also catches NaN
		return
	}
	l.set(l.plan.Load().config, limit)
}

// set puts limit in force, within the bounds of c. The caller holds l.mu.
func (l *Limiter) set(c *LimiterConfig, limit float64) {
	l.exact = min(max(limit, float64(c.Min)), float64(c.Max))
	if whole := int(l.exact); whole != l.places.Limit() {
		l.places.Update(whole, c.policy())
	}
}

// lookEvery is how often somebody looks whether a window is over.
func (c *LimiterConfig) lookEvery() time.Duration { return c.Window / 10 }
