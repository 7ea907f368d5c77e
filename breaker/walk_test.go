package breaker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// After any operations at random the breaker is what the model is. Counters that
// drift, go below zero or are forgotten in a reset
// (https://github.com/resilience4j/resilience4j/issues/1017,
// https://github.com/resilience4j/resilience4j/issues/1263,
// https://github.com/resilience4j/resilience4j/issues/1342) would show here.
func TestT29_RandomOperationsAgreeWithTheModel(t *testing.T) {
	steps, each := 1_000_000, 1000
	if testing.Short() {
		steps, each = 10_000, 200
	}
	kinds := map[string]int{}
	for seed := range uint64(steps / each) {
		r := rand.New(rand.NewPCG(seed, 29))
		w := newWalk(t, fmt.Sprintf("seed %d", seed), func(n int) int { return r.IntN(n) })
		for range each {
			w.step()
		}
		w.end()
		for name, n := range w.kinds {
			kinds[name] += n
		}
	}
	for _, o := range operations {
		require.Positive(t, kinds[o.name], o.name)
	}
}

// A walk does the same to a breaker and to its model, and compares them after each
// step. It keeps its own book of what was admitted and how it ended.
type walk struct {
	t     testing.TB
	name  string
	pick  func(n int) int // a number below n
	b     *Breaker
	m     *model
	now   int64
	out   []*walkCall
	kinds map[string]int // how often each operation was done
	log   []string

	heard   []Event
	from    State // where the last event led to
	refused map[string]int64
	book    struct {
		admitted, settled, stale, shadowed int64
		outcomes                           [sluice.Throttled + 1]int64
	}
	ramp struct { // calls that asked for their share of it
		asked, passed int
		stay          int
		share         float64
	}
}

// walkCall is a call in flight.
type walkCall struct {
	p     *Permit
	who   *caller
	start int64
	seat  *modelSeat // nil if it feeds nothing
}

// tripError asks to be left alone.
type tripError struct{ d time.Duration }

func (tripError) Error() string { return "leave me alone" }

func newWalk(t testing.TB, name string, pick func(int) int) *walk {
	w := &walk{t: t, name: name, pick: pick, now: t0, from: Closed, kinds: map[string]int{}, refused: map[string]int64{}}
	c := w.config()
	w.m = newModel(c)
	w.logf("New %+v", c)
	var err error
	w.b, err = New("payments", WithConfig(c), WithOnChange(func(e Event) { w.heard = append(w.heard, e) }),
		WithClassifier(func(_ context.Context, err error) (v Verdict) {
			var trip tripError
			if errors.As(err, &trip) {
				v.TripFor = trip.d
			}
			return v
		}))
	require.NoError(t, err, name)
	return w
}

func draw[T any](w *walk, of ...T) T { return of[w.pick(len(of))] }

// config is a configuration of any kind. The rules have no limit that another
// might share a window with.
func (w *walk) config() Config {
	c := DefaultConfig()
	c.Jitter = 0
	c.Rules = draw(w,
		[]Rule{{Kind: ErrorRatio, Ratio: 0.5}},
		[]Rule{{Kind: ErrorCount, Count: 3}, {Kind: ConsecutiveFailures, Count: 5, OpenFor: 7 * time.Second}},
		[]Rule{{Kind: SlowCallRatio, Ratio: 0.4, SlowerThan: time.Second}},
		[]Rule{{Kind: SlowCallRatio, Ratio: 1, SlowerThan: 200 * time.Millisecond, MinRequests: 3}, {Kind: ErrorRatio, Ratio: 0.3, OpenFor: 20 * time.Second}},
		[]Rule{{Kind: ErrorRatio, Ratio: 0.333}, {Kind: ErrorCount, Count: 6, Over: time.Minute}, {Kind: SlowCallRatio, Ratio: 0.5, SlowerThan: 2 * time.Second, Over: 30 * time.Second, MinRequests: 2}},
		[]Rule{{Kind: ConsecutiveFailures, Count: 2}},
	)
	return w.tuned(c)
}

// tuned is c with everything else drawn anew.
func (w *walk) tuned(c Config) Config {
	c.Window = draw(w, 2*time.Second, 10*time.Second, 10*time.Second)
	c.Buckets = draw(w, 1, 4, 10, 10)
	c.CountWindow = draw(w, 0, 0, 0, 7, 20)
	c.MinRequests = draw(w, 1, 2, 5)
	c.Confidence = draw(w, 0, 0, 1.3)
	for _, r := range c.Rules {
		if r.Ratio == 1 {
			c.Confidence = 0
		}
	}
	c.OpenFor = draw(w, time.Second, 5*time.Second, 30*time.Second)
	c.BackoffFactor = draw(w, 1., 2, 3)
	c.BackoffMax = draw(w, Auto, 30*time.Second, time.Hour)
	c.Probes = draw(w, []int{1}, []int{1}, []int{2}, []int{1, 2, 4}, []int{5})
	c.ProbeTolerance = draw(w, 0, 0, 0.2, 0.5)
	c.ProbeLease = draw(w, Auto, 3*time.Second)
	c.Recovery = draw(w, nil, nil, []Step{{0.1, 10 * time.Second}, {0.5, 3 * time.Second}})
	c.MinBudget = draw(w, Auto, 0, time.Second)
	return c
}

// operations are what can happen, each as often as it says.
var operations = [...]struct {
	name   string
	weight int
	do     func(*walk)
}{
	{"call", 40, (*walk).call},
	{"end a call", 40, (*walk).endOne},
	{"pass time", 30, (*walk).pass},
	{"update", 2, (*walk).update},
	{"force", 1, (*walk).force},
	{"unforce", 1, (*walk).unforce},
	{"trip", 1, (*walk).trip},
	{"reset", 1, (*walk).reset},
}

// step does one operation and compares.
func (w *walk) step() {
	all := 0
	for _, o := range operations {
		all += o.weight
	}
	n := w.pick(all)
	for _, o := range operations {
		if n -= o.weight; n < 0 {
			w.kinds[o.name]++
			o.do(w)
			break
		}
	}
	w.compare()
}

func (w *walk) logf(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf("%12v  "+format, append([]any{time.Duration(w.now - t0)}, args...)...))
}

func (w *walk) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s: %s after\n%s", w.name, fmt.Sprintf(format, args...), strings.Join(w.log, "\n"))
}

func (w *walk) pass() {
	w.now += int64(draw(w, 1, time.Millisecond, 50*time.Millisecond, 300*time.Millisecond, time.Second, time.Second, 5*time.Second, 11*time.Second, 90*time.Second))
}

func (w *walk) update() {
	c := w.tuned(w.m.c)
	w.logf("update %+v", c)
	w.m.update(c)
	if err := w.b.Update(c); err != nil {
		w.failf("%v", err)
	}
}

func (w *walk) force() {
	mode, ttl := draw(w, ForcedOpen, ForcedClosed, Disabled, Shadow), draw(w, 0, time.Second, 20*time.Second)
	w.logf("force %v for %v", mode, ttl)
	w.m.mode, w.m.modeUntil = mode, 0
	if ttl > 0 {
		w.m.modeUntil = w.now + int64(ttl)
	}
	if err := w.b.force(w.now, mode, ttl); err != nil {
		w.failf("%v", err)
	}
}

func (w *walk) unforce() {
	w.logf("unforce")
	w.m.mode = 0
	w.b.Unforce()
}

func (w *walk) trip() {
	d := draw(w, 0, time.Second, 40*time.Second)
	w.logf("trip %v", d)
	w.m.open(w.now, TripRequested, -1, w.m.levelNow(w.now, -1), d)
	if err := w.b.trip(w.now, d); err != nil {
		w.failf("%v", err)
	}
}

func (w *walk) reset() {
	w.logf("reset")
	w.m.enter(Closed, w.now, ResetRequested)
	w.m.level, w.m.steady = 0, 0
	w.b.reset(w.now)
}

// call asks for leave to make one.
func (w *walk) call() {
	mode := w.m.modeAt(w.now)
	first := w.pick(4) == 0
	seat, want, perhaps := w.m.allow(w.now)
	if perhaps && mode != 0 {
		first = true // else nobody could tell whether it has a seat
	}
	who := &caller{Context: w.t.Context()}
	if first {
		who.Context = sluice.WithPriority(who.Context, sluice.P0)
	}
	p, err := w.b.allow(who, w.now)
	w.logf("call, P0 %v: %v", first, err)
	switch {
	case perhaps && !first:
		w.inRamp(err == nil)
		if err != nil {
			seat = nil
		}
	case (err == nil) != want:
		w.failf("admitted %v, want %v", err == nil, want)
	case perhaps:
		w.ramp.asked, w.ramp.passed = 0, 0 // who jumps the queue may be counted in it
	}
	if err != nil {
		var refusal *OpenError
		if !errors.Is(err, ErrOpen) || !errors.As(err, &refusal) {
			w.failf("refused with %v", err)
		}
		w.refused[refusal.Reason()]++
		return
	}
	w.book.admitted++
	if seat == nil && mode == Shadow {
		w.book.shadowed++
	}
	w.out = append(w.out, &walkCall{&p, who, w.now, seat})
}
