package adaptive

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A queue is a server with so many workers that all of the limit is used of: calls take
// what they take alone, and longer in proportion when there are more than workers.
type fluid struct {
	workers, limit float64
	alone          time.Duration
}

func (f *fluid) window() LimitWindow {
	return busyWindow(f.limit, scaled(f.alone, max(1, f.limit/f.workers)))
}

// follow lets a tracker see one window.
func (f *fluid) follow(next func(LimitWindow) float64) {
	f.limit = min(max(next(f.window()), 1), 1000)
}

// The time that a call takes alone, read again under load, grows with the queue, and the
// limit with it: https://github.com/Netflix/concurrency-limits/issues/165. Here the queue is
// drained first; in a quarter of an hour of overload the limit drifts by less than 15 %.
// TestE7_OverloadThatGoesOn is the same with single calls.
func TestRegression_Netflix165_TheBaselineIsNotReadUnderLoad(t *testing.T) {
	r := Vegas()
	v := &vegas{draw: rand.New(rand.NewPCG(165, 0)).Uint32}
	ours := &fluid{workers: 16, limit: 20, alone: 10 * ms}
	theirs, classic := *ours, new(classicVegas)
	var early float64
	drains := 0
	for window := range 900 {
		held := ours.limit
		ours.follow(func(w LimitWindow) float64 { return v.next(&w, &r) })
		theirs.follow(classic.Next)
		if window == 60 {
			early = held
		}
		if v.drain == 1 {
			drains++
		}
	}
	assert.InEpsilon(t, early, ours.limit, 0.15)
	assert.Equal(t, 10*ms, v.baseline)
	assert.GreaterOrEqual(t, drains, 10, "and yet it was read")
	assert.Greater(t, theirs.limit, 5*early, "or there is nothing to be better than")
}

// When every call runs into the client's time limit they all take the same time, so the
// gradient is 1 and the limit grows to the maximum:
// https://github.com/Netflix/concurrency-limits/issues/137. Here calls that time out lower
// it, by any rule: to the minimum within 20 windows.
func TestRegression_Netflix137_AllCallsTimeOut(t *testing.T) {
	for _, r := range []LimitRule{Vegas(), AIMD(0), Gradient2()} {
		w := newWorld(137)
		l := newTestLimiter(t, w, WithLimitRule(r), WithInitialLimit(1000))
		now, windows := w.now, 0
		for l.Limit() > 1 {
			require.Less(t, windows, 20, r)
			before := l.window.Load()
			for l.window.Load() == before { // all of the limit, at once
				n := l.Limit()
				for range n {
					require.True(t, l.places.TryAcquire(1))
				}
				for range n {
					l.done(context.Background(), now, now+int64(time.Second), context.DeadlineExceeded)
				}
				now += int64(time.Second)
			}
			windows++
		}
	}

	classic := &fluid{limit: 20}
	g := new(classicGradient2)
	for range 2000 {
		classic.follow(func(LimitWindow) float64 { return g.Next(busyWindow(classic.limit, time.Second)) })
	}
	assert.Greater(t, classic.limit, 900.0, "or there is nothing to be better than")
}

// At a gradient of 0.8, which says that calls wait, room for more was added all the same,
// and the limit rose: https://github.com/Netflix/concurrency-limits/pull/134.
func TestRegression_Netflix134_NoRoomIsAddedWhileCallsWait(t *testing.T) {
	r := Gradient2()
	ours, classic := new(gradient2), new(classicGradient2)
	for range 20 {
		w := busyWindow(10, 10*ms)
		ours.next(&w, &r)
		classic.Next(w)
	}
	limit, theirs := 10.0, 10.0
	for range 30 {
		w := busyWindow(limit, time.Duration(ours.long*1.5/0.8))
		next := ours.next(&w, &r)
		assert.Less(t, next, limit)
		limit = next
		theirs = classic.Next(busyWindow(theirs, time.Duration(classic.average.long*1.5/0.8)))
	}
	assert.Greater(t, theirs, 15.0, "or there is nothing to be better than")
}

// An average of what calls took for a baseline rises to what they take in an incident, and
// the limiter opens again while it lasts: https://github.com/failsafe-go/failsafe-go/issues/127.
// Here nothing but a drained queue raises it, and MaxHealthy is the most that it can be.
func TestRegression_Failsafe127_AnIncidentIsNotTheBaseline(t *testing.T) {
	const minutes = 10 * 60
	incident := func(r LimitRule) (lowest, highest float64, v *vegas) {
		v = &vegas{draw: drawn}
		f := &fluid{workers: 16, limit: 20, alone: 10 * ms}
		next := func(w LimitWindow) float64 { return v.next(&w, &r) }
		for range 100 {
			f.follow(next)
		}
		f.workers, lowest = 4, f.limit // a quarter is left, and all wait in the queue
		for window := range minutes {
			f.follow(next)
			lowest = min(lowest, f.limit)
			if window > 30 {
				highest = max(highest, f.limit)
			}
		}
		return lowest, highest, v
	}
	_, highest, v := incident(Vegas())
	assert.Equal(t, 10*ms, v.baseline)
	assert.LessOrEqual(t, highest, 12.0, "four workers, and a queue for them")

	average := new(averageBaseline)
	f := &fluid{workers: 16, limit: 20, alone: 10 * ms}
	for window := range 100 + minutes {
		if window == 100 {
			f.workers = 4
		}
		f.follow(average.Next)
	}
	assert.Greater(t, f.limit, 200.0, "or there is nothing to be better than")

	// Calls become ten times as slow by themselves: by default that is learnt, which is what
	// a slower release needs; with MaxHealthy it is not.
	slow := func(r LimitRule) (*fluid, *vegas) {
		v := &vegas{draw: drawn}
		f := &fluid{workers: 16, limit: 20, alone: 10 * ms}
		for window := range 100 + minutes {
			if window == 100 {
				f.alone *= 10
			}
			f.follow(func(w LimitWindow) float64 { return v.next(&w, &r) })
		}
		return f, v
	}
	r := Vegas()
	_, v = slow(r)
	assert.Equal(t, 100*ms, v.baseline)
	r.MaxHealthy = 20 * ms
	f, v = slow(r)
	assert.Equal(t, 20*ms, v.baseline)
	assert.Less(t, f.limit, 12.0)
}

// To measure what calls take alone, healthy traffic was cut down to three calls at a time,
// in all processes at once: https://github.com/envoyproxy/envoy/issues/46532,
// https://github.com/envoyproxy/envoy/issues/38338,
// https://github.com/envoyproxy/envoy/issues/8337,
// https://github.com/envoyproxy/envoy/pull/9007. Here calls are measured as they are where
// the limit is not needed: in ten minutes at half of what the server can do, nobody is
// refused. TestVegas_DrainsAreSpread is about the others.
func TestRegression_Envoy46532_MeasuringRefusesNobody(t *testing.T) {
	g := newGuarded(t, 46532, 16, mean10)
	long := minutes(10)
	all := g.phase(0, long)
	draining := 0
	var watch func()
	watch = func() {
		if f := g.limiter.found.Load(); f != nil && f.draining {
			draining++
		}
		g.after(500*ms, watch)
	}
	watch()
	g.arriveAt(step(0.5*capacity, 0, 0.5*capacity, time.Hour, 0))
	g.run(long)
	assert.Zero(t, all.all(all.refused))
	assert.Zero(t, draining)
	assert.InDelta(t, 9.4*float64(ms), float64(g.limiter.found.Load().baseline), float64(ms), "and it is known")
}

// The fastest call ever seen was the baseline, so a lucky one of 150 ms in a service of
// 300 ms made the limit collapse: https://github.com/Netflix/concurrency-limits/issues/37,
// https://github.com/Netflix/concurrency-limits/issues/34. Here it is the mean of the
// middle of many.
func TestRegression_Netflix37_ALuckyCall(t *testing.T) {
	lucky := mixed(lognormal(300*ms, 0.1), 0.02, lognormal(150*ms, 0.05))
	g := newGuarded(t, 37, 1000, lucky)
	all := g.phase(30*time.Second, 5*time.Minute)
	g.arriveAt(step(200, 0, 200, time.Hour, 0)) // 60 at once
	g.run(5 * time.Minute)
	assert.Zero(t, all.all(all.refused))
	assert.InDelta(t, 300*float64(ms), float64(g.limiter.found.Load().baseline), 15*float64(ms))
	assert.Greater(t, all.limit(), 80.0)
}

// When slow calls come among fast ones, or the dependency becomes slower, and the limit is
// far from full, nobody is refused while the new baseline is found.
func TestLimiter_SlowerCallsAreNoQueueWhereTheLimitIsFarFromFull(t *testing.T) {
	const at = time.Minute
	g := newGuarded(t, 34, 1000, then(lognormal(10*ms, 0.3), at, mixed(lognormal(10*ms, 0.3), 0.9, lognormal(40*ms, 0.3))), WithInitialLimit(200))
	all, later := g.phase(0, 4*time.Minute), g.phase(at+100*time.Second, 4*time.Minute)
	g.arriveAt(step(1000, 0, 1000, time.Hour, 0)) // 10 at once, then 40
	g.run(4 * time.Minute)
	assert.Zero(t, all.all(all.refused))
	assert.InDelta(t, 38*float64(ms), float64(g.limiter.found.Load().baseline), 3*float64(ms))
	assert.GreaterOrEqual(t, later.limit(), 200.0)
}

// A place was lost when leave and its time limit came at the same moment, so that the
// capacity shrank for ever: https://github.com/Netflix/concurrency-limits/pull/179,
// https://github.com/platinummonkey/go-concurrency-limits/pull/162; or everything stood
// still: https://github.com/platinummonkey/go-concurrency-limits/pull/154. A million calls
// that are admitted, refused, time out and are cancelled at once leave no place taken.
func TestRegression_Netflix179_NoPlaceIsLost(t *testing.T) {
	const goroutines, limit = 8, 4
	n := 1_000_000 / goroutines
	if brief() {
		n /= 20
	}
	l := few(t, limit, WithQueue(6, 40*time.Microsecond), WithCoDel(20*time.Microsecond, 100*time.Microsecond), WithNewestFirst(true),
		WithAging(10*time.Microsecond), WithShares(0.1, 0, 0.2))
	chain := sluice.Chain(l)
	var inside, admitted, refused, gone atomic.Int64
	enter := func() {
		if in := inside.Add(1); in > limit {
			t.Errorf("%d of %d are inside", in, limit)
		}
		inside.Add(-1)
	}
	call := func(context.Context) error { enter(); return nil }
	var all sync.WaitGroup
	for i := range uint64(goroutines) {
		all.Go(func() {
			r := rand.New(rand.NewPCG(i, 179))
			for range n {
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				switch r.IntN(8) {
				case 0:
					ctx, cancel = context.WithCancel(ctx)
					go cancel()
				case 1:
					ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(30_000)))
				case 2:
					ctx = sluice.WithPriority(ctx, sluice.Priority(r.IntN(3)-1))
				}
				var p LimiterPermit
				var err error
				switch r.IntN(8) {
				case 0:
					p, err = l.TryAcquire(ctx)
				case 1:
					err = l.Do(ctx, call)
				case 2:
					err = chain.Do(ctx, call)
				default:
					p, err = l.Acquire(ctx)
				}
				switch {
				case err == nil:
					admitted.Add(1)
					if p.limiter != nil {
						enter()
						switch r.IntN(5) {
						case 0:
							p.Cancel()
						case 1:
							p.Settle(sluice.Throttled)
						case 2:
							p.Done(errDown)
						default:
							p.Done(nil)
						}
					}
				case ctx.Err() != nil && err == ctx.Err():
					gone.Add(1)
				default:
					refused.Add(1)
					assert.ErrorIs(t, err, ErrLimited)
				}
				p.Close()
				cancel()
			}
		})
	}
	all.Wait()
	s := l.Snapshot()
	assert.Zero(t, s.InFlight)
	assert.Zero(t, s.Waiting)
	assert.Equal(t, admitted.Load(), s.Totals.Admitted)
	assert.Equal(t, admitted.Load(), s.Totals.Answered+s.Totals.Dropped+s.Totals.Failed+s.Totals.Ignored)
	assert.Equal(t, refused.Load(), s.Refused.Limit+s.Refused.QueueFull+s.Refused.MaxWait)
	assert.EqualValues(t, n*goroutines, admitted.Load()+refused.Load()+gone.Load())
	for range limit {
		_, err := l.TryAcquire(t.Context())
		assert.NoError(t, err, "all of it is there")
	}
}

// While the limit moves, with all that goes on at the same time, every call is in one
// total, and no more are inside than the largest limit.
func TestLimiter_ConservationWhileTheLimitMoves(t *testing.T) {
	const most = 8
	n := 400_000
	if brief() {
		n /= 10
	}
	l := buildLimiter(t, WithLimits(1, most), WithInitialLimit(4), WithLimitWindow(10*ms), WithQueue(20, time.Second),
		WithLimitAlgorithm(func() LimitAlgorithm {
			r := rand.New(rand.NewPCG(1, 1))
			return &script{says: func(LimitWindow) float64 { return 1 + float64(r.IntN(most)) }}
		}))
	var inside, ok atomic.Int64
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			for j := range n / 6 {
				err := l.Do(t.Context(), func(context.Context) error {
					if in := inside.Add(1); in > most {
						t.Errorf("%d are inside", in)
					}
					inside.Add(-1)
					return nil
				})
				if err == nil {
					ok.Add(1)
				}
				if i == 0 && j%100 == 0 {
					c := l.Config()
					c.MaxWait += time.Nanosecond
					assert.NoError(t, l.Update(c))
					_ = l.Snapshot()
				}
			}
		})
	}
	all.Wait()
	assert.Zero(t, l.InFlight())
	assert.Equal(t, ok.Load(), l.Snapshot().Totals.Answered)
}
