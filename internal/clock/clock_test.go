package clock

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNow_IsAtLeastOneAndNeverGoesBack(t *testing.T) {
	last := Now()
	require.GreaterOrEqual(t, last, int64(1))
	for range 100_000 {
		now := Now()
		require.GreaterOrEqual(t, now, last)
		last = now
	}
}

func TestNow_CountsTheSameNanosecondsAsTheRuntime(t *testing.T) {
	before := time.Since(base)
	now := Now()
	after := time.Since(base)
	assert.GreaterOrEqual(t, now, int64(before)+1)
	assert.LessOrEqual(t, now, int64(after)+1)
}

func TestAfter(t *testing.T) {
	const last = math.MaxInt64
	for _, c := range []struct {
		name string
		now  int64
		d    time.Duration
		want int64
	}{
		{"adds", 100, 20, 120},
		{"zero", 100, 0, 100},
		{"negative counts as zero", 100, -1, 100},
		{"the most negative counts as zero", 100, math.MinInt64, 100},
		{"just fits", 1, last - 1, last},
		{"one too far", 2, last - 1, last},
		{"for ever", 1, last, last},
		{"from the last instant", last, 1, last},
	} {
		assert.Equal(t, c.want, After(c.now, c.d), c.name)
	}
}

func TestAt_IsExactToTheNanosecond(t *testing.T) {
	assert.Equal(t, int64(1), At(base))
	assert.Equal(t, int64(2), At(base.Add(1)))
	assert.Equal(t, int64(time.Hour)+1, At(base.Add(time.Hour)))
}

func TestAt_AgreesWithNow(t *testing.T) {
	before := Now()
	deadline := time.Now().Add(time.Minute)
	after := Now()
	assert.GreaterOrEqual(t, At(deadline), After(before, time.Minute))
	assert.LessOrEqual(t, At(deadline), After(after, time.Minute))
}

// A deadline read from a header or a config has no monotonic reading.
func TestAt_TakesADeadlineWithoutAMonotonicReading(t *testing.T) {
	assert.Equal(t, int64(time.Hour)+1, At(base.Add(time.Hour).Round(0)))
}

func TestAt_BeforeTheProcessBeganIsOne(t *testing.T) {
	assert.Equal(t, int64(1), At(base.Add(-1)))
	assert.Equal(t, int64(1), At(time.Unix(0, 0)))
	assert.Equal(t, int64(1), At(time.Time{}))
}

func TestAt_BeyondWhatADurationHoldsIsTheLastInstant(t *testing.T) {
	assert.Equal(t, int64(math.MaxInt64), At(time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)))
}

func TestNothingAllocates(t *testing.T) {
	deadline := time.Now().Add(time.Second)
	past := base.Add(-time.Second)
	var sum int64
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		now := Now()
		sum += After(now, time.Second) + At(deadline) + At(past)
	}))
}

// A bubble begins at midnight on 2000-01-01, whenever the process did. Without
// the correction Now would be about 27 years negative in there, a zero
// timestamp would lie in the future, and every deadline would look passed.
func TestBubble_NowStartsAtOneAndFollowsTheBubble(t *testing.T) {
	for range 2 { // each bubble has a clock of its own
		synctest.Test(t, func(t *testing.T) {
			require.Negative(t, time.Since(base), "what Now and At tell a bubble by")
			require.Equal(t, int64(1), Now())
			time.Sleep(time.Nanosecond)
			require.Equal(t, int64(2), Now())
			time.Sleep(24 * time.Hour)
			require.Equal(t, int64(24*time.Hour)+2, Now())
		})
	}
}

func TestBubble_AtAgreesWithNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		assert.Equal(t, Now(), At(time.Now()))
		assert.Equal(t, After(Now(), time.Second), At(time.Now().Add(time.Second)))
		assert.Equal(t, Now()-int64(time.Minute), At(time.Now().Add(-time.Minute)))

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		deadline, ok := ctx.Deadline()
		require.True(t, ok)
		assert.Equal(t, After(Now(), time.Minute), At(deadline))
	})
}

func TestBubble_AtBeforeTheBubbleBeganIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		assert.Equal(t, int64(1), At(time.Now().Add(-1)))
		assert.Equal(t, int64(1), At(time.Unix(0, 0)))
		assert.Equal(t, int64(1), At(time.Time{}))
	})
}

// An object made at package level holds a time from outside the bubble that
// uses it. What it waits for must come after as long as the process is old, plus
// what it waits for, and not after 27 years or at once.
func TestBubble_UsesWhatWasMadeOutside(t *testing.T) {
	made := Now()
	until := After(made, time.Hour)
	deadline := At(base.Add(time.Hour))
	synctest.Test(t, func(t *testing.T) {
		assert.LessOrEqual(t, Now(), made, "no time has passed for it yet")
		assert.Greater(t, until, Now())
		assert.Equal(t, deadline, At(base.Add(time.Hour)), "a deadline means the same on both sides")
		time.Sleep(time.Duration(made) + time.Hour)
		assert.LessOrEqual(t, until, Now())
	})
}

// The other way round: made within, used after the bubble is gone.
func TestBubble_LeavesWhatCanBeUsedOutside(t *testing.T) {
	var made int64
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Minute)
		made = Now()
	})
	assert.Equal(t, int64(time.Minute)+1, made)
	age := Now() - made
	assert.Less(t, age, int64(time.Since(base)), "it is at most a minute in the future, never decades off")
	assert.GreaterOrEqual(t, age, -int64(time.Minute))
}
