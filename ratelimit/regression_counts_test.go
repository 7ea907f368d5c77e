package ratelimit

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Sentinel refused calls below the threshold, and what its metrics showed was of other
// windows than what its rules had looked at, so that nobody could find out why: "we dare
// not use it in production". Here each answer has the level that it was given at, each
// refusal is below what was asked for and says who refused and by what rule, and the
// totals are the answers added up.
// https://github.com/alibaba/Sentinel/issues/1002
// https://github.com/alibaba/Sentinel/issues/1028
// https://github.com/alibaba/Sentinel/issues/1041
func TestScenario24_NothingIsRefusedBelowTheThreshold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const burst = 50
		l, err := New("orders", PerSecond(20), WithBurst(burst))
		require.NoError(t, err)
		rnd := rand.New(rand.NewPCG(2, 4))
		level := int64(burst) * 50 // of 50 ms a token, in ms
		var want Snapshot
		for range 20_000 {
			gap := rnd.Int64N(150)
			time.Sleep(time.Duration(gap) * time.Millisecond)
			level = min(burst*50, level+gap)

			n := 1 + rnd.Int64N(4)
			d := l.Take(n)
			there := level / 50
			require.Equal(t, there >= n, d.OK(), "%d asked for, %d there", n, there)
			if d.OK() {
				level -= n * 50
				there -= n
				want.Totals.Admitted++
				want.Totals.Tokens += n
			} else {
				want.Refused.Limited++
				var refusal *LimitError
				require.ErrorAs(t, d.Err(), &refusal)
				require.Equal(t, "orders", refusal.Resource())
				require.Equal(t, "token_bucket", refusal.Policy())
				require.Equal(t, ReasonLimited, refusal.Reason())
				require.Equal(t, time.Duration(n*50-level)*time.Millisecond, refusal.RetryAfter())
			}
			require.Equal(t, there, d.Remaining())
			require.InDelta(t, float64(level)/50, l.Snapshot().Level, 1e-6)
		}
		got := l.Snapshot()
		assert.Equal(t, want.Totals, got.Totals)
		assert.Equal(t, want.Refused, got.Refused)
		assert.Greater(t, got.Refused.Limited, int64(2000), "many were refused")
	})
}
