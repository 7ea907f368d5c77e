package breaker

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/sluicego/sluice"
)

// An ending is one way for a call to end: what is done with the permit, and what
// the model is told.
type ending struct {
	name string
	gone error // if the caller is
	do   func(p *Permit, now int64)
	end  modelEnd
}

func settle(o sluice.Outcome) func(*Permit, int64) {
	return func(p *Permit, now int64) { p.settle(now, o) }
}

func doneBy(err error) func(*Permit, int64) {
	return func(p *Permit, now int64) { p.done(now, err) }
}

var endings = func() []ending {
	less := sluice.Mark(errDown, sluice.Throttled)
	later := func(d time.Duration) ending {
		return ending{"throttled for " + d.String(), nil, doneBy(sluice.WithRetryAfter(less, d)), modelEnd{outcome: sluice.Throttled, wait: d}}
	}
	good, bad := modelEnd{outcome: sluice.Success}, modelEnd{outcome: sluice.Failure}
	none, gaveUp := modelEnd{outcome: sluice.Ignored}, modelEnd{outcome: sluice.Ignored, gaveUp: true}
	lost := modelEnd{outcome: sluice.Failure, unfinished: true}
	throttled := modelEnd{outcome: sluice.Throttled, wait: -1}
	return []ending{
		{"success", nil, doneBy(nil), good},
		{"success", nil, doneBy(nil), good},
		{"success", nil, doneBy(nil), good},
		{"success", nil, settle(sluice.Success), good},
		{"success, caller gone", context.Canceled, doneBy(nil), good},
		{"failure", nil, doneBy(errDown), bad},
		{"failure", nil, doneBy(errDown), bad},
		{"failure", nil, settle(sluice.Failure), bad},
		{"marked ignored", nil, doneBy(sluice.Ignore(errDown)), none},
		{"settled ignored", nil, settle(sluice.Ignored), none},
		{"refused further in", nil, doneBy(sluice.ErrRejected), none},
		{"refused further in, caller gone", context.Canceled, doneBy(sluice.ErrRejected), none},
		{"cancelled", nil, func(p *Permit, now int64) { p.cancel(now) }, none},
		{"cancelled, caller gone", context.Canceled, func(p *Permit, now int64) { p.cancel(now) }, none},
		{"caller gone", context.Canceled, doneBy(context.Canceled), gaveUp},
		{"caller's deadline", context.DeadlineExceeded, doneBy(context.DeadlineExceeded), bad},
		{"panic", nil, func(p *Permit, now int64) { p.close(now) }, lost},
		{"Goexit", nil, func(p *Permit, now int64) { wait(func() { defer p.close(now); runtime.Goexit() }) }, lost},
		{"panic, caller gone", context.Canceled, func(p *Permit, now int64) { p.close(now) }, gaveUp},
		{"throttled", nil, doneBy(less), throttled},
		{"settled throttled", nil, settle(sluice.Throttled), throttled},
		later(0), later(2 * time.Second), later(24 * time.Hour),
		{"asks for a rest", nil, doneBy(tripError{20 * time.Second}), modelEnd{outcome: sluice.Failure, tripFor: 20 * time.Second}},
	}
}()

// endOne ends a call that is out, in some way.
func (w *walk) endOne() {
	if len(w.out) == 0 {
		return
	}
	i := w.pick(len(w.out))
	c := w.out[i]
	w.out = slices.Delete(w.out, i, i+1)
	w.settle(c, endings[w.pick(len(endings))])
}

// settle ends the call in both, and now and then once more, which does nothing.
func (w *walk) settle(c *walkCall, e ending) {
	c.who.gone = e.gone
	end := e.end
	if e.gone == context.DeadlineExceeded && time.Duration(w.now-c.start) < w.m.minBudget() {
		end = modelEnd{outcome: sluice.Ignored, gaveUp: true}
	}
	w.logf("%s, of the call of %v", e.name, time.Duration(c.start-t0))
	e.do(c.p, w.now)
	w.book.settled++
	switch {
	case c.seat == nil:
	case w.m.settle(c.seat, w.now, end):
		w.book.outcomes[end.outcome]++
	default:
		w.book.stale++
	}
	if w.pick(4) == 0 {
		endings[w.pick(len(endings))].do(c.p, w.now)
	}
}
