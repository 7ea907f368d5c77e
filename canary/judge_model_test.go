package canary

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A judgeModel keeps every user of the step by name of what happened to him.
type judgeModel struct {
	requests, failures map[string]int64
	seen               map[string]map[uint32]bool
	bad                [judgeMetrics]map[string]map[uint32]bool
}

func newJudgeModel() *judgeModel {
	m := &judgeModel{requests: map[string]int64{}, failures: map[string]int64{}, seen: map[string]map[uint32]bool{"v1": {}, "v2": {}}}
	for i := range m.bad {
		m.bad[i] = map[string]map[uint32]bool{"v1": {}, "v2": {}}
	}
	return m
}

func (m *judgeModel) observe(d Decision, o sluice.Outcome, took time.Duration, panicked bool) {
	slow := took > time.Second
	if d.Reason != Split && d.Reason != Random || o == sluice.Ignored && !slow {
		return
	}
	v := d.Version.name
	m.requests[v]++
	m.seen[v][d.Point] = true
	if o == sluice.Failure || o == sluice.Throttled {
		m.failures[v]++
		m.bad[0][v][d.Point] = true
	}
	if slow {
		m.bad[1][v][d.Point] = true
	}
	if panicked {
		m.bad[2][v][d.Point] = true
	}
}

func (m *judgeModel) check(t *testing.T, v Verdict) {
	t.Helper()
	for name, got := range map[string]SideCounts{"v2": v.CanarySeen, "v1": v.StableSeen} {
		require.Equal(t, m.requests[name], got.Requests)
		require.Equal(t, m.failures[name], got.Failures)
		require.EqualValues(t, len(m.seen[name]), got.Places)
	}
	for i, e := range v.Evidence {
		require.EqualValues(t, len(m.bad[i]["v2"]), e.Canary)
		require.EqualValues(t, len(m.bad[i]["v1"]), e.Stable)
	}
}

func TestJudge_CountsAsTheModel(t *testing.T) {
	for seed := range uint64(runs(50)) {
		rng := rand.New(rand.NewPCG(seed, 9))
		share := Weight(1 + rng.Uint32N(points))
		j, m := started(t, share, WithSlowCalls(time.Second), WithAlpha(1e-9)), newJudgeModel()
		j.verdict(1)
		users := 1 + rng.Uint32N(points)
		for i := range 2000 {
			d := split(rng.Uint32N(users), share)
			d.Reason = Reason(rng.IntN(reasons + 1))
			o := sluice.Outcome(1 + rng.IntN(4))
			took := time.Duration(rng.Int64N(int64(2 * time.Second)))
			if rng.IntN(10) == 0 {
				j.ObservePanic(d, took)
				m.observe(d, sluice.Failure, took, true)
			} else {
				j.Observe(d, o, took)
				m.observe(d, o, took, false)
			}
			if i%500 == 0 {
				j.mu.Lock()
				j.failed = nil
				j.mu.Unlock()
				m.check(t, j.verdict(1))
			}
		}
	}
}

// Whatever the interleaving, each call counts once and each user once, and nobody sees
// more failures than calls.
func TestJudge_Conserves(t *testing.T) {
	const callers, calls, share = 4, 20_000, 100_000
	j := started(t, share)
	n := runs(calls)
	var all sync.WaitGroup
	for c := range callers {
		all.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 10))
			for range n {
				j.Observe(split(rng.Uint32N(5000)*200, share), outcome(rng.IntN(2) == 0), 0)
			}
		})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			v := j.verdict(1)
			for _, s := range []SideCounts{v.CanarySeen, v.StableSeen} {
				assert.LessOrEqual(t, s.Failures, s.Requests)
				assert.LessOrEqual(t, s.Places, s.Requests)
			}
			for _, e := range v.Evidence {
				assert.LessOrEqual(t, e.Canary, v.CanarySeen.Places)
			}
		}
	}()
	all.Wait()
	<-done
	j.Reset()
	j.begin(aTrial(share, 1), 1)
	all = sync.WaitGroup{}
	for c := range callers {
		all.Go(func() {
			for i := range n {
				j.Observe(split(uint32((i*7+c)%5000)*200, share), sluice.Success, 0)
				j.Observe(split(uint32((i*7+c)%5000)*200, share), sluice.Failure, 0)
			}
		})
	}
	all.Wait()
	s := j.stage.Load()
	canary, stable := s.canary.read(), s.stable.read()
	assert.EqualValues(t, 2*callers*n, canary.requests+stable.requests)
	assert.EqualValues(t, callers*n, canary.failures+stable.failures)
	var places int64
	for i := range s.marks {
		for w := s.marks[i].Load(); w != 0; w >>= markBits {
			places += int64(w & 1)
		}
	}
	assert.Equal(t, places, canary.users+stable.users)
	assert.Equal(t, places, canary.bad[0]+stable.bad[0])
}

func TestJudge_ObserveAllocatesNothing(t *testing.T) {
	if raceDetector {
		t.Skip("needs a build without -race, which allocates")
	}
	j, nobody := started(t, Percent(10)), (*Judge)(nil)
	j.begin(aTrial(Percent(10), 2), 2)
	ctx, err := t.Context(), error(refusal{"breaker"})
	point := uint32(0)
	for name, call := range map[string]func(){
		"success":        func() { j.Observe(split(point, Percent(10)), sluice.Success, time.Millisecond) },
		"failure":        func() { j.Observe(split(point, Percent(10)), sluice.Failure, time.Hour) },
		"classified":     func() { j.ObserveError(ctx, split(point, Percent(10)), nil, 0) },
		"refused":        func() { j.ObserveError(ctx, split(point, Percent(10)), err, 0) },
		"of no interest": func() { j.Observe(Decision{}, sluice.Success, 0) },
		"nil":            func() { nobody.Observe(split(point, Percent(10)), sluice.Success, 0) },
	} {
		assert.Zero(t, testing.AllocsPerRun(500, func() { point += 999; point %= points; call() }), name)
	}
}

func FuzzEProcess(f *testing.F) {
	f.Add(uint16(3), uint16(40), uint32(100_000))
	f.Add(uint16(0), uint16(0), uint32(1))
	f.Add(uint16(60_000), uint16(2), uint32(999_999))
	f.Fuzz(func(t *testing.T, x, y uint16, share uint32) {
		p := float64(share%points) / float64(points)
		var e, next eprocess
		e.add(int64(x), int64(y), p)
		log := e.log()
		next = e
		next.add(1, 0, p)
		if next.log() < log-1e-9 {
			t.Fatalf("one more failure of the canary is less evidence: x=%d y=%d p=%v", x, y, p)
		}
		next = e
		next.add(0, 1, p)
		if next.log() > log+1e-9 {
			t.Fatalf("one more failure of stable is more evidence: x=%d y=%d p=%v", x, y, p)
		}
		k, n := int64(x), int64(x)+int64(y)
		lo, hi := atLeast(k, n, 0.01), atMost(k, n, 0.01)
		if !(lo >= 0 && lo <= hi && hi <= 1) || n > 0 && (lo > float64(k)/float64(n) || hi < float64(k)/float64(n)) {
			t.Fatalf("of %d of %d: in [%v, %v]", k, n, lo, hi)
		}
	})
}
