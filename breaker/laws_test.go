package breaker

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Time is monotonic and the same inside a bubble and outside: a breaker made on
// one side works on the other.
func TestLaw1_BreakerMadeOutsideABubbleWorksInIt(t *testing.T) {
	b := build(t, WithErrorCount(1))
	synctest.Test(t, func(t *testing.T) {
		require.ErrorIs(t, b.Do(t.Context(), func(context.Context) error { return errDown }), errDown)
		require.Equal(t, Open, b.State())
		time.Sleep(4 * time.Second)
		require.Equal(t, Open, b.State())
		time.Sleep(time.Second)
		require.Equal(t, HalfOpen, b.State())
		require.NoError(t, b.Do(t.Context(), func(ctx context.Context) error {
			assert.True(t, sluice.IsProbe(ctx))
			return nil
		}))
		require.Equal(t, Closed, b.State())
	})
}

// However a call ends, its admission does: the seat of a probe is decided or free,
// and a closed breaker goes on.
func TestLaw4_EveryAdmissionEnds(t *testing.T) {
	fail, gone := errDown, context.Canceled
	for name, c := range map[string]struct {
		end  func(p *Permit, now int64, leave func(error))
		want State // after a probe that ended so
	}{
		"done":                 {func(p *Permit, now int64, _ func(error)) { p.done(now, nil) }, Closed},
		"failed":               {func(p *Permit, now int64, _ func(error)) { p.done(now, fail) }, Open},
		"ignored":              {func(p *Permit, now int64, _ func(error)) { p.done(now, sluice.Ignore(fail)) }, HalfOpen},
		"cancelled":            {func(p *Permit, now int64, _ func(error)) { p.cancel(now) }, HalfOpen},
		"caller gone":          {func(p *Permit, now int64, leave func(error)) { leave(gone); p.done(now, gone) }, HalfOpen},
		"closed":               {func(p *Permit, now int64, _ func(error)) { p.close(now) }, Open},
		"closed, caller gone":  {func(p *Permit, now int64, leave func(error)) { leave(gone); p.close(now) }, HalfOpen},
		"success, caller gone": {func(p *Permit, now int64, leave func(error)) { leave(gone); p.done(now, nil) }, Closed},
		"throttled":            {func(p *Permit, now int64, _ func(error)) { p.settle(now, sluice.Throttled) }, HalfOpen},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStory(t, WithErrorCount(1)).tell(step{0, F, Open})
			who := &caller{Context: t.Context()}
			p, err := s.b.allow(who, at(5))
			require.NoError(t, err)
			c.end(&p, at(5), func(why error) { who.gone = why })
			require.Equal(t, c.want, s.b.state(at(5)))
			_, err = s.b.allow(t.Context(), at(1000))
			assert.NoError(t, err, "and there is always a next one")
		})
	}
}

// Local refusals feed nothing, whoever refused, and a mark does not make one
// into the backend's fault by being wrapped in it.
func TestLaw5_LocalRefusalsFeedNothing(t *testing.T) {
	b := build(t, WithErrorCount(1), WithSlowCallRatio(time.Nanosecond, 0.000001))
	for _, err := range []error{sluice.ErrRejected, fmt.Errorf("limiter: %w", sluice.ErrRejected), errors.Join(errDown, sluice.ErrRejected), ErrOpen} {
		if err == ErrOpen {
			err = &OpenError{}
		}
		p, refused := b.allow(t.Context(), t0)
		require.NoError(t, refused)
		p.done(t0+int64(time.Hour), err)
		assert.Equal(t, WindowSnapshot{}, b.snapshot(t0+int64(time.Hour)).Window)
	}
	assert.Equal(t, Closed, b.state(t0))
}

// A ratio trips exactly where the fractions say: for thresholds of up to six
// decimals and n up to 500, at the least k that reaches it and not at the one before.
func TestLaw7_TripsExactlyWhereTheFractionsSay(t *testing.T) {
	thresholds := []int64{1, 2000, 2004, 290_000, 333_333, 333_334, 500_000, 570_000, 666_667, 999_999, 1_000_000}
	r := rand.New(rand.NewPCG(7, 7))
	for len(thresholds) < 22 {
		thresholds = append(thresholds, 1+r.Int64N(1_000_000))
	}
	if testing.Short() {
		thresholds = append(thresholds[:5], thresholds[18:]...)
	}
	for _, millionths := range thresholds {
		ratio := float64(millionths) / 1_000_000
		rule := big.NewRat(millionths, 1_000_000)
		for n := int64(1); n <= 500; n += 1 + r.Int64N(11) {
			// The least k that trips, and the one before it; they decide for all others.
			least := new(big.Int).Div(new(big.Int).Add(big.NewInt(millionths*n), big.NewInt(999_999)), big.NewInt(1_000_000)).Int64()
			require.GreaterOrEqual(t, big.NewRat(least, n).Cmp(rule), 0)
			for k := max(0, least-1); k <= least; k++ {
				want := Closed
				if k > 0 && big.NewRat(k, n).Cmp(rule) >= 0 {
					want = Open
				}
				b := build(t, WithErrorRatio(ratio), WithMinRequests(int(n)))
				for i := range n {
					p, err := b.allow(t.Context(), t0)
					require.NoErrorf(t, err, "%d of %d at %v", k, n, ratio)
					if i < n-k {
						p.done(t0, nil)
					} else {
						p.done(t0, errDown)
					}
				}
				require.Equalf(t, want, b.state(t0), "%d of %d at %v", k, n, ratio)
			}
		}
	}
}

// Each complaint about a configuration says field, value and what is wanted, all
// of them at once, and nothing is repaired.
func TestLaw7_ContradictionsAreErrors(t *testing.T) {
	b, err := New("payments", WithErrorRatio(1.5), WithOpenFor(0), WithJitter(1), WithProbes(), WithWindow(time.Second, 7))
	require.Error(t, err)
	assert.Nil(t, b)
	for _, part := range []string{"Ratio 1.5", "OpenFor 0s", "Jitter 1 ", "Probes", "Window 1s"} {
		assert.Contains(t, err.Error(), part)
	}
}

// An equal configuration touches nothing, in whatever state.
func TestLaw9_EqualConfigTouchesNothing(t *testing.T) {
	s := newStory(t, WithErrorCount(2), WithSlowCallRatio(time.Second, 0.5, MinRequests(100)), WithProbes(1, 2), WithRecovery(Step{0.5, time.Minute}))
	same := func() {
		t.Helper()
		before, events := s.timeless(), len(s.events)
		require.NoError(t, s.b.Update(s.b.Config()))
		assert.Equal(t, before, s.timeless())
		assert.Len(t, s.events, events)
	}
	s.tell(step{0, F, Closed})
	same()
	s.tell(step{1, F, Open})
	same()
	s.tell(step{6, S, HalfOpen}, step{6, A("probe"), HalfOpen})
	same()
	s.tell(step{6, done("probe", nil), HalfOpen}, step{6, S, Closed})
	same()
}
