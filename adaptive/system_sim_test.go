package adaptive

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// newSystem returns a System of which only the given rules are on.
func newSystem(t testing.TB, opts ...SystemOption) *System {
	t.Helper()
	s, err := NewSystem("gateway", append([]SystemOption{WithQueueDelay(0), WithLoad1(0)}, opts...)...)
	require.NoError(t, err)
	return s
}

// A server has workers and a queue without an end in front of them. A System decides
// what comes in.
type server struct {
	*world
	system  *System
	workers int
	service latency
	ctx     func() context.Context // of the next call
	every   time.Duration          // between two looks
	load    float64                // load1, if not negative
	tau     time.Duration          // of the CPU's average; 0 is none

	queue    []int64 // when they came
	working  int
	worked   time.Duration // by all workers, as of workedAt
	workedAt int64
	cpu      smoothed
	ticked   moment // of the System
	looked   moment // for the spans

	spans []span10
}

// A moment is when work was last measured, and how much had been done.
type moment struct {
	at   int64
	work time.Duration
}

// A span10 is what happened in ten seconds.
type span10 struct {
	asked, refused, good, done int
	refusedBy                  [classes]int
	askedBy                    [classes]int
	// sum and squares of the utilisation in each look.
	looks, sum, squares float64
}

func (s span10) utilisation() (mean, deviation float64) {
	mean = s.sum / s.looks
	return mean, math.Sqrt(max(s.squares/s.looks-mean*mean, 0))
}

func newServer(t testing.TB, workers int, service latency, opts ...SystemOption) *server {
	s := &server{
		world: newWorld(1), system: newSystem(t, opts...), workers: workers, service: service,
		ctx: context.Background, every: tickSystem, load: -1, tau: time.Second,
	}
	s.workedAt, s.ticked.at, s.looked.at = s.now, s.now, s.now
	s.cpu.tau = s.tau
	s.system.draw = s.rand.Uint32
	s.after(tickSystem, s.look)
	return s
}

func (s *server) span() *span10 {
	for len(s.spans) <= int(s.since()/(10*time.Second)) {
		s.spans = append(s.spans, span10{})
	}
	return &s.spans[len(s.spans)-1]
}

// call is one that comes in.
func (s *server) call() {
	ctx := s.ctx()
	class := classOf(ctx)
	now := s.span()
	now.asked++
	now.askedBy[class]++
	if err := s.system.enter(ctx); err != nil {
		now.refused++
		now.refusedBy[class]++
		return
	}
	s.queue = append(s.queue, s.now)
	s.work()
}

// work lets idle workers begin.
func (s *server) work() {
	for s.working < s.workers && len(s.queue) > 0 {
		came := s.queue[0]
		s.queue = s.queue[1:]
		s.system.ObserveDelay(time.Duration(s.now - came))
		s.count()
		s.working++
		s.after(s.service(s.since(), s.rand), func() {
			s.count()
			s.working--
			s.system.settle(came, s.now, sluice.Success)
			s.span().done++
			if s.now-came < int64(200*ms) {
				s.span().good++
			}
			s.work()
		})
	}
}

// count adds up what the workers have done.
func (s *server) count() {
	s.worked += time.Duration(s.now-s.workedAt) * time.Duration(s.working)
	s.workedAt = s.now
}

// utilisation is that of the workers since m, and moves it on.
func (s *server) utilisation(m *moment) float64 {
	s.count()
	busy := float64(s.worked-m.work) / float64(s.now-m.at) / float64(s.workers)
	*m = moment{s.now, s.worked}
	return busy
}

// look measures, and is a tick of the System if it is time for one.
func (s *server) look() {
	busy, span := s.utilisation(&s.looked), s.span()
	span.looks, span.sum, span.squares = span.looks+1, span.sum+busy, span.squares+busy*busy
	if s.now >= s.ticked.at+int64(s.every) {
		busy := s.utilisation(&s.ticked)
		s.cpu.add(s.now, busy)
		seen := sight{cpu: s.cpu.read(), cores: 4}
		if s.tau == 0 {
			seen.cpu = known(busy)
		}
		if s.load >= 0 {
			seen.load1 = known(s.load)
		}
		s.system.tick(s.now, seen)
	}
	s.after(tickSystem, s.look)
}

// arriveAt lets calls come at a rate that depends on the time.
func (s *server) arriveAt(rate func(time.Duration) float64) {
	s.after(time.Duration(s.rand.ExpFloat64()/rate(s.since())*float64(time.Second)), func() {
		s.call()
		s.arriveAt(rate)
	})
}

// step is a rate that changes from one moment to the next.
func step(before float64, at time.Duration, after float64, until time.Duration, then float64) func(time.Duration) float64 {
	return func(since time.Duration) float64 {
		switch {
		case since < at:
			return before
		case since < until:
			return after
		}
		return then
	}
}

// mean10 is lognormal with a mean of 10 ms, which 16 workers serve 1 600 times a second.
var mean10 = lognormal(time.Duration(10*float64(ms)*math.Exp(-0.125)), 0.5)
