package ratelimit

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rates are those that everything here is tried with; exact says that the scale has
// no rounding at all.
var rates = []struct {
	rate  Rate
	exact bool
}{
	{PerDay(1), true},
	{Rate{1, maxPer}, true},
	{PerHour(1000), true},
	{PerMinute(17), false},
	{Every(100 * time.Millisecond), true},
	{PerSecond(7), true},
	{Rate{999, 1000 * time.Second}, false},
	{PerSecond(150), true},
	{PerSecond(997), false},
	{PerSecond(3_000_000), true},
	{PerSecond(7_000_003), false},
	{PerSecond(600_000_000), true},
	{PerSecond(999_999_937), false},
	{PerSecond(2_000_000_000), true},
	{PerSecond(9_700_000_000), false},
	{PerSecond(10_000_000_000), true},
}

func TestScale_IsExactWhereItSays(t *testing.T) {
	for _, r := range rates {
		t.Run(r.rate.String(), func(t *testing.T) {
			require.NoError(t, r.rate.Validate())
			const epoch = 1_000_003
			s := newScale(r.rate.perNano(), epoch)
			perNano := new(big.Rat).Mul(r.rate.perNano(), big.NewRat(s.unit, 1)) // in units
			for range 2000 {
				at := rand.Int64N(min(1<<(1+rand.IntN(57)), maxSpan))
				produced := new(big.Rat).Mul(perNano, big.NewRat(at, 1))
				behind := new(big.Rat).Sub(produced, new(big.Rat).SetInt64(s.at(epoch+at)))
				require.GreaterOrEqual(t, behind.Sign(), 0, "it is never ahead")
				if r.exact {
					require.Zero(t, behind.Sign(), "at %d", at)
					continue
				}
				// Rounded down to a unit, and by mul.
				require.Negative(t, behind.Cmp(big.NewRat(5, 4)), "at %d it is behind by %v", at, behind)
			}
		})
	}
}

func TestScale_RisesWithEveryNanosecondAndKnowsWhen(t *testing.T) {
	for _, r := range rates {
		s := newScale(r.rate.perNano(), 1)
		require.GreaterOrEqual(t, s.mul, uint64(1)<<fraction)
		require.LessOrEqual(t, s.mul, uint64(maxUnits)<<fraction)
		for range 2000 {
			now := 1 + rand.Int64N(min(1<<(1+rand.IntN(57)), maxSpan-1))
			v := s.at(now)
			require.Less(t, v, s.at(now+1), "%v at %d", r.rate, now)
			require.EqualValues(t, now-1, s.span(v), "%v: a position tells its time", r.rate)

			units := rand.Int64N(1 << (1 + rand.IntN(50)))
			wait := int64(s.between(v, v+units))
			if now+wait > maxSpan {
				continue
			}
			require.GreaterOrEqual(t, s.at(now+wait), v+units)
			if wait > 0 {
				require.Less(t, s.at(now+wait-1), v+units, "%v: a nanosecond sooner is too soon", r.rate)
			}
		}
	}
}

func TestScale_StaysWithinItsSpan(t *testing.T) {
	const epoch = 1 << 40
	for _, r := range rates {
		s := newScale(r.rate.perNano(), epoch)
		assert.Zero(t, s.at(epoch))
		assert.Zero(t, s.at(epoch-1), "before it began")
		assert.Zero(t, s.at(1))
		assert.LessOrEqual(t, s.at(epoch+maxSpan), int64(1)<<61)
		assert.Equal(t, s.at(epoch+maxSpan), s.at(epoch+maxSpan+int64(time.Hour)), "it stops, and does not turn over")
		assert.False(t, s.ended(epoch+maxSpan))
		assert.True(t, s.ended(epoch+maxSpan+1))
	}
}
