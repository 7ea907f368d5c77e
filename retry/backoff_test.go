package retry

import (
	"context"
	"math"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluicego/sluice"
)

// However many attempts there were, a wait is between nothing and the longest, and does
// not overflow.
func TestWait_HugeAttempts(t *testing.T) {
	const forever = time.Duration(math.MaxInt64)
	for _, c := range []struct {
		first  time.Duration
		factor float64
		max    time.Duration
	}{
		{50 * time.Millisecond, 2, 2 * time.Second}, {1, 1000, forever}, {forever, 1000, forever}, {0, 2, time.Second},
		{1, 1, 1}, {time.Hour, 1.0000001, forever}, {0, 1000, 0},
	} {
		p := newPlan(Config{Backoff: c.first, BackoffFactor: c.factor, BackoffMax: c.max, Jitter: 1, MaxRetryAfter: forever})
		last := time.Duration(0)
		for _, made := range []int{1, 2, 3, 10, 62, 63, 64, 100, 1023, 1024, 5000, math.MaxInt32} {
			longest, ok := p.wait(made, errDown, func() float64 { return 0 })
			assert.True(t, ok)
			assert.LessOrEqual(t, longest, c.max)
			assert.GreaterOrEqualf(t, longest, last, "%+v after %d attempts", c, made)
			last = longest
			for _, random := range []float64{0.5, 1 - 1.0/(1<<53)} {
				d, _ := p.wait(made, errDown, func() float64 { return random })
				assert.GreaterOrEqual(t, d, time.Duration(0))
				assert.LessOrEqual(t, d, longest)
			}
			asked, ok := p.wait(made, sluice.WithRetryAfter(errDown, forever), func() float64 { return 0 })
			assert.True(t, ok)
			assert.Equal(t, forever, asked, "with what was asked for on top it does not overflow either")
		}
	}
}

// A rejection that says "never" is kept, wherever it comes from.
func TestWait_Never(t *testing.T) {
	p := newPlan(DefaultConfig())
	_, ok := p.wait(1, never{}, func() float64 { return 0 })
	assert.False(t, ok)
}

type never struct{}

func (never) Error() string             { return "no" }
func (never) Resource() string          { return "" }
func (never) Policy() string            { return "" }
func (never) Reason() string            { return "" }
func (never) RetryAfter() time.Duration { return -1 }

func FuzzGrown(f *testing.F) {
	f.Add(int64(50*time.Millisecond), 2.0, 3, int64(2*time.Second))
	f.Add(int64(math.MaxInt64), 1000.0, 200, int64(math.MaxInt64))
	f.Add(int64(0), 1000.0, 200, int64(1))
	f.Add(int64(3), 1.5, 40, int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, first int64, factor float64, n int, most int64) {
		if first < 0 || most < first || n < 0 || n > 200 || !(factor >= 1 && factor <= maxFactor) {
			t.Skip()
		}
		want := new(big.Float).SetPrec(2000).SetInt64(first)
		for range n {
			want.Mul(want, big.NewFloat(factor))
		}
		got := big.NewFloat(float64(grown(time.Duration(first), factor, n, time.Duration(most))))
		if limit := new(big.Float).SetInt64(most); want.Cmp(limit) > 0 {
			want = limit
		}
		off := new(big.Float).Sub(got, want)
		bound := new(big.Float).Add(new(big.Float).Mul(want, big.NewFloat(1e-12)), big.NewFloat(1))
		if off.Abs(off).Cmp(bound) > 0 {
			t.Fatalf("%d · %v^%d, at most %d: %v, want %v", first, factor, n, most, got, want)
		}
	})
}

// A limit for an attempt does not overflow either, and is never negative.
func TestLimit_Bounds(t *testing.T) {
	p := newPlan(Config{Attempts: math.MaxInt32, AttemptTimeout: time.Hour, AttemptGrowth: 1000, SplitDeadline: true})
	assert.Equal(t, time.Duration(math.MaxInt64), p.limit(context.Background(), math.MaxInt32, t0))
	past, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	assert.Zero(t, p.limit(past, 0, t0))
	assert.Zero(t, p.limit(past, math.MaxInt32, t0))
}
