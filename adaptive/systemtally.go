package adaptive

import (
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stripe"
)

// systemTally counts calls. What most of them write is spread over cache lines, and
// apart from what all of them read.
type systemTally struct {
	_        [stripe.Line]byte
	inFlight atomic.Int64 // raised by enter, lowered by settle
	_        [stripe.Line]byte
	ended    [stripe.Cells]endings
	turned   [stripe.Cells]refusals
}

// endings counts calls that have ended, by how. Written by settle.
type endings struct {
	succeeded lengths
	failed    lengths // Throttled is among them
	ignored   atomic.Int64
	_         [stripe.Line - 7*8]byte
}

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

// refusals counts calls that were refused, by the signal, and those that were about to
// be, by their class.
type refusals struct {
	by      [signals]atomic.Int64
	sampled [classes]atomic.Int64
	_       [2*stripe.Line - (signals+classes)*8]byte
}

// settle counts a call that has ended; start is 0 if nobody has asked how long it takes.
func (s *System) settle(start, now int64, o sluice.Outcome) {
	e := &s.ended[stripe.Index()]
	switch o {
	case sluice.Success:
		e.succeeded.add(start, now)
	case sluice.Failure, sluice.Throttled:
		e.failed.add(start, now)
	default:
		e.ignored.Add(1)
	}
	s.inFlight.Add(-1)
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
	inFlight, succeeded, failed, ignored int64
	successes, failures                  measured
	refused                              [signals]int64
	sampled                              [classes]int64
}

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
	for i := range t.ended {
		e := &t.ended[i]
		c.succeeded += c.successes.count(&e.succeeded)
		c.failed += c.failures.count(&e.failed)
		c.ignored += e.ignored.Load()
	}
	c.inFlight = max(t.inFlight.Load(), 0)
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

// admitted is how many calls were let in so far.
func (c *counts) admitted() int64 { return c.inFlight + c.succeeded + c.failed + c.ignored }

// asked is how many calls asked for leave so far.
func (c *counts) asked() int64 {
	n := c.admitted()
	for _, refused := range c.refused {
		n += refused
	}
	return n
}

// delays collects what ObserveDelay is told between two ticks.
type delays struct{ n, sum atomic.Int64 }

// ObserveDelay tells the System how long a call has waited in a queue of this process
// before it was begun: that of a bulkhead, a limiter or a worker pool. The mean of a
// tenth of a second counts as QueueDelay, if it is more than what goroutines wait.
func (s *System) ObserveDelay(d time.Duration) {
	if s == nil {
		return
	}
	s.delays.sum.Add(int64(max(d, 0)))
	s.delays.n.Add(1)
}

// take returns the mean since the last time, in seconds. A delay that is told just now
// may be counted in one tick and weigh in the next.
func (d *delays) take() reading {
	n, sum := d.n.Swap(0), d.sum.Swap(0)
	if n == 0 {
		return reading{}
	}
	return known(time.Duration(sum / n).Seconds())
}
