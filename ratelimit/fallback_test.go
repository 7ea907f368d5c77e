package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// A store that hangs held up every request for the default timeout of a client: 10 s
// (envoyproxy/ratelimit#462), 5 s of refusals (go-chi/httprate-redis#15), until memory
// ran out (envoyproxy/ratelimit#978); or everybody got 429 (istio/istio#12115). Here
// the first calls wait for StoreTimeout at most, and those after it for nothing; the
// node keeps to its share, without a fresh burst; and when the store is back it is
// found within a second.
func TestScenario18_AStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10, Global(PerSecond(1000)))
		f.wire.delay.Store(int64(time.Millisecond))
		f.flood(f.nodes, 1, 5*time.Millisecond, 3*time.Second) // twice the limit: all buckets are empty
		f.take()

		f.wire.mute.Store(true)
		slowest, waited := time.Duration(0), 0
		s := f.nodes[0]
		began := clock.Now()
		for clock.Now()-began < int64(400*time.Millisecond) {
			at := clock.Now()
			f.ask(s, 1)
			took := time.Duration(clock.Now() - at)
			slowest = max(slowest, took)
			if took > 0 {
				waited++
			}
			time.Sleep(time.Millisecond)
		}
		assert.LessOrEqual(t, slowest, 20*time.Millisecond)
		assert.LessOrEqual(t, waited, 5)
		assert.Equal(t, ModeFallback, s.Snapshot().Node.Mode)
		over := time.Duration(clock.Now() - began)
		assert.LessOrEqual(t, int64(f.take()), PerSecond(100).within(over)+s.current().most+20, "its share, a lease, and no fresh burst")

		f.flood(f.nodes, 1, 5*time.Millisecond, 400*time.Millisecond)
		f.take()
		before := s.Snapshot().Node.Store.Failures
		f.flood(f.nodes[:1], 1, time.Millisecond, 100*time.Millisecond)
		assert.Zero(t, f.waited)
		assert.Equal(t, before, s.Snapshot().Node.Store.Failures, "a call does not even try")

		f.wire.mute.Store(false)
		time.Sleep(time.Second)
		for _, s := range f.nodes {
			assert.Equal(t, ModeShared, s.Snapshot().Node.Mode)
		}
	})
}

// Where the fallback of a cluster limit was the whole limit for each node
// (alibaba/Sentinel#2660, #3157, #1808, and #2919, which has been open since 2022), ten
// nodes let ten times as much pass.
func TestScenario19_TheShareOfANodeIsNotTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10, Global(PerSecond(100)))
		f.wire.down.Store(true)
		f.flood(f.nodes, 1, 10*time.Millisecond, 2*time.Second)
		f.take()
		const length = 10 * time.Second
		f.flood(f.nodes[:1], 1, 10*time.Millisecond, length)
		assert.LessOrEqual(t, f.take(), 10*10+1)
		f.flood(f.nodes, 1, 10*time.Millisecond, length)
		assert.InDelta(t, 100*10+9*10, f.take(), 20, "nine have had nothing to do for 10 s")
		for _, s := range f.nodes {
			snap := s.Snapshot()
			assert.Equal(t, ModeFallback, snap.Node.Mode)
			assert.Equal(t, Rate{100, 10 * time.Second}, snap.LocalRate)
			assert.Equal(t, int64(10), snap.LocalBurst)
		}
	})
}

// modes notes what a listener hears.
type modes struct {
	mu  sync.Mutex
	all []string
}

func (m *modes) hear(e ModeEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, fmt.Sprintf("%v: %v to %v, %v", e.Time.Sub(bubbleStart).Round(time.Millisecond), e.From, e.To, e.Cause))
}

// bubbleStart is when every bubble begins.
var bubbleStart = time.Date(2000, time.January, 1, 0, 0, 0, 0, time.UTC)

// Whoever decided to call the store just before it was given up, and called it just
// after, has tried nothing: the first try is after a second all the same.
func TestLatch_ALateFailureIsNoTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 1, Global(PerSecond(100)))
		f.fail()
		n := f.nodes[0].node
		st := n.cur.Load()
		due := st.until.Load()
		n.learn(st, errand{kind: telling}, errors.New("connection refused"))
		assert.Equal(t, due, st.until.Load())
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Greater(t, st.until.Load(), due, "that one has")
		assert.Equal(t, 2*time.Second, st.pause)
	})
}

func TestLatch_FiveFailuresThenASecondDoublingToHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard modes
		panics := func(ModeEvent) { panic("a listener") }
		f := newFleet(t, 1, Global(PerSecond(100)), WithNodeTTL(time.Hour), WithOnMode(panics), WithOnMode(heard.hear))
		s := f.nodes[0]
		f.fail()
		began := clock.Now()
		assert.Equal(t, "connection refused", s.Snapshot().Node.Cause)
		var tried []time.Duration
		calls := f.wire.takes.Load() + f.wire.beats.Load()
		for len(tried) < 8 {
			time.Sleep(10 * time.Millisecond)
			s.Take(60)
			if n := f.wire.takes.Load() + f.wire.beats.Load(); n > calls {
				assert.Equal(t, calls+1, n, "one tries for all")
				calls = n
				tried = append(tried, time.Duration(clock.Now()-began).Round(100*time.Millisecond))
			}
		}
		assert.Equal(t, []time.Duration{1e9, 3e9, 7e9, 15e9, 31e9, 61e9, 91e9, 121e9}, tried)
		f.wire.down.Store(false)
		time.Sleep(31 * time.Second)
		snap := s.Snapshot().Node
		assert.Equal(t, ModeShared, snap.Mode)
		assert.Equal(t, []string{"8s: shared to fallback, connection refused", "2m39s: fallback to shared, <nil>"}, heard.all)
		assert.Equal(t, int64(1), snap.Store.Fallbacks)
		assert.Equal(t, 151*time.Second, snap.Store.FallbackFor)
		assert.Equal(t, int64(2), snap.Panics)
		assert.Empty(t, snap.Cause)
	})
}

// A success between failures begins the count anew.
func TestLatch_CountsFailuresInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerSecond(100)), WithStrict())
		s := f.nodes[0]
		for range 10 {
			f.wire.down.Store(true)
			for range 4 {
				s.AllowN(101 - 1)
			}
			f.wire.down.Store(false)
			s.Allow()
			time.Sleep(time.Second)
		}
		assert.Equal(t, ModeShared, s.Snapshot().Node.Mode)
		f.wire.down.Store(true)
		for i := range 5 {
			assert.Equal(t, ModeShared, s.Snapshot().Node.Mode, "after %d", i)
			s.Allow()
		}
		assert.Equal(t, ModeFallback, s.Snapshot().Node.Mode)
	})
}

// An answer that was on its way when the store failed does not mean that it is back,
// nor a failure that comes late that it is gone again.
func TestLatch_LateResultsDecideNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newStill(t, 1, Global(PerSecond(100)), WithStrict(), WithFailure(FailOpen))
		s := f.nodes[0]
		var late sync.WaitGroup
		begin := func() {
			late.Go(func() { s.Allow() })
			synctest.Wait()
		}
		f.wire.delay.Store(int64(15 * time.Millisecond))
		begin()
		f.wire.delay.Store(0)
		f.wire.mute.Store(true)
		begin()
		f.wire.mute.Store(false)
		f.fail()
		time.Sleep(16 * time.Millisecond)
		assert.Equal(t, ModeFallback, s.Snapshot().Node.Mode)
		time.Sleep(time.Second)
		f.wire.down.Store(false)
		s.Allow()
		assert.Equal(t, ModeShared, s.Snapshot().Node.Mode)
		late.Wait()
		assert.Equal(t, int64(1), s.Snapshot().Node.Store.Fallbacks)
	})
}

// gate is a guard that can be shut, as an open breaker is.
type gate struct {
	mu    sync.Mutex
	shut  bool
	retry time.Duration
	calls []error
	ended []error // what ctx said after each call
}

type gateShut struct{ retry time.Duration }

func (e *gateShut) Error() string             { return "gate: shut" }
func (e *gateShut) Is(target error) bool      { return target == sluice.ErrRejected }
func (e *gateShut) Resource() string          { return "store" }
func (e *gateShut) Policy() string            { return "gate" }
func (e *gateShut) Reason() string            { return "shut" }
func (e *gateShut) RetryAfter() time.Duration { return e.retry }

func (g *gate) Do(ctx context.Context, call func(context.Context) error) error {
	g.mu.Lock()
	shut, retry := g.shut, g.retry
	g.mu.Unlock()
	if shut {
		return &gateShut{retry}
	}
	err := call(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls, g.ended = append(g.calls, err), append(g.ended, ctx.Err())
	return err
}

func (g *gate) turn(shut bool, retry time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.retry = shut, retry
}

func TestGuard_DecidesInsteadOfTheLatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := new(gate)
		f := newStill(t, 1, Global(PerSecond(100)), WithStrict(), WithStoreGuard(g))
		s := f.nodes[0]
		f.wire.mute.Store(true)
		for range 20 {
			s.Allow()
		}
		assert.Equal(t, ModeShared, s.Snapshot().Node.Mode, "failures are the guard's business")
		require.GreaterOrEqual(t, len(g.calls), 20)
		for i, err := range g.calls {
			assert.ErrorIs(t, err, context.DeadlineExceeded)
			assert.NoError(t, g.ended[i], "the time limit lies within: the guard sees it as the store's failure")
		}

		g.turn(true, 5*time.Second)
		before := s.Snapshot().Node.Store
		s.Allow()
		snap := s.Snapshot().Node
		assert.Equal(t, ModeFallback, snap.Mode)
		assert.Equal(t, "gate: shut", snap.Cause)
		assert.Equal(t, before.Rejected+1, snap.Store.Rejected)
		assert.Equal(t, before.Failures, snap.Store.Failures)

		f.wire.mute.Store(false)
		g.turn(false, 0)
		time.Sleep(5*time.Second - time.Millisecond)
		s.Allow()
		assert.Equal(t, ModeFallback, s.Snapshot().Node.Mode, "not before the guard's RetryAfter")
		time.Sleep(time.Millisecond)
		s.Allow()
		assert.Equal(t, ModeShared, s.Snapshot().Node.Mode)

		g.turn(true, 0)
		s.Allow()
		g.turn(false, 0)
		time.Sleep(time.Second - 1)
		s.Allow()
		assert.Equal(t, ModeFallback, s.Snapshot().Node.Mode)
		time.Sleep(time.Nanosecond)
		s.Allow()
		assert.Equal(t, ModeShared, s.Snapshot().Node.Mode, "after a second, if the guard does not say")
	})
}

func TestStore_APanicIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := NewShared("api", panicky{newMemoryStore(t, 16)}, Global(PerSecond(10)))
		require.NoError(t, err)
		for range 5 {
			assert.True(t, s.Allow())
		}
		assert.Equal(t, "ratelimit: the store panicked: no such thing", s.Snapshot().Node.Cause)
	})
}

type panicky struct{ Store }

func (panicky) Take(context.Context, StoreKey, Quota, Ask) (Grant, error) { panic("no such thing") }

// fail puts a fleet into ModeFallback.
func (f *fleet) fail() {
	f.t.Helper()
	f.wire.down.Store(true)
	for _, s := range f.nodes {
		for i := 0; s.Snapshot().Node.Mode == ModeShared; i++ {
			require.Less(f.t, i, 100)
			s.denied.Store(nil)
			s.Take(s.current().quota.Burst)
		}
	}
}

func TestFailOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Global(PerSecond(10)), WithFailure(FailOpen))
		f.fail()
		s := f.nodes[0]
		for range 100 {
			d := s.Take(10)
			require.True(t, d.OK())
			require.GreaterOrEqual(t, d.Remaining(), int64(0))
		}
		assert.False(t, s.AllowN(11), "more than there can be is too much even so")
		f.wire.down.Store(false)
		time.Sleep(2 * time.Second)
		assert.Equal(t, ModeShared, s.Snapshot().Node.Mode)
		assert.Zero(t, s.Snapshot().Owed)
	})
}

func TestFailClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Global(PerSecond(10)), WithFailure(FailClosed))
		f.fail()
		s := f.nodes[0]
		before := s.Snapshot().Node.Unavailable
		time.Sleep(300 * time.Millisecond)
		d := s.Take(1)
		assert.False(t, d.OK())
		assert.False(t, d.Never())
		assert.Equal(t, 700*time.Millisecond, d.RetryAfter(), "when the store is tried next")
		assert.Equal(t, "shared", d.Policy())
		err := d.Err()
		assert.ErrorIs(t, err, ErrStore)
		assert.ErrorIs(t, err, ErrLimited)
		assert.ErrorIs(t, err, sluice.ErrRejected)
		var refusal *LimitError
		require.ErrorAs(t, err, &refusal)
		assert.Equal(t, ReasonStore, refusal.Reason())

		err = s.Wait(t.Context())
		assert.ErrorIs(t, err, ErrStore)
		assert.ErrorIs(t, err, errStoreDown, "a caller who waits is told why")
		assert.ErrorIs(t, s.Do(t.Context(), nothing), ErrStore)
		snap := s.Snapshot().Node
		assert.Equal(t, before+3, snap.Unavailable)
		assert.Zero(t, snap.Refused.Limited)
	})
}

// A node that has nine tenths of the traffic keeps them for a while.
func TestReuseLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10, Global(PerSecond(1000)), WithFailure(ReuseLast), WithReuseFor(10*time.Second))
		busy, idle := f.nodes[:1], f.nodes[1:2]
		f.flood(busy, 1, time.Second/900, 5*time.Second)
		f.take()
		f.wire.down.Store(true)
		f.flood(busy, 1, time.Second/900, 8*time.Second)
		assert.InDelta(t, 900*8, f.take(), 500, "as before")
		f.flood(idle, 1, time.Second/900, time.Second)
		assert.InDelta(t, 100+100, f.take(), 10, "its share, for one that had nothing")
		time.Sleep(5 * time.Second)
		f.flood(busy, 1, time.Second/900, 10*time.Second)
		assert.InDelta(t, 100*10, f.take(), 110, "then its share")
	})
}

func TestFailLocal_LocalRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 4, Global(PerSecond(100)), WithLocalRate(PerSecond(3)))
		f.wire.down.Store(true)
		f.flood(f.nodes[:1], 1, time.Millisecond, 20*time.Second)
		assert.InDelta(t, 25+3*20, f.take(), 5)
		snap := f.nodes[0].Snapshot()
		assert.Equal(t, PerSecond(3), snap.LocalRate)
		assert.Equal(t, int64(25), snap.LocalBurst)
	})
}

// More than a node's share, and not more than there can be, is not refused for ever.
func TestFailLocal_MoreThanTheShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 10, Global(PerSecond(100)))
		f.fail()
		d := f.nodes[0].Take(11)
		assert.False(t, d.OK())
		assert.False(t, d.Never())
		assert.ErrorIs(t, d.Err(), ErrStore)
		assert.InDelta(t, time.Second, d.RetryAfter(), float64(time.Second))
		assert.True(t, f.nodes[0].Take(101).Never())
		assert.True(t, f.nodes[0].Take(-1).Never())
		assert.True(t, f.nodes[0].Take(0).OK())
	})
}

// Failing over gives nobody a fresh budget: what a node has given out before counts.
func TestFailLocal_TheMirrorIsWarm(t *testing.T) {
	for _, opts := range [][]SharedOption{nil, {WithStrict()}} {
		synctest.Test(t, func(t *testing.T) {
			f := newFleet(t, 2, Global(PerHour(100)), opts...)
			f.flood(f.nodes[:1], 1, time.Millisecond, 50*time.Millisecond) // 50 is its share of the burst
			require.Equal(t, 50, f.take())
			f.wire.down.Store(true)
			f.flood(f.nodes[:1], 1, 10*time.Millisecond, 10*time.Second)
			assert.LessOrEqual(t, int64(f.take()), f.nodes[0].current().most+1)
			f.flood(f.nodes[1:], 1, 10*time.Millisecond, 10*time.Second)
			assert.Equal(t, 50, f.take(), "one that has given out nothing has its share")
		})
	}
}

// When the store is back it is told what was given out without it, as far as time has
// not brought it back.
func TestRecovery_TellsTheStoreWhatWasGivenOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Global(PerHour(100)))
		f.fail()
		f.flood(f.nodes, 1, 10*time.Millisecond, 500*time.Millisecond)
		given := f.take()
		require.Positive(t, given)
		f.wire.down.Store(false)
		time.Sleep(35 * time.Second)
		for _, s := range f.nodes {
			assert.Zero(t, s.Snapshot().Owed)
		}
		g, err := f.wire.Store.Take(t.Context(), StoreKey{"api", ""}, f.nodes[0].current().quota, Ask{})
		require.NoError(t, err)
		assert.InDelta(t, 100-given, g.Remaining, 3)
		f.flood(f.nodes, 1, 10*time.Millisecond, 10*time.Second)
		assert.LessOrEqual(t, given+f.take(), 100+3)
	})
}

// After a long outage only the last of it counts: less than the burst in all.
func TestRecovery_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5, Global(PerSecond(100)))
		f.fail()
		f.flood(f.nodes, 1, 10*time.Millisecond, 2*time.Minute)
		f.wire.down.Store(false)
		f.wire.debited.Store(0)
		time.Sleep(31 * time.Second)
		assert.LessOrEqual(t, f.wire.debited.Load(), int64(100))
		for _, s := range f.nodes {
			assert.Equal(t, ModeShared, s.Snapshot().Node.Mode)
			assert.Zero(t, s.Snapshot().Owed)
		}
	})
}

// In an outage and after it, the fleet as a whole keeps to the limit, but for what the
// nodes had not yet told the store and what each held.
func TestRecovery_TheBoundHoldsThroughout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 5, Global(PerSecond(100)))
		go func() {
			for i := range 10 {
				time.Sleep(time.Duration(1+i%3) * time.Second)
				f.wire.down.Store(i%2 == 0)
			}
		}()
		f.flood(f.nodes, 1, 15*time.Millisecond, 30*time.Second)
		f.bounds(PerSecond(100), 100, 5*f.nodes[0].current().most+100)
		assert.Greater(t, len(f.admitted), 100*30*80/100)
	})
}

// A failed call alone, not yet an outage, is decided as one.
func TestFailLocal_ASingleFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFleet(t, 2, Global(PerHour(100)), WithStrict())
		f.wire.down.Store(true)
		d := f.nodes[0].Take(1)
		assert.True(t, d.OK())
		assert.Equal(t, int64(49), d.Remaining())
		f.wire.down.Store(false)
		assert.Equal(t, ModeShared, f.nodes[0].Snapshot().Node.Mode)
		time.Sleep(time.Second)
		assert.Zero(t, f.nodes[0].Snapshot().Owed)
		assert.Equal(t, int64(1), f.wire.debited.Load())
		assert.Equal(t, int64(1), f.nodes[0].Snapshot().Node.Store.Fallback)
	})
}
