package adaptive

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/metrics"
)

func TestSystem_ANilOneLetsAllPass(t *testing.T) {
	var s *System
	p, err := s.Allow(t.Context())
	require.NoError(t, err)
	p.Done(nil)
	p.Close()
	require.NoError(t, s.Do(t.Context(), func(context.Context) error { return nil }))
	_, err = sluice.Call(t.Context(), s, func(context.Context) (int, error) { return 1, nil })
	require.NoError(t, err)
	s.ObserveDelay(time.Second)
	assert.Empty(t, s.Name())
	assert.Zero(t, s.Config())
	assert.Zero(t, s.Snapshot())
	require.NoError(t, s.Update(DefaultSystemConfig()))
	s.Collect(func(metrics.Sample) bool { t.Error("a sample"); return true })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Run(ctx), context.Canceled)
}

func TestSystem_TellsAllThatIsWrong(t *testing.T) {
	_, err := NewSystem("", nil, WithMode(7), WithQueueDelay(-1), WithLoad1(math.NaN()), WithCPU(1), WithAvgRT(-1), WithEntryQPS(0.5),
		WithConcurrency(-1), WithCPUQuota(math.Inf(1)))
	for _, text := range []string{
		"the name is empty", "option 0 is nil", "Mode 7 is not one of hard, bbr, proportional", "QueueDelay -1ns", "Load1 NaN",
		"CPU 1 is not in [0, 1)", "AvgRT -1ns", "EntryQPS 0.5 is not 0, and not in [1, 1e9]", "Concurrency -1", "CPUQuota +Inf",
	} {
		assert.ErrorContains(t, err, text)
	}
	require.Error(t, SystemConfig{}.Validate(), "the zero Config")
	require.NoError(t, DefaultSystemConfig().Validate())
	for _, nan := range []func(*SystemConfig){
		func(c *SystemConfig) { c.CPU = math.NaN() }, func(c *SystemConfig) { c.EntryQPS = math.NaN() }, func(c *SystemConfig) { c.CPUQuota = math.NaN() },
	} {
		c := DefaultSystemConfig()
		nan(&c)
		assert.ErrorContains(t, c.Validate(), "NaN")
	}
}

func TestSystem_ConfigInJSON(t *testing.T) {
	c := DefaultSystemConfig()
	text, err := json.Marshal(c)
	require.NoError(t, err)
	assert.JSONEq(t, `{"mode":"proportional","queue_delay":"5ms","load1":"auto","cpu":0,"avg_rt":"0s","entry_qps":0,"concurrency":0,"cpu_quota":0}`, string(text))
	require.NoError(t, json.Unmarshal([]byte(`{"mode":"bbr","load1":8.5,"cpu":0.8,"entry_qps":5000,"concurrency":300}`), &c))
	assert.Equal(t, SystemConfig{Mode: BBR, QueueDelay: 5 * ms, Load1: 8.5, CPU: 0.8, EntryQPS: 5000, Concurrency: 300}, c)
	before := c
	err = json.Unmarshal([]byte(`{"mode":"soft","load1":"high","avg_rt":5,"qps":1}`), &c)
	for _, text := range []string{"mode", "hard, bbr, proportional", "load1", `"high" is not a number, and not "auto"`, "avg_rt", "qps"} {
		assert.ErrorContains(t, err, text)
	}
	assert.Equal(t, before, c)
}

func TestSystem_ConfigAndUpdate(t *testing.T) {
	s := newSystem(t, WithSystemConfig(SystemConfig{Mode: Hard, CPU: 0.8}))
	assert.Equal(t, SystemConfig{Mode: Hard, CPU: 0.8}, s.Config())
	require.ErrorContains(t, s.Update(SystemConfig{Mode: Hard, CPU: 2}), "CPU 2")
	s.tick(t0, sight{cpu: known(0.9)})
	require.Error(t, s.enter(t.Context()))
	require.NoError(t, s.Update(SystemConfig{Mode: Hard, CPU: 0.95}))
	s.tick(t0+1, sight{cpu: known(0.9)})
	require.NoError(t, s.enter(t.Context()))
}

// A step of a System's life: what it sees, how many calls are under way, and what
// it says to the next one.
type systemStep struct {
	seen     sight
	inFlight int64
	refused  Signal // 0: the call is admitted
}

func TestSystem_Steps(t *testing.T) {
	busy := sight{cpu: known(0.81)}
	for name, c := range map[string]struct {
		opts  []SystemOption
		steps []systemStep
	}{
		"unknown is not 0, nor too much": {
			[]SystemOption{WithMode(Hard), WithCPU(0.8), WithLoad1(1), WithQueueDelay(ms), WithAvgRT(ms)},
			[]systemStep{{sight{}, 0, 0}, {sight{}, 1e6, 0}},
		},
		"hard CPU": {
			[]SystemOption{WithMode(Hard), WithCPU(0.8)},
			[]systemStep{{sight{cpu: known(0.8)}, 0, 0}, {busy, 0, CPU}, {sight{}, 0, 0}},
		},
		"hard delay": {
			[]SystemOption{WithMode(Hard), WithQueueDelay(5 * ms)},
			[]systemStep{{sight{delay: known(0.005)}, 0, 0}, {sight{delay: known(0.0051)}, 0, QueueDelay}},
		},
		"hard concurrency": {
			[]SystemOption{WithMode(Hard), WithConcurrency(3)},
			[]systemStep{{sight{}, 2, 0}, {sight{}, 3, Concurrency}, {sight{}, 4, Concurrency}, {sight{}, 2, 0}},
		},
		"hard: what refuses all comes first": {
			[]SystemOption{WithMode(Hard), WithConcurrency(3), WithCPU(0.8)},
			[]systemStep{{busy, 3, CPU}, {sight{}, 3, Concurrency}},
		},
		// The system serves 100 calls a second, of 50 ms each: 5 at once.
		"BBR refuses what is beyond the capacity, while a trigger fires": {
			[]SystemOption{WithMode(BBR), WithCPU(0.8)},
			[]systemStep{{sight{cpu: known(0.7)}, 1000, 0}, {busy, 4, 0}, {busy, 5, CPU}, {busy, 1000, CPU}, {sight{}, 1000, 0}},
		},
		"BBR on delay": {
			[]SystemOption{WithMode(BBR), WithQueueDelay(5 * ms)},
			[]systemStep{{sight{delay: known(0.1)}, 4, 0}, {sight{delay: known(0.1)}, 5, QueueDelay}},
		},
		"load1 needs calls under way, in each mode": {
			[]SystemOption{WithMode(Hard), WithLoad1(2)},
			[]systemStep{{sight{load1: known(99)}, 7, 0}, {sight{load1: known(99)}, 30, Load1}, {sight{load1: known(2)}, 30, 0}},
		},
		"load1 by the cores": {
			[]SystemOption{WithMode(BBR), WithLoad1(Auto)},
			[]systemStep{{sight{load1: known(10), cores: 4}, 30, 0}, {sight{load1: known(10.1), cores: 4}, 30, Load1}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t, c.opts...)
			now := t0
			for range 20 { // two seconds
				for range 10 {
					require.NoError(t, s.enter(t.Context()))
					s.settle(now, now+int64(50*ms), sluice.Success)
				}
				now += int64(100 * ms)
				s.judge.traffic.add(now, s.counts())
			}
			for i, step := range c.steps {
				now += int64(2 * time.Second)
				s.passed[i%len(s.passed)].entered.Add(step.inFlight - s.underWay())
				s.tick(now, step.seen)
				err := s.enter(t.Context())
				if step.refused == 0 {
					require.NoError(t, err, "step %d", i)
					continue
				}
				var refusal *OverloadError
				require.ErrorAs(t, err, &refusal, "step %d", i)
				assert.Equal(t, step.refused, refusal.Signal(), "step %d", i)
				assert.Equal(t, step.inFlight, s.underWay(), "a refused call takes nothing")
			}
		})
	}
}

func TestSystem_HardQPS(t *testing.T) {
	s := newSystem(t, WithMode(Hard), WithEntryQPS(100))
	now, admitted := t0, 0
	for tick := range 50 {
		s.tick(now, sight{})
		for range 30 { // 300 a second
			if s.enter(t.Context()) == nil {
				admitted++
				s.settle(now, now, sluice.Success)
			}
		}
		now += int64(tickSystem)
		if tick == 9 {
			assert.Equal(t, 100, admitted, "in the first second")
		}
	}
	assert.Equal(t, 500, admitted, "in five seconds")
	assert.InDelta(t, 300, s.verdict.Load().findings[EntryQPS].value, 1, "the signal is what was asked for")
}

// https://github.com/alibaba/sentinel-golang/issues/364: a CPU that was not collected
// yet is -1 there, and passes for little. Here it is not known, as all is before Run.
func TestSystem_Sentinel364_UnknownBeforeRunAndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t, WithMode(Hard), WithConcurrency(1))
		for range 3 {
			require.NoError(t, s.enter(t.Context()), "no Run, no rule")
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		time.Sleep(time.Second)
		require.ErrorContains(t, s.Run(ctx), `system "gateway" has a Run already`)
		assert.True(t, s.Snapshot().Running)
		require.ErrorIs(t, s.enter(t.Context()), ErrOverload)
		stop := errors.New("stop")
		cancel(stop)
		require.ErrorIs(t, <-ended, stop)
		require.NoError(t, s.enter(t.Context()), "after Run nothing is known")
		assert.False(t, s.Snapshot().Running)
		assert.Empty(t, s.Snapshot().Signals)
		// The bubble fails if a goroutine is left.
	})
}

func TestSystem_RunTakesAnotherQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSystem(t)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = s.Run(ctx) }()
		time.Sleep(time.Second)
		c := s.Config()
		c.CPUQuota = 0.125
		require.NoError(t, s.Update(c))
		time.Sleep(time.Second)
		assert.Contains(t, s.Snapshot().CPUSource, "0.125 cores")
		cancel()
		synctest.Wait()
	})
}

// https://github.com/alibaba/Sentinel/issues/3138: a refusal of a system rule carried
// no rule, and what logged it failed.
func TestSystem_Sentinel3138_RefusalSaysWhy(t *testing.T) {
	s := newSystem(t, WithMode(Hard), WithCPU(0.8))
	s.tick(t0, sight{cpu: known(0.93)})
	_, err := s.Allow(t.Context())
	require.ErrorIs(t, err, ErrOverload)
	require.ErrorIs(t, err, sluice.ErrRejected)
	var refusal *OverloadError
	require.ErrorAs(t, err, &refusal)
	assert.Equal(t, CPU, refusal.Signal())
	assert.Equal(t, []float64{0.93, 0.8, 1}, []float64{refusal.Value(), refusal.Threshold(), refusal.Probability()})
	assert.EqualError(t, err, `system "gateway": cpu 93 %, threshold 80 %: 100 % of the calls are refused`)
	var rejection sluice.Rejection
	require.ErrorAs(t, err, &rejection)
	assert.Equal(t, []string{"gateway", "system", "cpu"}, []string{rejection.Resource(), rejection.Policy(), rejection.Reason()})
	assert.Zero(t, rejection.RetryAfter())
	assert.Equal(t, err.Error(), s.Snapshot().Refusing)

	share := &OverloadError{name: "x", signal: QueueDelay, value: 0.0123, threshold: 0.005, probability: 0.25}
	assert.EqualError(t, share, `system "x": queue_delay 12.3ms, threshold 5ms: 25 % of the calls are refused`)
	crowd := &OverloadError{name: "x", signal: Load1, value: 12, threshold: 10, probability: 1, capacity: 5}
	assert.EqualError(t, crowd, `system "x": load1 12, threshold 10: calls beyond 5 under way are refused`)
	beyond := &OverloadError{name: "x", signal: EntryQPS, value: 13990, threshold: 5000, probability: 1}
	assert.EqualError(t, beyond, `system "x": entry_qps 13990, threshold 5000: calls beyond it are refused`)
}

func TestSystem_Names(t *testing.T) {
	assert.Equal(t, "entry_qps", EntryQPS.String())
	assert.Equal(t, "Signal(9)", Signal(9).String())
	assert.Equal(t, "Signal(0)", Signal(0).String())
	assert.Equal(t, "SystemMode(0)", SystemMode(0).String())
}

func TestSystem_HowCallsEnd(t *testing.T) {
	gone, leave := context.WithCancel(t.Context())
	leave()
	down := errors.New("down")
	for name, c := range map[string]struct {
		end                       func(s *System)
		success, failure, ignored int64
	}{
		"done":           {func(s *System) { p, _ := s.Allow(t.Context()); p.Done(nil); p.Done(down); p.Close() }, 1, 0, 0},
		"failed":         {func(s *System) { p, _ := s.Allow(t.Context()); p.Done(down); p.Settle(sluice.Success) }, 0, 1, 0},
		"refused inside": {func(s *System) { p, _ := s.Allow(t.Context()); p.Done(sluice.ErrRejected) }, 0, 0, 1},
		"settled":        {func(s *System) { p, _ := s.Allow(t.Context()); p.Settle(0) }, 1, 0, 0},
		"throttled":      {func(s *System) { p, _ := s.Allow(t.Context()); p.Settle(sluice.Throttled) }, 0, 1, 0},
		"no outcome":     {func(s *System) { p, _ := s.Allow(t.Context()); p.Settle(99) }, 0, 0, 1},
		"cancelled":      {func(s *System) { p, _ := s.Allow(t.Context()); p.Cancel(); p.Close() }, 0, 0, 1},
		"closed":         {func(s *System) { p, _ := s.Allow(t.Context()); p.Close(); p.Done(nil) }, 0, 1, 0},
		"ctx was done":   {func(s *System) { _, err := s.Allow(gone); assert.ErrorIs(t, err, context.Canceled) }, 0, 0, 0},
		"Do": {func(s *System) {
			assert.ErrorIs(t, s.Do(t.Context(), func(context.Context) error { return down }), down)
		}, 0, 1, 0},
		"Do, panic": {func(s *System) {
			assert.Panics(t, func() { _ = s.Do(t.Context(), func(context.Context) error { panic(1) }) })
		}, 0, 1, 0},
		"Call":        {func(s *System) { _, _ = sluice.Call(t.Context(), s, nothingAtAll) }, 1, 0, 0},
		"Call, panic": {func(s *System) { assert.Panics(t, func() { _, _ = sluice.Call(t.Context(), s, panics) }) }, 0, 1, 0},
		"left, then lost": {func(s *System) {
			ctx, leave := context.WithCancel(t.Context())
			p, _ := s.Allow(ctx)
			leave()
			p.Close()
		}, 0, 0, 1},
		"Goexit": {func(s *System) {
			var w sync.WaitGroup
			w.Go(func() { _ = s.Do(t.Context(), func(context.Context) error { runtime.Goexit(); return nil }) })
			w.Wait()
		}, 0, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSystem(t)
			c.end(s)
			snap := s.Snapshot()
			assert.Equal(t, []int64{c.success, c.failure, c.ignored, 0}, []int64{snap.Totals.Success, snap.Totals.Failure, snap.Totals.Ignored, snap.InFlight})
		})
	}
}

func nothingAtAll(context.Context) (int, error) { return 0, nil }

func panics(context.Context) (int, error) { panic("no") }

// Law 5: what an inner guard refused in no time says nothing about how long calls take.
func TestSystem_Law5_RefusalsInsideAreNoSample(t *testing.T) {
	s := newSystem(t, WithAvgRT(10*ms))
	s.tick(t0, sight{})
	for range 9 {
		s.settle(0, 0, sluice.Classify(t.Context(), sluice.ErrRejected))
	}
	s.settle(t0, t0+int64(40*ms), sluice.Success)
	s.tick(t0+int64(time.Second), sight{})
	assert.InDelta(t, 0.04, s.verdict.Load().findings[AvgRT].value, 1e-9)
}

func TestSystem_Law12_AllocatesNothing(t *testing.T) {
	ctx := sluice.WithPriority(t.Context(), sluice.P2)
	s := newSystem(t, WithCPU(0.8), WithMode(Hard), WithEntryQPS(1e6), WithConcurrency(9))
	calm := newSystem(t)
	for name, call := range map[string]func(){
		"Allow": func() { p, _ := calm.Allow(ctx); p.Done(nil) },
		"rules": func() { p, _ := s.Allow(ctx); p.Settle(sluice.Success) },
		"Do":    func() { _ = s.Do(ctx, func(context.Context) error { return nil }) },
		"Call":  func() { _, _ = sluice.Call(ctx, s, nothingAtAll) },
	} {
		s.tick(t0, sight{})
		assert.Zero(t, testing.AllocsPerRun(200, call), name)
	}
	part := newSystem(t, WithCPU(0.1))
	part.tick(t0, sight{cpu: known(1)})
	part.draw = func() uint32 { return 0 }
	s.tick(t0, sight{cpu: known(1)})
	for name, s := range map[string]*System{"all": s, "a share": part} {
		_, err := s.Allow(ctx)
		require.ErrorIs(t, err, ErrOverload)
		assert.Zero(t, testing.AllocsPerRun(200, func() { _, _ = s.Allow(ctx) }), name)
	}
}

// pry is a ctx that tells when a value is looked for.
type pry struct {
	context.Context
	looked int
}

func (p *pry) Value(key any) any { p.looked++; return p.Context.Value(key) }

func TestSystem_Law12_LooksAtThePriorityOnlyBeforeItRefuses(t *testing.T) {
	s := newSystem(t, WithCPU(0.5))
	s.tick(t0, sight{cpu: known(0.75)})
	p := s.verdict.Load().probability
	require.InDelta(t, 0.15, p, 1e-9)
	ctx := &pry{Context: t.Context()}
	s.draw = func() uint32 { return math.MaxUint32 }
	require.NoError(t, s.enter(ctx))
	assert.Zero(t, ctx.looked)
	s.draw = func() uint32 { return 0 }
	require.Error(t, s.enter(ctx))
	assert.Equal(t, 1, ctx.looked)
}

// Whatever is asked at once: what was admitted has ended, nothing stays taken, and no
// more than the bound were under way.
func TestSystem_Conservation(t *testing.T) {
	s := newSystem(t, WithMode(Hard), WithConcurrency(3))
	s.tick(t0, sight{})
	const goroutines, rounds = 8, 500
	var w sync.WaitGroup
	var inside, tooMany atomic.Int64
	for range goroutines {
		w.Go(func() {
			for i := range rounds {
				p, err := s.Allow(t.Context())
				if err != nil {
					continue
				}
				if inside.Add(1) > 3 {
					tooMany.Add(1)
				}
				if i%3 == 0 {
					runtime.Gosched()
				}
				inside.Add(-1)
				p.Settle([]sluice.Outcome{sluice.Success, sluice.Failure, sluice.Ignored}[i%3])
			}
		})
	}
	for range 20 {
		s.Snapshot()
		runtime.Gosched()
	}
	w.Wait()
	c := s.counts()
	assert.Zero(t, tooMany.Load())
	assert.Zero(t, c.inFlight())
	assert.Equal(t, int64(goroutines*rounds), c.asked(), "admitted or refused")
}

func TestSystem_SnapshotAndCollect(t *testing.T) {
	s := newSystem(t, WithCPU(0.8), WithAvgRT(time.Second))
	s.tick(t0, sight{})
	p, _ := s.Allow(t.Context())
	p.Done(nil)
	s.tick(t0+int64(time.Second), sight{cpu: known(1), cpuFinding: cpuFinding{source: "host", problem: errors.New("odd")}})
	s.draw = func() uint32 { return 0 }
	_, err := s.Allow(t.Context())
	require.Error(t, err)
	snap := s.View().(SystemSnapshot)
	assert.Equal(t, CPU, snap.Cause)
	assert.Equal(t, CPU, snap.First)
	assert.InDelta(t, 0.3*0.25+0.5*0.25, snap.Probability, 1e-9)
	assert.Equal(t, err.Error(), snap.Refusing)
	assert.Equal(t, "odd", snap.CPUProblem)
	text, err := json.Marshal(snap)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"refused":{"avg_rt":0,"concurrency":0,"cpu":1,"entry_qps":0,"load1":0,"queue_delay":0}`)

	values := map[string]float64{}
	s.Collect(func(m metrics.Sample) bool {
		require.NoError(t, m.Desc.Validate())
		key := m.Desc.Name
		for _, label := range m.Labels[1:] {
			key += " " + label
		}
		values[key] = m.Value
		return true
	})
	assert.Equal(t, 1.0, values["system_calls success"])
	assert.Equal(t, 1.0, values["rejected system cpu"])
	assert.Equal(t, 1.0, values["system_above cpu"])
	assert.Equal(t, 1.0, values["system_cpu_ratio"])
	assert.NotContains(t, values, "system_load1", "it is not known")
	s.Collect(func(metrics.Sample) bool { return false })
}
