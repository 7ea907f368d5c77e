package adaptive

import (
	"context"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stripe"
)

// systemTally counts calls. What they write is spread over cache lines, and apart from
// what all of them read: while all is well, two of them have no line in common.
type systemTally struct {
	_      [stripe.Line]byte
	passed [stripe.Cells]passages
	turned [stripe.Cells]refusals
}

// passages counts calls that were admitted and that have ended, by how. It fills a
// line.
type passages struct {
	entered   atomic.Int64 // raised by enter, and lowered again for one it refuses after that
	succeeded lengths      // written by settle, as are the others
	failed    lengths      // Throttled is among them
	ignored   atomic.Int64
}

var _ = [1]struct{}{}[unsafe.Sizeof(passages{})-stripe.Line]

// lengths counts calls, and how long those took of which it was measured. Written by
// add, the time after the count.
type lengths struct{ unmeasured, measured, time atomic.Int64 }

// add counts a call that began at start, which is 0 if that was not measured.
func (l *lengths) add(start, now int64) {
	if start == 0 {
		l.unmeasured.Add(1)
		return
	}
	l.measured.Add(1)
	l.time.Add(now - start)
}

func (l *lengths) calls() int64 { return l.unmeasured.Load() + l.measured.Load() }

// refusals counts calls that were refused, by the signal, and those that were about to
// be, by their class.
type refusals struct {
	by      [signals]atomic.Int64
	sampled [classes]atomic.Int64
	_       [2*stripe.Line - (signals+classes)*8]byte
}

// done counts a call that has ended with err. Its methods are foreign code: if one of them
// panics, the call counts as failed, and the panic goes on.
func (s *System) done(ctx context.Context, start, now int64, err error) {
	if err == nil {
		s.settle(start, now, sluice.Success)
		return
	}
	o := sluice.Failure
	defer func() { s.settle(start, now, o) }()
	o = sluice.Classify(ctx, err)
}

// settle counts a call that has ended; start is 0 if nobody has asked how long it takes.
func (s *System) settle(start, now int64, o sluice.Outcome) {
	p := &s.passed[stripe.Index()]
	switch o {
	case sluice.Success:
		p.succeeded.add(start, now)
	case sluice.Failure, sluice.Throttled:
		p.failed.add(start, now)
	default:
		p.ignored.Add(1)
	}
}

// underWay is how many calls have entered and not ended, or more: what ends meanwhile
// may be missed, what has entered before is not.
func (t *systemTally) underWay() (n int64) {
	for i := range t.passed {
		p := &t.passed[i]
		n -= p.succeeded.calls() + p.failed.calls() + p.ignored.Load()
	}
	for i := range t.passed {
		n += t.passed[i].entered.Load()
	}
	return n
}

// refuse counts a refusal and returns it.
func (s *System) refuse(e *OverloadError) error {
	s.turned[stripe.Index()].by[e.signal].Add(1)
	return e
}

// sample counts a call that was about to be refused, whatever its class: chance has
// picked it, so these tell how many calls there are of each.
func (s *System) sample(class int) { s.turned[stripe.Index()].sampled[class].Add(1) }

// counts is the tally at one moment, since NewSystem.
type counts struct {
	entered, succeeded, failed, ignored int64
	successes, failures                 measured
	refused                             [signals]int64
	sampled                             [classes]int64
}

// inFlight is how many calls were under way.
func (c *counts) inFlight() int64 { return max(c.entered-c.succeeded-c.failed-c.ignored, 0) }

// measured is of how many calls it is known how long they took, and how long that was.
type measured struct{ calls, time int64 }

// count adds what l counts to m, and returns how many calls it counts in all.
func (m *measured) count(l *lengths) (calls int64) {
	m.time += l.time.Load()
	n := l.measured.Load()
	m.calls += n
	return n + l.unmeasured.Load()
}

// since is what came after before.
func (m measured) since(before measured) measured {
	return measured{m.calls - before.calls, m.time - before.time}
}

func (m measured) plus(other measured) measured {
	return measured{m.calls + other.calls, m.time + other.time}
}

// mean is in seconds.
func (m measured) mean() reading {
	if m.calls <= 0 {
		return reading{}
	}
	return known(time.Duration(m.time / m.calls).Seconds())
}

func (t *systemTally) counts() (c counts) {
	for i := range t.passed {
		p := &t.passed[i]
		c.succeeded += c.successes.count(&p.succeeded)
		c.failed += c.failures.count(&p.failed)
		c.ignored += p.ignored.Load()
	}
	for i := range t.passed { // what has ended above has entered
		c.entered += t.passed[i].entered.Load()
	}
	for i := range t.turned {
		for signal := range c.refused {
			c.refused[signal] += t.turned[i].by[signal].Load()
		}
		for class := range c.sampled {
			c.sampled[class] += t.turned[i].sampled[class].Load()
		}
	}
	return c
}

// asked is how many calls asked for leave so far.
func (c *counts) asked() int64 {
	n := c.entered
	for _, refused := range c.refused {
		n += refused
	}
	return n
}

// delays collects what ObserveDelay is told between two ticks.
type delays struct{ n, sum atomic.Int64 }

// ObserveDelay tells the System how long a call has waited in a queue of this process
// before it was begun: that of a bulkhead, a limiter or a worker pool. The mean of a
// tenth of a second counts as QueueDelay, if it is more than what goroutines wait. One
// of more than an hour counts as an hour.
func (s *System) ObserveDelay(d time.Duration) {
	if s == nil {
		return
	}
	s.delays.sum.Add(int64(min(max(d, 0), longestDelay)))
	s.delays.n.Add(1)
}

// longestDelay is far above any threshold, and two million of them do not overflow.
const longestDelay = time.Hour

// take returns the mean since the last time, in seconds. A delay that is told just now
// may be counted in one tick and weigh in the next.
func (d *delays) take() reading {
	n, sum := d.n.Swap(0), d.sum.Swap(0)
	if n == 0 {
		return reading{}
	}
	return known(time.Duration(sum / n).Seconds())
}
