package adaptive

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice/internal/waitq"
)

// newTestLimiter returns a Limiter that begins at now.
func newTestLimiter(t testing.TB, w *world, opts ...LimiterOption) *Limiter {
	t.Helper()
	s := newLimiterSettings()
	s.apply(opts)
	require.NoError(t, s.check())
	return newLimiter("backend", &s.LimiterConfig, s.hooks.keep(), w.rand.Uint32, w.now)
}

// A guarded server has workers and a queue without an end in front of them; a Limiter
// decides what comes in, and who waits for that.
type guarded struct {
	*world
	limiter *Limiter
	admit   func() bool // instead of the Limiter, if not nil
	settled func(queued time.Duration)
	workers int
	service latency
	ctx     func() context.Context // of the next call
	timeout time.Duration          // of callers, 0 for none

	// line is those that wait for leave. A Semaphore makes goroutines wait; here is its
	// queue alone, of the same policy, in front of the same places.
	line waitq.Queue[*visit]

	queue   []*visit // admitted, and waiting for a worker
	working int

	phases []*guardedPhase
}

// A visit is one call.
type visit struct {
	waitq.Entry[*visit]
	ctx      context.Context
	class    int   // for the account; in line it may be another
	came     int64 // to the Limiter
	admitted int64
	over     bool // timed out
}

// A guardedPhase is what happened to the calls that came in a part of an experiment.
type guardedPhase struct {
	from, to       time.Duration
	asked, refused [classes]int
	done           int
	took           []time.Duration // from coming to the answer
	limits         []int           // as of each call
}

func (p *guardedPhase) all(of [classes]int) int { return of[0] + of[1] + of[2] }

// refusedShare is the share of all calls that was refused.
func (p *guardedPhase) refusedShare() float64 {
	return float64(p.all(p.refused)) / float64(max(1, p.all(p.asked)))
}

// rate is how many a second were answered.
func (p *guardedPhase) rate() float64 { return float64(p.done) / (p.to - p.from).Seconds() }

// quantile is that of how long calls took, waiting and all.
func (p *guardedPhase) quantile(q float64) time.Duration {
	if len(p.took) == 0 {
		return 0
	}
	slices.Sort(p.took)
	return p.took[min(int(q*float64(len(p.took))), len(p.took)-1)]
}

// limit is the mean limit.
func (p *guardedPhase) limit() float64 {
	sum := 0
	for _, l := range p.limits {
		sum += l
	}
	return float64(sum) / float64(max(1, len(p.limits)))
}

func newGuarded(t testing.TB, seed uint64, workers int, service latency, opts ...LimiterOption) *guarded {
	t.Helper()
	g := &guarded{world: newWorld(seed), workers: workers, service: service, ctx: context.Background}
	g.limiter = newTestLimiter(t, g.world, opts...)
	c := g.limiter.Config()
	g.line.SetPolicy(c.policy())
	return g
}

func (g *guarded) phase(from, to time.Duration) *guardedPhase {
	p := &guardedPhase{from: from, to: to}
	g.phases = append(g.phases, p)
	return p
}

func (g *guarded) in(at int64, do func(*guardedPhase)) {
	for _, p := range g.phases {
		if since := time.Duration(at - t0); p.from <= since && since < p.to {
			do(p)
		}
	}
}

// arriveAt lets calls come at a rate that depends on the time.
func (g *guarded) arriveAt(rate func(time.Duration) float64) {
	g.after(time.Duration(g.rand.ExpFloat64()/rate(g.since())*float64(time.Second)), func() {
		g.call()
		g.arriveAt(rate)
	})
}

// call is one that comes.
func (g *guarded) call() {
	v := &visit{ctx: g.ctx(), came: g.now}
	v.Owner, v.class = v, classOf(v.ctx)
	g.in(g.now, func(p *guardedPhase) {
		p.asked[v.class]++
		p.limits = append(p.limits, g.limiter.Limit())
	})
	if g.admit != nil {
		if g.admit() {
			g.enter(v)
		} else {
			g.refused(v)
		}
		return
	}
	if g.line.Len() == 0 && g.limiter.places.TryAcquire(1) {
		g.enter(v)
		return
	}
	class := middleClass
	if g.limiter.plan.Load().ranked {
		class = v.class
	}
	out := g.line.Push(&v.Entry, class, g.now)
	if out != nil {
		g.refused(out.Owner)
	}
	if out != &v.Entry {
		g.at(v.Deadline(), func() {
			if v.Queued() {
				g.line.Remove(&v.Entry)
				g.refused(v)
			}
		})
	}
	g.serve()
}

func (g *guarded) refused(v *visit) { g.in(v.came, func(p *guardedPhase) { p.refused[v.class]++ }) }

// serve lets those in that wait, while there are places.
func (g *guarded) serve() {
	for {
		e := g.line.Next(g.now)
		if e == nil || !g.limiter.places.TryAcquire(1) {
			return
		}
		g.line.Serve(e)
		g.enter(e.Owner)
	}
}

// enter is a call that has leave.
func (g *guarded) enter(v *visit) {
	v.admitted = g.now
	g.queue = append(g.queue, v)
	if g.timeout > 0 {
		g.after(g.timeout, func() {
			if !v.over {
				v.over = true
				g.limiter.settle(v.ctx, v.admitted, g.now, 0, false)
			}
		})
	}
	g.work()
}

// work lets idle workers begin.
func (g *guarded) work() {
	for g.working < g.workers && len(g.queue) > 0 {
		v := g.queue[0]
		g.queue = g.queue[1:]
		g.working++
		if g.settled != nil {
			g.settled(time.Duration(g.now - v.admitted))
		}
		g.after(g.service(g.since(), g.rand), func() {
			g.working--
			if g.admit == nil {
				g.limiter.done(v.ctx, v.admitted, g.now, nil)
			}
			g.in(v.came, func(p *guardedPhase) { p.took = append(p.took, time.Duration(g.now-v.came)) })
			g.in(g.now, func(p *guardedPhase) { p.done++ })
			g.serve()
			g.work()
		})
	}
}
