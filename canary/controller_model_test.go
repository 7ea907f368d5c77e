package canary

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A watcher knows what a ramp may do, and nothing of how it does it.
type watcher struct {
	t        *testing.T
	r        *rollout
	ladder   []Weight
	gate     Weight
	hold     time.Duration
	weight   Weight
	began    int64 // when the step began
	approved bool
	seen     int
}

// watch looks at what has happened since the last time; now is when it did.
func (w *watcher) watch() {
	for _, e := range w.r.events[w.seen:] {
		w.seen++
		if e.Kind != ControllerStarted && e.Kind != ControllerChanged {
			require.Equal(w.t, w.weight, e.From, "%v: what one event ends with the next begins with", e.Kind)
		}
		switch e.Kind {
		case ControllerStepped:
			i := slices.IndexFunc(w.ladder, func(step Weight) bool { return step > e.From })
			require.Equal(w.t, w.ladder[i], e.To, "the smallest step above")
			require.True(w.t, e.To != w.gate || w.approved, "through a closed gate")
			require.True(w.t, e.From == 0 || w.r.now-w.began >= int64(w.hold), "before its time")
			require.True(w.t, e.Verdict.Result == Pass || e.From == 0, "without a verdict")
			require.Equal(w.t, e.To-e.From, e.Moved.Of("v1", "v2"))
			require.Equal(w.t, e.To-e.From, e.Moved.Moved(), "and nobody else")
		case ControllerReverted:
			require.Zero(w.t, e.To)
		case ControllerDone:
			require.Equal(w.t, e.From, e.To)
			require.Equal(w.t, Pass, e.Verdict.Result)
		}
		if e.To != w.weight || e.Kind == ControllerStarted {
			w.began, w.approved = w.r.now, false
		}
		w.weight = e.To
	}
	s := w.r.c.Status()
	require.Equal(w.t, w.weight, s.Weight)
	plan := w.r.p.Plan()
	if s.State == ControllerRolledBack && plan.rolledBack("v2") != nil { // nobody has readmitted it
		require.Zero(w.t, w.r.p.Share("v2"))
	}
}

// Whatever people do, in whatever order, a version goes up one listed step at a time, in
// its time, through open gates only, and down at once.
func TestController_DoesNothingElse(t *testing.T) {
	kinds := map[ControllerEventKind]int{}
	for seed := range uint64(runs(80)) {
		rng := rand.New(rand.NewPCG(seed, 16))
		r := newRollout(t, WithGate(Percent(50)), WithPromote(false), WithNoData(NoDataHold, time.Hour))
		w := &watcher{t: t, r: r, ladder: []Weight{Percent(1), Percent(10), Percent(50), All}, gate: Percent(50), hold: time.Minute}
		for range 60 {
			r.now += rng.Int64N(int64(time.Minute))
			switch rng.IntN(16) {
			case 0, 1:
				_ = r.p.Readmit("v2")
				_ = r.start("v2")
			case 2:
				if r.c.Approve() == nil {
					w.approved = true
				}
			case 3:
				_ = r.c.Pause("x")
			case 4, 5:
				_ = r.c.Resume()
			case 6:
				if rng.IntN(4) == 0 {
					_ = r.c.Abort("x")
				}
			case 7:
				if rng.IntN(4) == 0 {
					_ = r.p.SetWeights(map[string]Weight{"v2": Weight(rng.Uint32N(points + 1))})
				}
			case 8:
				if rng.IntN(4) == 0 {
					_ = r.p.Kill("x")
				}
			case 9:
				_ = r.p.Revive()
			case 10:
				if rng.IntN(4) == 0 {
					r.serve(1000, map[string]float64{"v2": 0.5})
				}
			default:
				r.serve(4000, nil)
			}
			w.watch()
			r.pass(time.Second)
			w.watch()
		}
		for _, e := range r.events {
			kinds[e.Kind]++
		}
	}
	t.Log(kinds)
	for _, k := range []ControllerEventKind{ControllerStarted, ControllerStepped, ControllerGated, ControllerHeld, ControllerResumed, ControllerChanged, ControllerReverted} {
		require.Positive(t, kinds[k], k)
	}
}
