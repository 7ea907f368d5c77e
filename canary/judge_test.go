package canary

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

var (
	oldVersion = &Version{name: "v1"}
	newVersion = &Version{name: "v2"}
)

// aTrial is v2 with so much of all users against v1 with the rest.
func aTrial(w Weight, generation uint64) Trial {
	return Trial{Canary: "v2", Stable: "v1", CanaryWeight: w, StableWeight: All - w, Generation: generation}
}

// started is a Judge in the first step of aTrial, begun at 1.
func started(t testing.TB, w Weight, opts ...JudgeOption) *Judge {
	t.Helper()
	opts = append([]JudgeOption{WithWarmUp(0)}, opts...)
	j, err := NewJudge("checkout", opts...)
	require.NoError(t, err)
	require.NoError(t, aTrial(w, 1).Validate())
	j.begin(aTrial(w, 1), 1)
	return j
}

// split is what a Picker would decide for users at point, with the canary's share at the
// lower end.
func split(point uint32, w Weight) Decision {
	d := Decision{Version: oldVersion, Reason: Split, Point: point, Generation: 1}
	if point < uint32(w) {
		d.Version = newVersion
	}
	return d
}

func outcome(failed bool) sluice.Outcome {
	if failed {
		return sluice.Failure
	}
	return sluice.Success
}

// A run sends calls of ever new users to both versions and asks for the verdict after
// every so many calls of the canary, until it condemns or there were enough.
type aRun struct {
	seed           uint64
	share          Weight
	stable, canary float64 // how often calls fail
	every, most    int     // calls of the canary
}

func (r aRun) condemnedAfter(j *Judge) (calls int, condemned bool) {
	rng := rand.New(rand.NewPCG(r.seed, 6))
	for calls < r.most {
		d := split(rng.Uint32N(points), r.share)
		rate := r.stable
		if d.Version == newVersion {
			rate = r.canary
			calls++
		}
		j.Observe(d, outcome(rng.Float64() < rate), time.Millisecond)
		if d.Version == newVersion && calls%r.every == 0 && j.verdict(1).Result == Fail {
			return calls, true
		}
	}
	return calls, false
}

func TestJudge_CondemnsFewGoodCanaries(t *testing.T) {
	const alpha = 0.01
	n, wrong := runs(1000), 0
	for seed := range n {
		j := started(t, Percent(10), WithAlpha(alpha))
		_, condemned := aRun{seed: uint64(seed), share: Percent(10), stable: 0.01, canary: 0.01, every: 100, most: 2000}.condemnedAfter(j)
		wrong += count(condemned)
	}
	t.Logf("%d of %d good canaries condemned", wrong, n)
	assert.LessOrEqual(t, float64(wrong), 1.5*alpha*float64(n))
}

func TestJudge_FindsBadCanaries(t *testing.T) {
	for _, tc := range []struct {
		rate   float64
		median int
	}{{0.03, 720}, {0.05, 240}, {0.2, 30}, {1, 10}} {
		var took []int
		for seed := range runs(100) {
			j := started(t, Percent(10))
			calls, _ := aRun{seed: uint64(seed), share: Percent(10), stable: 0.01, canary: tc.rate, every: 10, most: 10_000}.condemnedAfter(j)
			took = append(took, calls)
		}
		slices.Sort(took)
		median := took[len(took)/2]
		t.Logf("%v %% of the calls fail instead of 1 %%: condemned after %d calls of the canary", 100*tc.rate, median)
		assert.LessOrEqual(t, float64(median), 1.5*float64(tc.median))
	}
}

// One user in a hundred fails always, whichever version serves him. Who counts calls takes
// for the canary's fault how many of them it happens to have; no product that was looked
// at avoids this.
func TestJudge_StickyBadUsers(t *testing.T) {
	const share, users, calls, alpha = 100_000, 1000, 200_000, 0.001
	n, byCalls, byUsers := runs(100), 0, 0
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		var point [users]uint32
		var broken [users]bool
		for u := range users {
			point[u], broken[u] = rng.Uint32N(points), rng.Float64() < 0.01
		}
		j := started(t, share, WithAlpha(alpha))
		var plain eprocess
		plainFail, fail := false, false
		for i := range calls {
			u := rng.IntN(users)
			d := split(point[u], share)
			j.Observe(d, outcome(broken[u]), time.Millisecond)
			if broken[u] {
				x := int64(count(d.Version == newVersion))
				plain.add(x, 1-x, 0.1)
				plainFail = plainFail || plain.log() >= -math.Log(alpha)
			}
			if i%5000 == 0 {
				fail = fail || j.verdict(1).Result == Fail
			}
		}
		byCalls += count(plainFail)
		byUsers += count(fail)
	}
	t.Logf("good canaries condemned, of %d: %d by counting calls, %d by counting users", n, byCalls, byUsers)
	assert.Greater(t, float64(byCalls), 0.2*float64(n))
	assert.LessOrEqual(t, byUsers, 1)
}

// A dependency of both is down.
func TestJudge_OutageOfBothHolds(t *testing.T) {
	for _, share := range []Weight{Percent(1), Percent(10), Percent(50)} {
		j := started(t, share)
		rng := rand.New(rand.NewPCG(1, uint64(share)))
		for i := range 20_000 {
			down := i > 2000
			j.Observe(split(rng.Uint32N(points), share), outcome(down && rng.Float64() < 0.95), time.Millisecond)
			if i%200 == 0 {
				v := j.verdict(1)
				require.NotEqual(t, Fail, v.Result, v.Reason)
				if i > 15_000 {
					require.Equal(t, Inconclusive, v.Result, v.Reason)
				}
			}
		}
		assert.Contains(t, j.verdict(1).Reason, "what both depend on is to blame")
	}
}

// When every user has failed once already, counting users sees no more; the rate of calls
// does.
func TestJudge_RailSeesWhatHappensLate(t *testing.T) {
	const share = 250_000
	j := started(t, share)
	rng := rand.New(rand.NewPCG(1, 8))
	var point [200]uint32
	for u := range point {
		point[u] = share + rng.Uint32N(points-share)
		if u%4 == 0 {
			point[u] = rng.Uint32N(share)
		}
		j.Observe(split(point[u], share), sluice.Failure, time.Millisecond)
	}
	for range 20 {
		for u := range point {
			j.Observe(split(point[u], share), sluice.Success, time.Millisecond)
		}
	}
	require.NotEqual(t, Fail, j.verdict(1).Result)
	for range 20 {
		for u := range point {
			d := split(point[u], share)
			j.Observe(d, outcome(d.Version == newVersion), time.Millisecond)
		}
	}
	v := j.verdict(1)
	assert.Equal(t, Fail, v.Result)
	assert.Equal(t, Errors, v.Metric)
	assert.Contains(t, v.Reason, "more than 20 % for sure")
}

func TestJudge_RailKnowsNoCallsButOneUsers(t *testing.T) {
	j := started(t, Percent(10))
	for u := range uint32(40) {
		j.Observe(split(u, Percent(10)), sluice.Success, 0)
	}
	for range 10_000 {
		j.Observe(split(7, Percent(10)), sluice.Failure, 0) // one user who never stops
	}
	assert.NotEqual(t, Fail, j.verdict(1).Result)
}

// Ten of a thousand users fail, as many as of stable's, but some of the canary's do not
// stop to try.
func TestJudge_RailKnowsNoFewBusyUsers(t *testing.T) {
	const share = 100_000
	j := started(t, share)
	for u := range uint32(10_000) {
		d := split(u*100, share)
		failed := u%100 == 0
		calls := 1
		if failed && d.Version == newVersion {
			calls = 1000
		}
		for range calls {
			j.Observe(d, outcome(failed), 0)
		}
	}
	v := j.verdict(1)
	assert.Greater(t, float64(v.CanarySeen.Failures), 0.9*float64(v.CanarySeen.Requests))
	assert.NotEqual(t, Fail, v.Result, v.Reason)
}

func TestJudge_AloneAtTheTop(t *testing.T) {
	j := started(t, All)
	for u := range uint32(100) {
		j.Observe(split(u, All), sluice.Success, 0)
	}
	require.Equal(t, Pass, j.verdict(1).Result)
	for u := range uint32(100) {
		j.Observe(split(u, All), sluice.Failure, 0)
	}
	assert.Equal(t, Fail, j.verdict(1).Result, "with nobody to compare with there is still the rate of errors")
}

func TestJudge_Verdicts(t *testing.T) {
	const share = 100_000
	see := func(j *Judge, from, users uint32, o sluice.Outcome) {
		for u := range users {
			j.Observe(split(from+u, share), o, time.Millisecond)
		}
	}
	const canary, stable = 0, share // where their points begin
	for _, tc := range []struct {
		name string
		do   func(j *Judge)
		want VerdictResult
		says string
	}{
		{"nothing", func(*Judge) {}, NoData, "no call of the canary"},
		{"only stable", func(j *Judge) { see(j, stable, 100, sluice.Success) }, NoData, "no call of the canary"},
		{"one call", func(j *Judge) { see(j, canary, 1, sluice.Success) }, Inconclusive, "1 of 30 users"},
		{"one call, one error", func(j *Judge) { see(j, canary, 1, sluice.Failure) }, Inconclusive, "1 of 30 users"},
		{"enough users", func(j *Judge) { see(j, canary, 30, sluice.Success); see(j, stable, 270, sluice.Success) }, Pass, "30 users"},
		{"too few calls", func(j *Judge) {
			c := j.Config()
			c.MinRequests = 31
			_ = j.Update(c)
			see(j, canary, 30, sluice.Success)
			see(j, stable, 270, sluice.Success)
		}, Inconclusive, "30 of 31 calls"},
		{"one failing user in fifty", func(j *Judge) {
			see(j, canary, 49, sluice.Success)
			see(j, canary+49, 1, sluice.Failure)
			see(j, stable, 450, sluice.Success)
		}, Pass, "1 of them failing"},
		{"four failing users", func(j *Judge) {
			see(j, canary, 46, sluice.Success)
			see(j, canary+46, 4, sluice.Failure)
			see(j, stable, 450, sluice.Success)
		}, Inconclusive, "too much to go on"},
		{"five failing users", func(j *Judge) {
			see(j, canary, 45, sluice.Success)
			see(j, canary+45, 5, sluice.Failure)
			see(j, stable, 450, sluice.Success)
		}, Fail, "errors: evidence"},
		{"as many failing", func(j *Judge) { // but too few to say that it is not half as many more
			see(j, canary, 30, sluice.Success)
			see(j, canary+30, 10, sluice.Failure)
			see(j, stable, 270, sluice.Success)
			see(j, stable+270, 90, sluice.Failure)
		}, Inconclusive, "users may fail"},
		{"as many failing, and many", func(j *Judge) {
			see(j, canary, 9000, sluice.Success)
			see(j, canary+9000, 1000, sluice.Failure)
			see(j, stable, 81_000, sluice.Success)
			see(j, stable+81_000, 9000, sluice.Failure)
		}, Pass, "1000 of them failing"},
		{"as many failing, and few tolerated", func(j *Judge) {
			c := j.Config()
			c.Tolerance = 0.01
			_ = j.Update(c)
			see(j, canary, 9000, sluice.Success)
			see(j, canary+9000, 1000, sluice.Failure)
			see(j, stable, 81_000, sluice.Success)
			see(j, stable+81_000, 9000, sluice.Failure)
		}, Pass, "1000 of them failing"},
		{"users do not arrive", func(j *Judge) {
			see(j, canary, 200, sluice.Success)
			see(j, stable, 4000, sluice.Success)
		}, Inconclusive, "sample ratio"},
		{"throttled", func(j *Judge) {
			see(j, canary, 50, sluice.Throttled)
			see(j, stable, 450, sluice.Success)
		}, Fail, "errors"},
		{"ignored", func(j *Judge) { see(j, canary, 50, sluice.Ignored) }, NoData, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := started(t, share)
			tc.do(j)
			v := j.verdict(1)
			assert.Equal(t, tc.want, v.Result, v.Reason)
			assert.Contains(t, v.Reason, tc.says)
			assert.Equal(t, v, j.verdict(1), "nothing is left to chance")
		})
	}
}

type refusal struct{ policy string }

func (r refusal) Error() string             { return r.policy + ": refused" }
func (r refusal) Is(target error) bool      { return target == sluice.ErrRejected }
func (r refusal) Resource() string          { return "v2" }
func (r refusal) Policy() string            { return r.policy }
func (r refusal) Reason() string            { return "open" }
func (r refusal) RetryAfter() time.Duration { return 0 }

func TestJudge_WhatIsAFailure(t *testing.T) {
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	limit, end := context.WithTimeoutCause(t.Context(), 0, sluice.ErrTimeout)
	defer end()
	for _, tc := range []struct {
		name string
		ctx  context.Context
		err  error
		want SideCounts
	}{
		{"success", t.Context(), nil, SideCounts{Requests: 1, Users: 1, Places: 1}},
		{"error", t.Context(), errors.New("500"), SideCounts{Requests: 1, Failures: 1, Users: 1, Places: 1}},
		{"throttled", t.Context(), sluice.Mark(errors.New("429"), sluice.Throttled), SideCounts{Requests: 1, Failures: 1, Users: 1, Places: 1}},
		{"an answer", t.Context(), sluice.Mark(errors.New("404"), sluice.Success), SideCounts{Requests: 1, Users: 1, Places: 1}},
		{"ignored", t.Context(), sluice.Ignore(errors.New("x")), SideCounts{}},
		{"caller went away", gone, context.Canceled, SideCounts{}},
		{"time limit of ours", limit, limit.Err(), SideCounts{Requests: 1, Failures: 1, Users: 1, Places: 1}},
		{"breaker", t.Context(), refusal{"breaker"}, SideCounts{Requests: 1, Failures: 1, Refused: 1, Users: 1, Places: 1}},
		{"bulkhead", t.Context(), fmt.Errorf("v2: %w", refusal{"bulkhead"}), SideCounts{Requests: 1, Failures: 1, Refused: 1, Users: 1, Places: 1}},
		{"pool", t.Context(), refusal{"pool"}, SideCounts{Requests: 1, Failures: 1, Refused: 1, Users: 1, Places: 1}},
		{"rate limit", t.Context(), refusal{"rate_limit"}, SideCounts{}},
		{"system", t.Context(), refusal{"system"}, SideCounts{}},
		{"no time left", t.Context(), refusal{"timeout"}, SideCounts{}},
		{"refused, no more known", t.Context(), sluice.ErrRejected, SideCounts{}},
	} {
		j := started(t, Percent(10))
		j.ObserveError(tc.ctx, split(0, Percent(10)), tc.err, time.Millisecond)
		assert.Equal(t, tc.want, j.verdict(1).CanarySeen, tc.name)

		j = started(t, Percent(10))
		err := j.Do(tc.ctx, split(0, Percent(10)), func(context.Context) error { return tc.err })
		assert.Equal(t, tc.err, err, tc.name)
		assert.Equal(t, tc.want, j.verdict(1).CanarySeen, tc.name)
	}
}

func TestJudge_DoSeesPanics(t *testing.T) {
	j := started(t, Percent(10))
	for u := range uint32(5) {
		assert.PanicsWithValue(t, "boom", func() {
			_ = j.Do(t.Context(), split(u, Percent(10)), func(context.Context) error { panic("boom") })
		})
	}
	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = j.Do(t.Context(), split(5, Percent(10)), func(context.Context) error { runtime.Goexit(); return nil })
	}()
	<-left
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Panics(t, func() {
		_ = j.Do(gone, split(6, Percent(10)), func(context.Context) error { panic("boom") })
	})
	v := j.verdict(1)
	assert.Equal(t, Fail, v.Result)
	assert.EqualValues(t, 6, v.Evidence[Panics-1].Canary)
	assert.EqualValues(t, 6, v.Evidence[Errors-1].Canary, "a panic is a failure, too")
}

// Testers, allow lists and stored assignments are no sample of anything.
func TestJudge_CountsFairSamplesOnly(t *testing.T) {
	j := started(t, Percent(10))
	for _, r := range []Reason{0, Killed, Override, Targeted, Sticky, Default} {
		d := split(0, Percent(10))
		d.Reason = r
		j.Observe(d, sluice.Failure, time.Hour)
	}
	j.Observe(Decision{Version: &Version{name: "v3"}, Reason: Split, Generation: 1}, sluice.Failure, 0)
	j.Observe(Decision{Version: newVersion, Reason: Split, Point: points, Generation: 1}, sluice.Failure, 0)
	j.Observe(Decision{}, sluice.Failure, 0)
	v := j.verdict(1)
	assert.Equal(t, NoData, v.Result)
	assert.Zero(t, v.CanarySeen)
	assert.Zero(t, v.StableSeen)
}

// A result counts for the step in which its call was decided on.
func TestJudge_LateResults(t *testing.T) {
	j := started(t, Percent(1))
	at := func(point uint32, generation uint64) Decision {
		d := split(point, Percent(1))
		d.Generation = generation
		return d
	}
	j.Observe(at(1, 0), sluice.Failure, 0)
	assert.EqualValues(t, 1, j.strays.Load(), "decided on before the first step")

	j.begin(aTrial(Percent(5), 3), 2)
	for u := range uint32(4) {
		j.Observe(at(u, 2), sluice.Failure, 0) // under the shares of the first step
	}
	v := j.verdict(2)
	assert.Zero(t, v.CanarySeen)
	assert.Equal(t, NoData, v.Result)
	first := math.Exp(evidenceOf(4, 0, 0.01)) / 2 // half of alpha is the first step's
	assert.InEpsilon(t, first, v.Evidence[0].E, 1e-9, "they are evidence all the same, of their own step")

	j.Observe(at(2, 3), sluice.Failure, 0)
	v = j.verdict(2)
	assert.InEpsilon(t, first, v.Evidence[0].E, 1e-9, "that of another step is not added")
	assert.Equal(t, Inconclusive, v.Result, "five users, but not five different ones in one step")

	j.begin(aTrial(Percent(10), 5), 3)
	assert.InEpsilon(t, first, j.verdict(3).Evidence[0].E, 1e-9, "what is folded away stays")
	j.Observe(at(1, 2), sluice.Failure, 0)
	assert.EqualValues(t, 2, j.strays.Load(), "two steps late")
	j.stage.Load().known.Store(6)
	j.Observe(at(1, 7), sluice.Failure, 0)
	assert.EqualValues(t, 3, j.strays.Load(), "of shares that nobody has told yet")
	j.Observe(at(1, 6), sluice.Failure, 0)
	assert.EqualValues(t, 1, j.verdict(3).CanarySeen.Failures)
}

func TestJudge_CondemnationStays(t *testing.T) {
	j := started(t, Percent(10))
	for u := range uint32(50) {
		j.Observe(split(u, Percent(10)), sluice.Failure, 0)
	}
	v := j.verdict(1)
	require.Equal(t, Fail, v.Result)
	for u := range uint32(50_000) {
		j.Observe(split(2*u, Percent(10)), sluice.Success, 0)
	}
	assert.Equal(t, v, j.verdict(2))
	j.begin(aTrial(Percent(50), 2), 3)
	assert.Equal(t, Fail, j.verdict(3).Result)
	other := aTrial(Percent(5), 3)
	other.Canary = "v3"
	j.begin(other, 4)
	assert.Equal(t, NoData, j.verdict(4).Result, "another canary")
	j.begin(aTrial(Percent(5), 4), 5)
	assert.Equal(t, NoData, j.verdict(5).Result)
	j.Reset()
	assert.Zero(t, j.Verdict())
}

func TestJudge_SlowCalls(t *testing.T) {
	const share = 100_000
	see := func(j *Judge, from, users uint32, took time.Duration) {
		for u := range users {
			j.Observe(split(from+u, share), sluice.Success, took)
		}
	}
	t.Run("than stable", func(t *testing.T) {
		j := started(t, share)
		see(j, share, 450, 10*time.Millisecond)
		require.Equal(t, NoData, j.verdict(1).Result) // which works out what is slow
		see(j, share+450, 450, 10*time.Millisecond)
		see(j, 0, 100, 12*time.Millisecond)
		v := j.verdict(2)
		assert.Equal(t, Fail, v.Result)
		assert.Equal(t, SlowCalls, v.Metric)
	})
	t.Run("than a limit", func(t *testing.T) {
		j := started(t, share, WithSlowCalls(time.Second))
		j.verdict(1)
		see(j, share, 900, 2*time.Second)
		see(j, 0, 100, 2*time.Second)
		v := j.verdict(1)
		assert.EqualValues(t, 100, v.Evidence[SlowCalls-1].Canary)
		assert.EqualValues(t, 900, v.Evidence[SlowCalls-1].Stable)
		see(j, 100, 1, time.Second)
		assert.EqualValues(t, 100, j.verdict(1).Evidence[SlowCalls-1].Canary, "slow is longer, not as long")
	})
	t.Run("no rule", func(t *testing.T) {
		j := started(t, share, WithSlowCalls(0))
		j.verdict(1)
		see(j, 0, 100, time.Hour)
		assert.Zero(t, j.verdict(1).Evidence[SlowCalls-1].Canary)
	})
	t.Run("not yet warm", func(t *testing.T) {
		j := started(t, share, WithSlowCalls(time.Second), WithWarmUp(30*time.Second))
		j.verdict(1)
		see(j, 0, 100, time.Minute)
		see(j, share, 900, time.Millisecond)
		v := j.verdict(int64(30 * time.Second))
		assert.Equal(t, Inconclusive, v.Result)
		assert.Contains(t, v.Reason, "warming up")
		assert.Equal(t, Pass, j.verdict(1+int64(30*time.Second)).Result)
		see(j, 100, 50, time.Minute)
		assert.Equal(t, Fail, j.verdict(1+int64(31*time.Second)).Result)
	})
	t.Run("callers give up", func(t *testing.T) { // on a version that hangs
		j := started(t, share, WithSlowCalls(time.Second))
		j.verdict(1)
		for u := range uint32(20) {
			j.Observe(split(u, share), sluice.Ignored, 3*time.Second)
		}
		see(j, share, 180, time.Millisecond)
		v := j.verdict(1)
		assert.Equal(t, Fail, v.Result)
		assert.Equal(t, SlowCalls, v.Metric)
		assert.Zero(t, v.CanarySeen.Failures, "that is no failure")
	})
	t.Run("stable becomes slower", func(t *testing.T) {
		j := started(t, share)
		see(j, share, 1000, 10*time.Millisecond)
		j.verdict(1)
		first := j.stage.Load().slowAbove.Load()
		now := int64(time.Minute) + 1
		for range 3 {
			j.verdict(now)
			see(j, share, 1000, 100*time.Millisecond)
			now += int64(time.Minute)
		}
		j.verdict(now)
		assert.Greater(t, j.stage.Load().slowAbove.Load(), 5*first)
		for range 3 {
			now += int64(time.Minute)
			j.verdict(now)
		}
		assert.Equal(t, int64(never), j.stage.Load().slowAbove.Load(), "without calls of stable nothing is slow")
	})
}

// Calls of both versions of one user, and a user who fails in every way.
func TestJudge_UsersCountOnce(t *testing.T) {
	j := started(t, Percent(10), WithSlowCalls(time.Second))
	j.verdict(1)
	for range 3 {
		j.Observe(split(5, Percent(10)), sluice.Success, 0)
		j.Observe(split(5, Percent(10)), sluice.Failure, 0)
		j.Observe(split(5, Percent(10)), sluice.Failure, time.Minute)
		j.ObservePanic(split(5, Percent(10)), 0)
	}
	v := j.verdict(1)
	assert.Equal(t, SideCounts{Requests: 12, Failures: 9, Users: 1, Places: 1}, v.CanarySeen)
	for _, e := range v.Evidence {
		assert.EqualValues(t, 1, e.Canary, e.Metric)
	}
}

func TestJudge_Nil(t *testing.T) {
	var j *Judge
	j.Observe(split(0, 1), sluice.Failure, 0)
	j.ObserveError(t.Context(), split(0, 1), errors.New("x"), 0)
	j.ObservePanic(split(0, 1), 0)
	require.NoError(t, j.Do(t.Context(), split(0, 1), func(context.Context) error { return nil }))
	require.NoError(t, j.Begin(aTrial(Percent(1), 1)))
	require.NoError(t, j.Update(DefaultJudgeConfig()))
	j.Reset()
	assert.Zero(t, j.Verdict())
	assert.Zero(t, j.Config())
	assert.Empty(t, j.Name())
	assert.Zero(t, j.Snapshot())
	j.Collect(nil)
}

func TestJudge_WithoutAStep(t *testing.T) {
	j := sluice.Must(NewJudge("x"))
	j.Observe(split(0, 1), sluice.Failure, 0)
	assert.Zero(t, j.Verdict())
	assert.EqualValues(t, 1, j.Snapshot().Strays)
	assert.ErrorContains(t, j.Begin(Trial{}), `canary: Canary is empty`)
}
