package breaker

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A limiter behind the breaker refused the probe, nobody told the breaker, and it
// stayed half-open for ever: https://github.com/alibaba/Sentinel/issues/1638,
// https://github.com/alibaba/sentinel-golang/issues/196. What was given back
// unspent is free for the next caller, and is no change of state.
func TestT01_ProbeBlockedByALaterStageGivesItsSeatBack(t *testing.T) {
	s := newStory(t, WithErrorCount(1)).tell(
		step{0, F, Open},
		step{5.1, A("blocked"), HalfOpen},
		step{5.1, R, HalfOpen},
		step{5.1, cancelled("blocked"), HalfOpen},
		step{5.1, A("probe"), HalfOpen},
		step{5.1, R, HalfOpen},
		step{5.1, done("probe", nil), Closed},
	)
	assert.Equal(t, []State{Closed, Open, HalfOpen, Closed}, s.path())
}

// Two rules on one resource were two breakers, and each swallowed the other's
// probe: https://github.com/alibaba/Sentinel/issues/2136. Here rules only trip;
// there is one state and one probe.
func TestT02_TwoRulesShareOneStateAndOneProbe(t *testing.T) {
	both := []Option{WithErrorCount(2, OpenFor(5*time.Second)), WithErrorRatio(0.5, MinRequests(2), OpenFor(20*time.Second))}

	t.Run("both trip in one evaluation: the longer one opens", func(t *testing.T) {
		s := newStory(t, both...).tell(
			step{0, F, Closed},
			step{0, F, Open},
			step{5.1, R, Open},
			step{19.9, R, Open},
			step{20.1, A("probe"), HalfOpen},
			step{20.1, R, HalfOpen},
			step{20.2, done("probe", nil), Closed},
		)
		assert.Equal(t, ErrorRatio, s.events[0].Cause.Rule.Kind, "the rule that opens for longest is named")
	})
	t.Run("only the shorter one trips", func(t *testing.T) {
		newStory(t, both...).tell(
			step{0, times(3, S), Closed},
			step{0, times(2, F), Open}, // 2 of 5
			step{4.9, R, Open},
			step{5.1, A("probe"), HalfOpen},
			step{5.1, R, HalfOpen},
			step{5.2, done("probe", nil), Closed},
		)
	})
	t.Run("two rules that are the same", func(t *testing.T) {
		newStory(t, WithErrorCount(1), WithErrorCount(1)).tell(
			step{0, F, Open},
			step{5.1, A("probe"), HalfOpen},
			step{5.1, R, HalfOpen},
			step{5.1, done("probe", nil), Closed},
		)
	})
}

// The same, at random: whatever happens to calls and probes, there are never two
// probes, and never a refusal that no time heals.
func TestT02_RandomInterleavingsNeverShowTwoProbes(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		b := build(t, WithErrorCount(2, OpenFor(5*time.Second)), WithErrorRatio(0.5, MinRequests(2), OpenFor(20*time.Second)))
		var probe *Permit
		now := t0
		for range 60 {
			now += r.Int64N(int64(4 * time.Second))
			p, err := b.allow(t.Context(), now)
			switch b.state(now) {
			case HalfOpen:
				if err == nil {
					require.Nilf(t, probe, "seed %d: a second probe", seed)
					probe = &p
				}
			case Closed:
				probe = nil
				require.NoErrorf(t, err, "seed %d: closed, and refuses", seed)
				p.done(now, []error{nil, errDown}[r.IntN(2)])
			case Open:
				require.ErrorIsf(t, err, ErrOpen, "seed %d", seed)
				probe = nil // what was out has failed, or is lost
			}
			if probe == nil {
				continue
			}
			switch now += r.Int64N(int64(4 * time.Second)); r.IntN(4) {
			case 0:
				probe.done(now, nil)
			case 1:
				probe.done(now, errDown)
			case 2:
				probe.cancel(now)
			case 3:
				continue // it hangs
			}
			probe = nil
		}
		_, err := b.allow(t.Context(), now+int64(time.Hour)) // a lost probe is found here
		if err != nil {
			_, err = b.allow(t.Context(), now+int64(3*time.Hour))
		}
		require.NoErrorf(t, err, "seed %d: refused for ever", seed)
	}
}

// The last probe was ignored and its permit never came back:
// https://github.com/resilience4j/resilience4j/issues/544; or its cancellation
// closed the circuit: https://github.com/App-vNext/Polly/issues/1979,
// https://github.com/App-vNext/Polly/issues/311. It must do neither, nor reopen.
func TestT05_CancelledProbeNeitherClosesNorReopens(t *testing.T) {
	s := newStory(t, WithErrorCount(1), WithProbes(2)).tell(
		step{0, F, Open},
		step{5.1, X, HalfOpen},
	)
	assert.Zero(t, s.snap().Probe.Issued, "the seat came back")
	s.tell(
		step{5.1, times(50, X), HalfOpen},
		step{5.2, S, HalfOpen},
		step{5.2, S, Closed},
	)
	assert.Equal(t, []State{Closed, Open, HalfOpen, Closed}, s.path())
}

// A call that began before the trip returned late and closed the circuit, or
// decided in the place of the probe: https://github.com/cep21/circuit/pull/159,
// https://github.com/App-vNext/Polly/issues/217,
// https://github.com/App-vNext/Polly/pull/223,
// https://github.com/Netflix/Hystrix/issues/1350.
func TestT06_StaleResultDecidesNothing(t *testing.T) {
	t.Run("success while open", func(t *testing.T) {
		s := newStory(t, WithErrorCount(1)).tell(
			step{0, A("early"), Closed},
			step{0.1, F, Open},
			step{0.2, done("early", nil), Open},
			step{5.0, R, Open},
			step{5.1, look, HalfOpen},
		)
		assert.EqualValues(t, 1, s.snap().Totals.Stale)
	})
	for _, late := range []error{nil, errDown} {
		for _, verdict := range []struct {
			err  error
			want State
		}{{nil, Closed}, {errDown, Open}} {
			t.Run(fmt.Sprintf("%v while a probe runs that returns %v", late, verdict.err), func(t *testing.T) {
				s := newStory(t, WithErrorCount(1)).tell(
					step{0, A("early"), Closed},
					step{0.1, F, Open},
					step{5.2, A("probe"), HalfOpen},
					step{5.2, done("early", late), HalfOpen},
					step{5.2, R, HalfOpen},
					step{5.3, done("probe", verdict.err), verdict.want},
				)
				assert.Zero(t, s.snap().Window.Total)
			})
		}
	}
}

// ProbeNum 3 let 1 000 of 1 000 through:
// https://github.com/alibaba/sentinel-golang/issues/411; permits did not bound
// what ran in half-open: https://github.com/resilience4j/resilience4j/issues/1432,
// https://github.com/resilience4j/resilience4j/issues/1090. And users do not
// guess that MaxRequests also means how many must succeed:
// https://github.com/sony/gobreaker/issues/53.
func TestT18_HalfOpenAdmitsExactlyItsProbes(t *testing.T) {
	s := newStory(t, WithErrorCount(1), WithProbes(3)).tell(
		step{0, A("stale"), Closed},
		step{0, F, Open},
	)
	var admitted, refused atomic.Int64
	rush := func() {
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				if _, err := s.b.allow(t.Context(), at(5.1)); err != nil {
					refused.Add(1)
				} else {
					admitted.Add(1)
				}
			})
		}
		wg.Wait()
	}
	rush()
	assert.EqualValues(t, 3, admitted.Load())
	assert.EqualValues(t, 997, refused.Load())
	s.tell(step{5.1, cancelled("stale"), HalfOpen}) // it holds no seat of this stage
	rush()
	assert.EqualValues(t, 3, admitted.Load())
}

// One after another, three probes must succeed, and a fourth caller is not one.
func TestT18_SequentialCallersNeedAllProbesToSucceed(t *testing.T) {
	newStory(t, WithErrorCount(1), WithProbes(3)).tell(
		step{0, F, Open},
		step{5.1, S, HalfOpen},
		step{5.2, S, HalfOpen},
		step{5.3, A("third"), HalfOpen},
		step{5.3, R, HalfOpen},
		step{5.4, done("third", nil), Closed},
	)
}
