package breaker

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A book counts what a test has admitted, and how it ended, beside the breaker.
type book struct {
	admitted, refused                             atomic.Int64
	success, failure, throttled, ignored, unspent atomic.Int64
}

// call makes one call that ends in a way that r draws.
func (k *book) call(ctx context.Context, b *Breaker, now int64, r *rand.Rand) {
	p, err := b.allow(ctx, now)
	if err != nil {
		k.refused.Add(1)
		return
	}
	k.admitted.Add(1)
	if r.IntN(8) == 0 {
		runtime.Gosched() // long enough for another goroutine to change the state
	}
	switch r.IntN(12) {
	case 0, 1, 2:
		k.failure.Add(1)
		p.done(now, errDown)
	case 3:
		k.failure.Add(1)
		p.close(now)
	case 4:
		k.throttled.Add(1)
		p.settle(now, sluice.Throttled)
	case 5:
		k.ignored.Add(1)
		p.done(now, sluice.Ignore(errDown))
	case 6:
		k.unspent.Add(1)
		p.cancel(now)
	default:
		k.success.Add(1)
		p.done(now, nil)
	}
	p.close(now) // a deferred Close that finds it settled
}

// check compares the book with b once all is quiet. A result that came too late is
// stale and nothing else, so the kinds may have lost as many as are stale.
func (k *book) check(t *testing.T, b *Breaker, now int64) {
	t.Helper()
	s := b.snapshot(now)
	got := s.Totals
	assert.Equal(t, k.admitted.Load(), got.Success+got.Failure+got.Throttled+got.Ignored+got.Stale, "admitted = settled")
	for name, pair := range map[string][2]int64{
		"success":   {got.Success, k.success.Load()},
		"failure":   {got.Failure, k.failure.Load()},
		"throttled": {got.Throttled, k.throttled.Load()},
		"ignored":   {got.Ignored, k.ignored.Load() + k.unspent.Load()},
	} {
		assert.LessOrEqual(t, pair[0], pair[1], name)
		assert.GreaterOrEqual(t, pair[0], pair[1]-got.Stale, name)
	}
	assert.Equal(t, k.refused.Load(), s.Refused.Open+s.Refused.HalfOpen+s.Refused.Recovering+s.Refused.Forced, "refused")
}

// Whatever goroutines do at once, over changes of state and the roll of buckets,
// each call is counted once, and each change follows on the one before.
func TestConservation(t *testing.T) {
	for name, opts := range map[string][]Option{
		"time window":  {WithErrorCount(20), WithErrorRatio(0.6, MinRequests(50)), WithWindow(time.Second, 4)},
		"count window": {WithErrorRatio(0.5), WithCountWindow(64), WithMinRequests(32)},
		"in flight":    {WithErrorCount(20), WithSlowCallRatio(time.Millisecond, 0.9), WithInFlightSlow()},
		"stages":       {WithConsecutiveFailures(4), WithProbes(1, 2, 4), WithProbeTolerance(0.3), WithProbeLease(time.Second)},
		"recovery":     {WithErrorCount(10), WithRecovery(Step{0.5, 300 * time.Millisecond})},
	} {
		t.Run(name, func(t *testing.T) {
			const goroutines = 8
			var events []Event // appended by one listener at a time
			b := build(t, append(opts, WithOpenFor(100*time.Millisecond), WithBackoff(1, Auto), WithOnChange(func(e Event) { events = append(events, e) }))...)
			var now atomic.Int64
			now.Store(t0)
			var k book
			var wg sync.WaitGroup
			for i := range uint64(goroutines) {
				wg.Go(func() {
					r := rand.New(rand.NewPCG(i, 1))
					for range rounds(20_000) {
						k.call(t.Context(), b, now.Add(r.Int64N(int64(2*time.Millisecond))), r)
					}
				})
			}
			wg.Wait()
			k.check(t, b, now.Load())
			assert.Zero(t, b.snapshot(now.Load()).Dropped)
			require.NotEmpty(t, events)
			from, generation := Closed, uint64(1)
			for i, e := range events {
				require.Equalf(t, from, e.From, "event %d", i)
				require.Equalf(t, generation+1, e.Generation, "event %d", i)
				from, generation = e.To, e.Generation
			}
			assert.Equal(t, generation, b.snapshot(now.Load()).Generation)
		})
	}
}

// The same while somebody else trips, resets, forces and changes the shape of the
// windows.
func TestConservation_UnderChanges(t *testing.T) {
	b := build(t, WithErrorCount(50), WithWindow(time.Second, 4), WithOpenFor(50*time.Millisecond), WithBackoff(1, Auto))
	var now, probes atomic.Int64
	now.Store(t0)
	var k book
	var wg, stopped sync.WaitGroup
	stop := make(chan struct{})
	stopped.Go(func() {
		r := rand.New(rand.NewPCG(9, 9))
		c := b.Config()
		for {
			select {
			case <-stop:
				return
			default:
			}
			switch at := now.Load(); r.IntN(6) {
			case 0:
				assert.NoError(t, b.trip(at, time.Millisecond))
			case 1:
				b.reset(at)
			case 2:
				c.Window = time.Duration(1+r.IntN(3)) * time.Second
				assert.NoError(t, b.Update(c))
			case 3:
				c.CountWindow = []int{0, 100}[r.IntN(2)]
				assert.NoError(t, b.Update(c))
			case 4:
				assert.NoError(t, b.force(at, ForcedOpen, time.Millisecond))
			case 5:
				probes.Add(int64(b.snapshot(at).Probe.Issued))
			}
			runtime.Gosched()
		}
	})
	for i := range uint64(4) {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(i, 2))
			for range rounds(50_000) {
				k.call(t.Context(), b, now.Add(r.Int64N(int64(time.Millisecond))), r)
			}
		})
	}
	wg.Wait()
	close(stop)
	stopped.Wait()
	k.check(t, b, now.Load())
}

// Failures that come at once trip at the n-th, and the ones that come with it are
// counted or stale: none is lost, and no trip is missed because everybody thought
// that another one would see it.
func TestNoTripIsMissed(t *testing.T) {
	for round := range rounds(5000) {
		n := 2 + round%7
		opts := []Option{WithErrorCount(n), WithErrorRatio(1, MinRequests(n)), WithConsecutiveFailures(n)}
		b := build(t, opts[round%3])
		var wg sync.WaitGroup
		permits := make([]*Permit, n)
		for i := range permits {
			p, err := b.allow(t.Context(), t0)
			require.NoError(t, err)
			permits[i] = &p
		}
		for _, p := range permits {
			wg.Go(func() { p.done(t0, errDown) })
		}
		wg.Wait()
		require.Equalf(t, Open, b.state(t0), "round %d", round)
		require.EqualValues(t, n, b.snapshot(t0).Totals.Failure)
	}
}

// The call that meets the gate may be a success that comes at the same moment as
// the failures.
func TestNoTripIsMissedAtTheGate(t *testing.T) {
	for round := range rounds(5000) {
		n := 2 + 2*(round%4)
		b := build(t, WithErrorRatio(0.5), WithMinRequests(n))
		var wg sync.WaitGroup
		for i := range n {
			p, err := b.allow(t.Context(), t0)
			require.NoError(t, err)
			wg.Go(func() { p.done(t0, []error{nil, errDown}[i%2]) })
		}
		wg.Wait()
		require.Equalf(t, Open, b.state(t0), "round %d", round)
	}
}

// A reader never sees more bad calls than calls, nor a state whose data are
// another's.
func TestLaw2_StateAndItsDataNeverDisagree(t *testing.T) {
	b := build(t, WithErrorRatio(0.5), WithMinRequests(10), WithOpenFor(time.Hour), WithBackoff(1, Auto), WithSlowCallRatio(time.Hour, 1))
	var wg sync.WaitGroup
	var stop atomic.Bool
	for range 2 {
		wg.Go(func() {
			for !stop.Load() {
				s := b.Snapshot()
				assert.LessOrEqual(t, s.Window.Failures, s.Window.Total)
				assert.LessOrEqual(t, s.Window.Slow, s.Window.Total)
				assert.LessOrEqual(t, s.Probe.Good+s.Probe.Bad, s.Probe.Issued)
				assert.LessOrEqual(t, s.Probe.Issued, s.Probe.Size)
				switch s.State {
				case Closed:
					assert.True(t, s.RetryAt.IsZero(), "closed with a deadline")
					assert.NotEqual(t, RuleTripped, s.Cause.Reason)
					assert.Equal(t, ProbeSnapshot{}, s.Probe)
				case Open:
					assert.Equal(t, time.Hour, s.OpenFor)
					assert.Equal(t, WindowSnapshot{}, s.Window, "open with a window")
					assert.Equal(t, ErrorRatio, s.Cause.Rule.Kind)
				}
			}
		})
	}
	for range rounds(3000) {
		for b.State() == Closed {
			_ = b.Do(t.Context(), failing)
		}
		b.Reset()
	}
	stop.Store(true)
	wg.Wait()
}
