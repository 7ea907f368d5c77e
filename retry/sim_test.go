package retry

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/sluicego/sluice"
)

// A world is a dependency and its clients in one thread, in virtual time: calls come at
// random, wait in one queue for a worker, are repeated by a real Policy with a real
// Budget, and nobody waits for an attempt longer than patience. An attempt that nobody
// waits for any more is worked on all the same, unless the server drops it.
type world struct {
	// The dependency.
	workers func(at int64) int
	service float64 // mean ns
	limit   int     // in flight at most, 0 is any number; beyond it the answer is "less"
	drops   bool    // what nobody waits for
	// The clients.
	rate     float64 // calls a second
	poisson  bool    // or evenly
	patience int64
	policy   *Policy
	// until, if not nil, is asked with each call that succeeds whether to stop.
	until func(number int) bool
	seed  uint64

	random *rand.Rand
	now    int64
	plans  plans
	// patient are the attempts that somebody waits for, or has, in order.
	patient fifo[waiting]
	queue   fifo[*attempt]
	busy    int
	stop    bool
	good    []bool  // by call: it succeeded
	began   []int64 // by call
	sent    int64   // attempts that the server got
}

// An attempt is one request.
type attempt struct {
	call  *simCall
	gone  bool // nobody waits for it any more
	ended bool
}

type simCall struct {
	number int
	steps  Attempts
}

// waiting is when the patience of whoever made an attempt ends.
type waiting struct {
	at int64
	a  *attempt
}

// fifo is a queue.
type fifo[T any] struct {
	list []T
	head int
}

func (f *fifo[T]) push(v T) { f.list = append(f.list, v) }
func (f *fifo[T]) len() int { return len(f.list) - f.head }
func (f *fifo[T]) pop() (v T) {
	v, f.list[f.head] = f.list[f.head], v
	if f.head++; f.head > len(f.list)/2 && f.head > 1000 {
		f.list, f.head = append(f.list[:0], f.list[f.head:]...), 0
	}
	return v
}

// plans is a heap of what happens when.
type plans []planned

type planned struct {
	at int64
	do func()
}

func (p *plans) push(e planned) {
	*p = append(*p, e)
	for i, h := len(*p)-1, *p; i > 0 && h[i].at < h[(i-1)/2].at; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
}

func (p *plans) pop() planned {
	h := *p
	first, last := h[0], len(h)-1
	h[0] = h[last]
	*p, h = h[:last], h[:last]
	for i := 0; ; {
		least := i
		for _, child := range [2]int{2*i + 1, 2*i + 2} {
			if child < len(h) && h[child].at < h[least].at {
				least = child
			}
		}
		if least == i {
			return first
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// at plans what happens at a time from the beginning.
func (w *world) at(time int64, do func()) { w.plans.push(planned{t0 + time, do}) }

// in plans what happens after some time.
func (w *world) in(d int64, do func()) { w.plans.push(planned{w.now + max(d, 0), do}) }

// run lets calls come until a time.
func (w *world) run(until int64) {
	w.random = rand.New(rand.NewPCG(w.seed, 1))
	w.policy.random = w.random.Float64
	next := t0 // when the next call comes
	for !w.stop {
		patience := int64(math.MaxInt64)
		if w.patient.len() > 0 {
			patience = w.patient.list[w.patient.head].at
		}
		planning := int64(math.MaxInt64)
		if len(w.plans) > 0 {
			planning = w.plans[0].at
		}
		w.now = min(next, patience, planning)
		switch {
		case w.now >= t0+until:
			return
		case w.now == patience:
			if a := w.patient.pop().a; !a.ended {
				a.gone = true
				w.end(a, context.DeadlineExceeded)
			}
		case w.now == planning:
			w.plans.pop().do()
		default:
			gap := 1.0
			if w.poisson {
				gap = w.random.ExpFloat64()
			}
			next += int64(gap * 1e9 / w.rate)
			w.begin()
		}
	}
}

func (w *world) begin() {
	c := &simCall{number: len(w.good)}
	c.steps.policy, c.steps.plan = w.policy, w.policy.plan.Load()
	w.good, w.began = append(w.good, false), append(w.began, w.now)
	w.send(c)
}

func (w *world) send(c *simCall) {
	w.sent++
	a := &attempt{call: c}
	if w.limit > 0 && w.busy+w.queue.len() >= w.limit {
		w.end(a, errLess)
		return
	}
	w.patient.push(waiting{w.now + w.patience, a})
	w.queue.push(a)
	w.work()
}

var errLess = sluice.Mark(errDown, sluice.Throttled)

// work gives the queue to workers that are free.
func (w *world) work() {
	for w.busy < w.workers(w.now-t0) && w.queue.len() > 0 {
		a := w.queue.pop()
		if w.drops && a.gone {
			continue
		}
		w.busy++
		const sigma = 0.5
		takes := w.service * math.Exp(sigma*w.random.NormFloat64()-sigma*sigma/2)
		w.in(int64(takes), func() {
			w.busy--
			if !a.gone {
				w.end(a, nil)
			}
			w.work()
		})
	}
}

// end tells the policy how an attempt ended.
func (w *world) end(a *attempt, err error) {
	a.ended = true
	c := a.call
	if err == nil {
		w.good[c.number] = true
		if c.steps.made == 0 {
			w.policy.budget.deposit(w.now) // and not by the clock of this process
		}
		w.stop = w.until != nil && w.until(c.number)
		return
	}
	if wait, again := c.steps.next(context.Background(), w.now, err); again {
		w.in(int64(wait), func() { w.send(c) })
	}
}

// share is which part of the calls that came between two times succeeded.
func (w *world) share(from, to int64) float64 {
	n, good := 0, 0
	for i, at := range w.began {
		if t0+from <= at && at < t0+to {
			n++
			if w.good[i] {
				good++
			}
		}
	}
	return float64(good) / float64(n)
}
