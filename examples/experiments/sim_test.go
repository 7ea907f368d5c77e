package main

import (
	"container/heap"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/adaptive"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/retry"
)

// A world is a server and its clients, in one goroutine of a bubble, so that guards see
// its time and each run is the same: calls come at random, and wait in the server's one
// queue for a worker. What nobody waits for any more is worked on all the same.
type world struct {
	// The server.
	workers func(since time.Duration) int
	limiter *adaptive.Limiter // of calls in the server, or nil
	// The clients, which wait for an answer for patience.
	policy  *retry.Policy    // or nil
	breaker *breaker.Breaker // or nil

	random *rand.Rand
	begin  time.Time
	agenda agenda
	queue  []*attempt
	busy   int
	calls  []*call
	sent   int // attempts that the server got
}

const (
	rate     = 300.0                  // calls a second
	service  = 10 * time.Millisecond  // the mean
	fullCrew = 4                      // workers, who can do 400 a second
	patience = 250 * time.Millisecond // of clients
)

// A call is one that somebody makes, in several attempts perhaps.
type call struct {
	came  time.Duration
	steps retry.Attempts
	good  bool
}

// An attempt is one request.
type attempt struct {
	call    *call
	breaker breaker.Permit
	server  adaptive.LimiterPermit
	gone    bool // nobody waits for it any more
	ended   bool
}

var (
	errBusy = sluice.Mark(errors.New("503 Service Unavailable"), sluice.Throttled)
	errLate = errors.New("no answer in time")
)

// live lets calls come for so long. It is to be called once.
func (w *world) live(t *testing.T, long time.Duration, build func(*world)) {
	synctest.Test(t, func(*testing.T) {
		w.begin, w.random = time.Now(), rand.New(rand.NewPCG(1, 1))
		build(w) // guards that know the bubble's time
		w.arrive()
		for w.agenda.Len() > 0 {
			next := heap.Pop(&w.agenda).(appointment)
			if next.at >= long {
				return
			}
			time.Sleep(next.at - w.now())
			next.do()
		}
	})
}

func (w *world) now() time.Duration { return time.Since(w.begin) }

// after schedules do.
func (w *world) after(d time.Duration, do func()) {
	w.agenda.made++
	heap.Push(&w.agenda, appointment{w.now() + d, w.agenda.made, do})
}

// arrive lets calls come, as Poisson has it.
func (w *world) arrive() {
	w.after(time.Duration(w.random.ExpFloat64()/rate*float64(time.Second)), func() {
		w.arrive()
		c := &call{came: w.now()}
		w.calls = append(w.calls, c)
		var err error
		if c.steps, err = w.policy.Begin(context.Background()); err == nil {
			w.send(c)
		}
	})
}

// send makes an attempt.
func (w *world) send(c *call) {
	a := &attempt{call: c}
	var err error
	if a.breaker, err = w.breaker.Allow(context.Background()); err != nil {
		w.end(a, err)
		return
	}
	w.sent++
	if a.server, err = w.limiter.TryAcquire(context.Background()); err != nil {
		w.end(a, errBusy)
		return
	}
	w.queue = append(w.queue, a)
	w.after(patience, func() {
		if !a.ended {
			a.gone = true
			w.end(a, errLate)
		}
	})
	w.work()
}

// work gives the queue to workers that are free.
func (w *world) work() {
	for w.busy < w.workers(w.now()) && len(w.queue) > 0 {
		a := w.queue[0]
		w.queue = w.queue[1:]
		w.busy++
		const sigma = 0.5
		w.after(time.Duration(float64(service)*math.Exp(sigma*w.random.NormFloat64()-sigma*sigma/2)), func() {
			w.busy--
			a.server.Done(nil)
			if !a.gone {
				w.end(a, nil)
			}
			w.work()
		})
	}
}

// end is the end of an attempt, and the beginning of the next one perhaps.
func (w *world) end(a *attempt, err error) {
	a.ended, a.call.good = true, err == nil
	a.breaker.Done(err)
	if wait, again := a.call.steps.Next(context.Background(), err); again {
		w.after(wait, func() { w.send(a.call) })
	}
}

// share is which part of the calls that came from one time to another succeeded.
func (w *world) share(from, to time.Duration) float64 {
	n, good := 0, 0
	for _, c := range w.calls {
		if from <= c.came && c.came < to {
			n++
			if c.good {
				good++
			}
		}
	}
	return float64(good) / float64(n)
}

// agenda is a heap of appointments.
type agenda struct {
	list []appointment
	made int
}

type appointment struct {
	at    time.Duration
	order int
	do    func()
}

func (a *agenda) Len() int { return len(a.list) }
func (a *agenda) Less(i, j int) bool {
	x, y := a.list[i], a.list[j]
	return x.at < y.at || x.at == y.at && x.order < y.order
}
func (a *agenda) Swap(i, j int) { a.list[i], a.list[j] = a.list[j], a.list[i] }
func (a *agenda) Push(x any)    { a.list = append(a.list, x.(appointment)) }
func (a *agenda) Pop() any {
	last := a.list[len(a.list)-1]
	a.list = a.list[:len(a.list)-1]
	return last
}
