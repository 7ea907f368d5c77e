package adaptive

import (
	"container/heap"
	"context"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

const ms = time.Millisecond

// A world is where experiments happen: in virtual time, in order, from a seed, on
// one goroutine, so that each run is the same to the call. An experiment schedules
// what begins it and runs the world; what happens schedules what comes of it.
type world struct {
	now  int64
	rand *rand.Rand
	todo agenda
}

// brief says that experiments have fewer steps: on request, and under the race
// detector, which makes them ten times slower and has nothing to find where there is
// one goroutine.
func brief() bool { return testing.Short() || raceDetector }

// t0 is where worlds begin: any time that is a multiple of every window's width.
const t0 = int64(time.Hour)

func newWorld(seed uint64) *world {
	return &world{now: t0, rand: rand.New(rand.NewPCG(seed, 0))}
}

// at schedules do. What is scheduled for one moment happens in the order in which it
// was scheduled.
func (w *world) at(when int64, do func()) {
	heap.Push(&w.todo, appointment{max(when, w.now), w.todo.made, do})
	w.todo.made++
}

func (w *world) after(d time.Duration, do func()) { w.at(clock.After(w.now, d), do) }

// since is how long the world has existed.
func (w *world) since() time.Duration { return time.Duration(w.now - t0) }

// run lets happen what is scheduled up to d from the beginning.
func (w *world) run(d time.Duration) {
	for until := t0 + int64(d); ; {
		if len(w.todo.list) == 0 || w.todo.list[0].when > until {
			w.now = until
			return
		}
		next := heap.Pop(&w.todo).(appointment)
		w.now = next.when
		next.do()
	}
}

// arrive lets do happen so many times a second, as Poisson has it, for ever.
func (w *world) arrive(perSecond float64, do func()) {
	w.after(time.Duration(w.rand.ExpFloat64()/perSecond*float64(time.Second)), func() {
		do()
		w.arrive(perSecond, do)
	})
}

// agenda is a heap of appointments.
type agenda struct {
	list []appointment
	made int
}

type appointment struct {
	when  int64
	order int
	do    func()
}

func (a *agenda) Len() int { return len(a.list) }
func (a *agenda) Less(i, j int) bool {
	x, y := a.list[i], a.list[j]
	return x.when < y.when || x.when == y.when && x.order < y.order
}
func (a *agenda) Swap(i, j int) { a.list[i], a.list[j] = a.list[j], a.list[i] }
func (a *agenda) Push(x any)    { a.list = append(a.list, x.(appointment)) }
func (a *agenda) Pop() any {
	last := a.list[len(a.list)-1]
	a.list = a.list[:len(a.list)-1]
	return last
}

// A latency is how long an answer takes to a call made so long after the beginning.
type latency func(since time.Duration, r *rand.Rand) time.Duration

// hanging is the latency of a call that is never answered.
const hanging = time.Duration(math.MaxInt64)

// lognormal has the given median; sigma is the deviation of its logarithm: 0.5 is
// an even-tempered service, 1 one with a tail, 1.5 one that is mostly tail.
func lognormal(median time.Duration, sigma float64) latency {
	return func(_ time.Duration, r *rand.Rand) time.Duration {
		return time.Duration(float64(median) * math.Exp(sigma*r.NormFloat64()))
	}
}

// pareto has the tail index alpha: 2 is one with no variance.
func pareto(least time.Duration, alpha float64) latency {
	return func(_ time.Duration, r *rand.Rand) time.Duration {
		return time.Duration(float64(least) * math.Pow(1-r.Float64(), -1/alpha))
	}
}

// mixed is other for a share of the calls, as cache misses are.
func mixed(most latency, share float64, other latency) latency {
	return func(since time.Duration, r *rand.Rand) time.Duration {
		if r.Float64() < share {
			return other(since, r)
		}
		return most(since, r)
	}
}

// then changes from before to after at a time.
func then(before latency, at time.Duration, after latency) latency {
	return func(since time.Duration, r *rand.Rand) time.Duration {
		if since < at {
			return before(since, r)
		}
		return after(since, r)
	}
}

// hangs answers nothing from one time to another.
func hangs(l latency, from, to time.Duration) latency {
	return then(then(l, from, func(time.Duration, *rand.Rand) time.Duration { return hanging }), to, l)
}

// caller is the ctx of a simulated call: its deadline, if it has one, is in the
// world's time, and gone is what it says once it has passed or the caller has left.
type caller struct {
	context.Context
	deadline int64
	gone     error
}

// epoch is a moment of which both the time and the clock's reading are known.
var epoch = time.Now()

func (c *caller) Deadline() (time.Time, bool) {
	if c.deadline == 0 {
		return time.Time{}, false
	}
	return epoch.Add(time.Duration(c.deadline - clock.At(epoch))), true
}

func (c *caller) Err() error { return c.gone }
