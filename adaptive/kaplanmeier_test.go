package adaptive

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A deed is a step in the life of a limit: at a time so many calls end, then the limit
// is worked out, and it and the state are as said. 0 is as before.
type deed struct {
	at    time.Duration
	do    func(to *Timeout, now int64)
	limit time.Duration
	state TimeoutState
}

func live(t *testing.T, to *Timeout, deeds ...deed) {
	t.Helper()
	want, state := to.Value(), Cold
	for i, d := range deeds {
		to.next.Store(math.MaxInt64) // and not by one of the calls
		d.do(to, at(d.at))
		to.tick(at(d.at))
		if d.limit > 0 {
			want = d.limit
		}
		if d.state > 0 {
			state = d.state
		}
		s := to.snapshot(at(d.at))
		require.Equalf(t, want, s.Limit, "the limit after deed %d, at %v", i, d.at)
		require.Equalf(t, state, s.State, "the state after deed %d, at %v", i, d.at)
	}
}

func TestKaplanMeier_Steps(t *testing.T) {
	answer := func(n int, took time.Duration) func(*Timeout, int64) {
		return func(to *Timeout, now int64) { calls(t, to, now, n, took) }
	}
	cut := func(n int) func(*Timeout, int64) {
		return func(to *Timeout, now int64) { cuts(t, to, now, n) }
	}
	// 20 ms lie in the bucket that ends at 20.971520 ms, 1 s in that at 1.006632960 s.
	const calm = 20_971_520 * time.Nanosecond * 5 / 4
	tick := func(n int) time.Duration { return time.Duration(n) * tickEvery }

	t.Run("cold until there are twenty", func(t *testing.T) {
		live(t, build(t),
			deed{0, answer(19, 20*ms), 0, 0},
			deed{tick(1), answer(1, 20*ms), calm, Resolved},
		)
	})
	t.Run("cold and cut off, it doubles up to max", func(t *testing.T) {
		live(t, build(t, WithInitial(time.Second)),
			deed{0, cut(1), 2 * time.Second, 0},
			deed{tick(1), answer(1, 20*ms), 0, 0},
			deed{tick(2), cut(1), 4 * time.Second, 0},
			deed{tick(3), cut(1), 5 * time.Second, 0},
			deed{tick(4), cut(1), 0, 0},
		)
	})
	t.Run("not below base", func(t *testing.T) {
		live(t, build(t), deed{0, answer(100, ms), 10 * ms, Resolved})
	})
	t.Run("not above max", func(t *testing.T) {
		live(t, build(t), deed{0, answer(100, 4900*ms), 0, Resolved})
	})
	t.Run("three that time out are no alarm, four are", func(t *testing.T) {
		live(t, build(t),
			deed{0, answer(1000, 20*ms), calm, Resolved},
			deed{tick(1), cut(3), 0, 0},
			deed{tick(2), cut(1), 2 * calm, Unresolved},
		)
	})
	t.Run("nor are two in a thousand of many", func(t *testing.T) {
		live(t, build(t, WithTargetFalseTimeouts(0.01)),
			deed{0, answer(980, 20*ms), calm, Resolved},
			deed{tick(1), cut(20), 2 * calm, Unresolved}, // no alarm, but 2 % lie beyond
		)
		live(t, build(t, WithTargetFalseTimeouts(0.01)),
			deed{0, answer(990, 20*ms), calm, Resolved},
			deed{tick(1), cut(10), 0, 0},
		)
	})
	t.Run("alive, it doubles with each tick that saw a call time out", func(t *testing.T) {
		alive := func(to *Timeout, now int64) { calls(t, to, now, 10, 20*ms); cuts(t, to, now, 5) }
		live(t, build(t),
			deed{0, answer(1000, 20*ms), calm, Resolved},
			deed{tick(1), alive, 2 * calm, Unresolved},
			deed{tick(2), answer(10, 20*ms), 0, 0},
			deed{tick(3), alive, 4 * calm, 0},
			deed{tick(4), alive, 8 * calm, 0},
			deed{tick(5), alive, 16 * calm, 0},
			deed{tick(6), alive, 32 * calm, 0},
			deed{tick(7), alive, 64 * calm, 0},
			deed{tick(8), alive, 128 * calm, 0},
			deed{tick(9), alive, 5 * time.Second, 0},
		)
	})
	t.Run("not by calls that began under a shorter one", func(t *testing.T) {
		shorter := func(limit time.Duration) func(*Timeout, int64) {
			return func(to *Timeout, now int64) {
				calls(t, to, now, 10, 20*ms)
				w := to.newTerm(to.plan.Load(), Estimate{Limit: limit})
				w.settle(t.Context(), now-int64(limit), now, sluice.Failure, errorTraits{})
			}
		}
		live(t, build(t),
			deed{0, answer(1000, 20*ms), calm, Resolved},
			deed{tick(1), cut(5), 2 * calm, Unresolved},
			deed{tick(2), shorter(calm), 0, 0},
			deed{tick(3), shorter(2 * calm * 89 / 100), 0, 0},
			deed{tick(4), shorter(2 * calm * 91 / 100), 4 * calm, 0},
		)
	})
	t.Run("down, it stays within four times", func(t *testing.T) {
		live(t, build(t),
			deed{0, answer(1000, 20*ms), calm, Resolved},
			deed{4 * time.Second, cut(20), 2 * calm, Outage},
			deed{4*time.Second + tick(1), cut(20), 4 * calm, 0},
			deed{4*time.Second + tick(2), cut(20), 0, 0},
			deed{6 * time.Second, cut(20), 0, 0},
		)
		live(t, build(t, WithOutageCap(1)),
			deed{0, answer(1000, 20*ms), calm, Resolved},
			deed{4 * time.Second, cut(20), 0, Outage},
		)
	})
	t.Run("a few probes that were answered count double", func(t *testing.T) {
		const asked = 1_006_632_960 * time.Nanosecond * 5 / 4
		probe := func(n int) func(*Timeout, int64) {
			return func(to *Timeout, now int64) {
				for range n {
					a := Attempt{term: to.plan.Load().longest, start: now - int64(time.Second), ctx: t.Context()}
					a.done(now, nil)
				}
			}
		}
		live(t, build(t),
			deed{0, answer(1000, 20*ms), calm, Resolved},
			deed{4 * time.Second, cut(20), 2 * calm, Outage},
			deed{4*time.Second + tick(1), probe(3), 2 * asked, Resolved},
		)
		live(t, build(t),
			deed{0, answer(1000, 20*ms), calm, Resolved},
			deed{4 * time.Second, cut(20), 2 * calm, Outage},
			deed{4*time.Second + tick(1), probe(10), asked, Resolved},
		)
	})
	t.Run("an outage that is over is forgotten", func(t *testing.T) {
		live(t, build(t),
			deed{0, answer(1000, 20*ms), calm, Resolved},
			deed{4 * time.Second, cut(50), 2 * calm, Outage},
			deed{5 * time.Second, cut(50), 4 * calm, 0},
			deed{6 * time.Second, answer(100, 20*ms), 0, Unresolved}, // half of the last two seconds
			deed{7 * time.Second, answer(100, 20*ms), 0, 0},
			deed{8 * time.Second, answer(100, 20*ms), 0, 0},
			deed{9 * time.Second, answer(100, 20*ms), calm, Resolved},
		)
	})
	t.Run("what has become faster is not measured by what was", func(t *testing.T) {
		live(t, build(t),
			deed{0, answer(1000, time.Second), 1_006_632_960 * 5 / 4, Resolved},
			deed{9 * time.Second, answer(100, 20*ms), 0, 0},
			deed{11 * time.Second, answer(1, 20*ms), calm, 0},
		)
	})
	t.Run("a stall of ours stretches it", func(t *testing.T) {
		late := func(by time.Duration) func(*Timeout, int64) {
			return func(to *Timeout, now int64) {
				a, err := to.begin(t.Context(), now-int64(to.Value()+by))
				require.NoError(t, err)
				a.done(now, context.DeadlineExceeded)
			}
		}
		live(t, build(t),
			deed{0, answer(10_000, 20*ms), calm, Resolved},
			deed{tick(1), late(10 * ms), 0, 0},
			deed{tick(2), late(30 * ms), calm + 30*ms, 0},
			deed{tick(3), late(5 * ms), 0, 0},
			deed{tick(4), late(20 * ms), calm + 50*ms, 0}, // beyond a limit that was stretched already
			deed{tick(5), late(time.Second), 4 * calm, 0},
			deed{20 * time.Minute, answer(100, 20*ms), 0, 0},
			deed{31 * time.Minute, answer(100, 20*ms), calm, 0},
		)
	})
}

// While no calls end, as behind an open breaker, nothing that was learnt is lost.
func TestKaplanMeier_SilenceChangesNothing(t *testing.T) {
	to := settled(t)
	limit := to.Value()
	require.Less(t, limit, 100*ms)
	calls(t, to, at(time.Hour), 1, 20*ms)
	assert.Equal(t, limit, to.Value())
	assert.Equal(t, Cold, to.snapshot(at(time.Hour)).State)
}
