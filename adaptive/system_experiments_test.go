package adaptive

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stripe"
)

// E10: the load goes from 50 to 150 % of what 16 workers can do (1600 calls a second), and
// back after 40 s. Refusing a share of the calls by the delay in the queue keeps nine
// tenths of the workers' output and more; the CPU tells the same some seconds later, and
// a hard rule on the CPU swings between all and nothing. The figures are the calls a
// second that were answered within 200 ms.
func TestSystem_E10_LoadStep(t *testing.T) {
	const capacity = 1600
	t.Attr("columns", "guard | 50 %: 0–10 s | 150 %: 10–20 s | 20–30 s | 30–40 s | 40–50 s | 50 %: 50–60 s")
	run := func(name string, every, tau time.Duration, opts ...SystemOption) []span10 {
		s := newServer(t, 16, mean10, opts...)
		s.every, s.tau = every, tau
		s.arriveAt(step(capacity/2, 10*time.Second, capacity*3/2, 50*time.Second, capacity/2))
		s.run(time.Minute - 1)
		cells := []string{name}
		for _, span := range s.spans {
			cells = append(cells, fmt.Sprint((span.good+5)/10))
		}
		row(t, cells...)
		return s.spans
	}
	none := run("none", tickSystem, time.Second)
	assert.Less(t, none[2].good, capacity*10/20, "without a System the queue takes all")

	delay := run("queue delay, proportional", tickSystem, time.Second, WithQueueDelay(5*ms))
	for i := 1; i < 5; i++ {
		assert.GreaterOrEqual(t, delay[i].good, capacity*10*9/10, "the delay: good calls in ten seconds, %d", i)
	}
	assert.Zero(t, delay[0].refused, "at half load nobody is refused")
	assert.GreaterOrEqual(t, delay[5].good, delay[5].asked*95/100, "it lets go")

	// A CPU says 100 %, whether the load is a little too high or far.
	cpu := run("CPU 90 %, proportional", tickSystem, time.Second, WithCPU(0.9))
	assert.Less(t, cpu[1].good, capacity*10/5, "the CPU is late")
	assert.Greater(t, cpu[3].good, capacity*10*8/10, "but gets there")

	// https://github.com/alibaba/Sentinel/issues/1206: a hard rule on the CPU of the last
	// second blocks all, then nothing.
	hard := run("CPU 80 % of the last second, hard", time.Second, 0, WithMode(Hard), WithCPU(0.8))
	_, deviation := hard[3].utilisation()
	assert.Greater(t, deviation, 0.4, "see-saw")
	assert.Less(t, hard[3].good, capacity*10/2)

	bbr := run("CPU 80 %, BBR", tickSystem, time.Second, WithMode(BBR), WithCPU(0.8))
	assert.Greater(t, bbr[1].good, capacity*10*7/10, "BBR needs no time to find out how much")
}

// https://github.com/alibaba/Sentinel/issues/1206, as it should be: for a minute the
// utilisation hardly moves.
func TestSystem_Sentinel1206_Proportional(t *testing.T) {
	s := newServer(t, 16, mean10, WithCPU(0.8))
	s.arriveAt(step(800, 0, 2400, 100*time.Second, 0))
	s.run(89 * time.Second)
	for i := 2; i < 8; i++ {
		mean, deviation := s.spans[i].utilisation()
		assert.InDelta(t, 0.8, mean, 0.03, "span %d", i)
		assert.Less(t, deviation, 0.1, "span %d", i)
	}
}

// E11: at 150 % of what the workers can do, with 30, 50 and 20 % of the calls of priority
// P0, P1 and P2, a System refuses P2 first, then P1, and P0 not at all.
func TestSystem_E11_Priorities(t *testing.T) {
	s := newServer(t, 16, mean10, WithQueueDelay(5*ms))
	s.ctx = func() context.Context {
		p := sluice.P1
		switch u := s.rand.Float64(); {
		case u < 0.3:
			p = sluice.P0
		case u < 0.5:
			p = sluice.P2
		}
		return sluice.WithPriority(context.Background(), p)
	}
	s.arriveAt(step(2400, 0, 2400, time.Hour, 0))
	s.run(59 * time.Second)
	var asked, refused [classes]int
	for _, span := range s.spans[1:] {
		for class := range asked {
			asked[class] += span.askedBy[class]
			refused[class] += span.refusedBy[class]
		}
		assert.GreaterOrEqual(t, span.good, 1600*9*9/10)
	}
	share := func(class int) float64 { return float64(refused[class]) / float64(asked[class]) }
	t.Attr("columns", "priority | calls | refused, %")
	for class := range asked {
		row(t, fmt.Sprintf("P%d", class), fmt.Sprint(asked[class]), percent(share(class)))
	}
	assert.LessOrEqual(t, share(0), 0.001, "P0")
	assert.InDelta(t, 0.33, share(1), 0.08, "P1")
	assert.Greater(t, share(2), 0.85, "P2 goes first")
}

// The users' exercise: CPU 0.8, 5 000 calls a second, 300 under way. Which one fires
// first depends on what the calls need; refusals and the snapshot say it.
func TestSystem_WhichRuleFiresFirst(t *testing.T) {
	for name, c := range map[string]struct {
		workers int
		service time.Duration // each call takes that long, of which
		compute float64       // that share is spent on one of the 16 CPUs
		first   Signal
	}{
		// 16 CPUs ÷ 2.9 ms are full at 5 500 calls a second, and 0.8 of them at 4 400.
		"calls that compute": {1000, 2900 * time.Microsecond, 1, CPU},
		// CPUs are at a tenth when 5 000 calls a second come, and 50 are under way.
		"short calls": {1000, 10 * ms, 0.02, EntryQPS},
		// 300 are under way at 1 500 calls a second.
		"calls that wait": {1000, 200 * ms, 0.01, Concurrency},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, c.workers, lognormal(c.service, 0.1), WithCPU(0.8), WithEntryQPS(5000), WithConcurrency(300))
			s.system.tick(s.now, sight{})
			busy := smoothed{tau: time.Second}
			var m moment
			m.at = s.now
			var watch func()
			watch = func() { // instead of the server's own look: its workers are not CPUs
				busy.add(s.now, min(s.utilisation(&m)*float64(c.workers)*c.compute/16, 1))
				s.system.tick(s.now, sight{cpu: busy.read(), cores: 16})
				s.after(tickSystem, watch)
			}
			s.every = time.Hour
			s.after(tickSystem, watch)
			var refusal *OverloadError
			s.arriveAt(func(since time.Duration) float64 {
				if _, err := s.system.Allow(context.Background()); err != nil && refusal == nil {
					require.ErrorAs(t, err, &refusal)
					snap := s.system.snapshot(s.now)
					assert.Equal(t, c.first, snap.Cause)
					assert.Equal(t, c.first, snap.First)
					assert.Equal(t, err.Error(), snap.Refusing)
					t.Log(since, err)
				} else if err == nil {
					s.system.passed[stripe.Index()].entered.Add(-1) // it was only asked
				}
				return 100 + 200*since.Seconds() // 200 more each second
			})
			for i := 1; i < 35 && refusal == nil; i++ {
				s.run(time.Duration(i) * time.Second)
			}
			require.NotNil(t, refusal, "nothing fired")
			assert.Equal(t, c.first, refusal.Signal())
			assert.Greater(t, refusal.Value(), refusal.Threshold())
			assert.Greater(t, refusal.Probability(), 0.0)
		})
	}
}

// A high load with few calls under way comes from elsewhere, or from waiting for a
// disk: refusing calls would not lower it.
func TestSystem_Load1AloneNeverRefuses(t *testing.T) {
	for _, mode := range []SystemMode{Hard, BBR, Proportional} {
		s := newServer(t, 16, mean10, WithMode(mode), WithLoad1(Auto))
		s.load = 64 // at 4 cores
		s.arriveAt(step(400, 0, 400, time.Hour, 0))
		s.run(59 * time.Second)
		for _, span := range s.spans {
			assert.Zero(t, span.refused, mode)
		}

		// With many calls under way, it is their doing.
		s = newServer(t, 16, mean10, WithMode(mode), WithLoad1(Auto))
		s.load = 64
		s.arriveAt(step(800, 10*time.Second, 2400, time.Hour, 0))
		s.run(29 * time.Second)
		assert.Greater(t, s.spans[2].refused, s.spans[2].asked/5, mode)
	}
}

// E13: for a minute, a third of the workers is left. What the System refuses is no
// failure: a breaker that takes it for one adds an outage to the brownout. The figures are
// the percentage of calls that were answered in time; a third is what can be.
func TestSystem_E13_Brownout(t *testing.T) {
	t.Attr("columns", "guards | answered, %")
	run := func(name string, guarded, refusalsFail, breaking bool) float64 {
		var opts []SystemOption
		if guarded {
			// With five workers chance alone lets calls wait for half a service time, so the
			// target is longer.
			opts = append(opts, WithQueueDelay(20*ms))
		}
		s := newServer(t, 16, mean10, opts...)
		s.at(t0+int64(10*time.Second), func() { s.workers = 5 })
		var openUntil int64
		var calls, failures int
		good := 0
		var each func()
		each = func() { // half of at least 20 calls in a second: open for 5 s
			if breaking && calls >= 20 && failures*2 >= calls {
				openUntil = s.now + int64(5*time.Second)
			}
			calls, failures = 0, 0
			s.after(time.Second, each)
		}
		s.after(time.Second, each)
		ask := func() {
			if s.now < openUntil {
				return
			}
			before := s.span().refused
			s.call()
			calls++
			if s.span().refused > before && refusalsFail {
				failures++
			}
		}
		var arrive func()
		arrive = func() {
			s.after(time.Duration(s.rand.ExpFloat64()/1500*float64(time.Second)), func() { ask(); arrive() })
		}
		arrive()
		s.run(69 * time.Second)
		for _, span := range s.spans[2:6] {
			good += span.good
		}
		row(t, name, percent(float64(good)/40/1500))
		return float64(good) / 40 / 1500
	}
	const physical = 5.0 / 16 * 1600 / 1500 // a third
	assert.Less(t, run("none", false, false, false), 0.02, "nothing: all wait for too long")
	alone := run("System", true, false, false)
	assert.Greater(t, alone, physical*0.9, "the System")
	assert.InDelta(t, alone, run("System, and a breaker that ignores refusals", true, false, true), 0.01, "with a breaker that ignores refusals")
	assert.Less(t, run("System, and a breaker that counts refusals as failures", true, true, true), physical*0.7, "with one that counts them")
}
