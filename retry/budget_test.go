package retry

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	ms  = int64(time.Millisecond)
	sec = int64(time.Second)
	// t0 is some time in the life of a process.
	t0 = 1000 * sec
)

// budget makes one at t0.
func budget(t testing.TB, opts ...BudgetOption) *Budget {
	t.Helper()
	b, err := NewBudget("payments", opts...)
	require.NoError(t, err)
	return newBudget(b.name, b.config, t0)
}

// deposits makes n calls at one time.
func deposits(b *Budget, now int64, n int) {
	for range n {
		b.deposit(now)
	}
}

// granted asks n times at one time.
func granted(b *Budget, now int64, n int) int {
	got := 0
	for range n {
		if b.withdraw(now) {
			got++
		}
	}
	return got
}

// A budget's life, as calls and requests for repetitions: 10 % and 1/s over 10 s.
func TestBudget_Steps(t *testing.T) {
	b := budget(t)
	for i, step := range []struct {
		at        int64 // after t0
		calls     int
		ask, want int
	}{
		{0, 0, 20, 10},                // the floor: ten at once
		{0, 9, 5, 0},                  // nine calls are not yet a repetition
		{0, 1, 5, 1},                  // ten are
		{500 * ms, 100, 50, 10},       //
		{9*sec + 999*ms, 0, 1, 0},     // all that was repeated still counts …
		{10 * sec, 0, 1, 0},           // … and the calls do no longer
		{11 * sec, 0, 20, 10},         // now the repetitions have left too
		{11 * sec, 1000, 200, 100},    //
		{5 * sec, 0, 1, 0},            // the clock stepped back: nothing changes
		{20*sec + 900*ms, 0, 1, 0},    //
		{22 * sec, 0, 20, 10},         //
		{1000 * sec, 0, 20, 10},       // a long silence earns nothing
		{1000*sec + 999*ms, 0, 20, 0}, //
		{1002 * sec, 100, 20, 10},     // the floor is used up, the calls count
		{1013 * sec, 0, 20, 10},       // and then the floor is back
	} {
		now := t0 + step.at
		deposits(b, now, step.calls)
		assert.Equalf(t, step.want, granted(b, now, step.ask), "step %d at %v", i, time.Duration(step.at))
	}
}

// https://github.com/envoyproxy/envoy/issues/30205: retries that waited for their turn
// did not count against the budget, so a thousand failures at once became a thousand
// retries. Here each is charged when it is decided on.
func TestBudget_ABurstOfFailuresIsBounded(t *testing.T) {
	for name, firstAll := range map[string]bool{"all have failed before the first asks": true, "each asks as it fails": false} {
		t.Run(name, func(t *testing.T) {
			b := budget(t, WithRatio(0.2))
			got := 0
			if firstAll {
				deposits(b, t0, 1000)
			}
			for range 1000 {
				if !firstAll {
					deposits(b, t0, 1)
				}
				got += granted(b, t0, 1)
			}
			assert.Equal(t, 200+10, got)
		})
	}
}

// Shares are whole numbers of millionths: no rounding lets one more or one fewer pass.
func TestBudget_SharesAreExact(t *testing.T) {
	for _, c := range []struct {
		ratio, perSecond float64
		calls, want      int
	}{
		{0.1, 0, 10, 1}, {0.1, 0, 9, 0}, {0.2, 0, 5, 1}, {0.3, 0, 10, 3}, {0.7, 0, 10, 7}, {1, 0, 7, 7},
		{0.000001, 0, 999_999, 0}, {0.000001, 0, 1_000_000, 1}, {1.0 / 3, 0, 3, 0}, {1.0 / 3, 0, 4, 1},
		{0, 0.1, 1000, 1}, {0, 0.09, 1000, 0}, {0.05, 0.05, 10, 1}, {0, 0, 1000, 0}, {0.29, 0, 100, 29},
	} {
		b := budget(t, WithRatio(c.ratio), WithMinPerSecond(c.perSecond))
		deposits(b, t0, c.calls)
		assert.Equalf(t, c.want, granted(b, t0, c.want+5), "%v of %d calls and %v a second", c.ratio, c.calls, c.perSecond)
	}
}

// What was charged and never made is there again, as long as it would still count.
func TestBudget_GiveBack(t *testing.T) {
	b := budget(t)
	require.Equal(t, 10, granted(b, t0, 20))
	b.giveBack(t0)
	assert.Equal(t, 1, granted(b, t0+sec, 20))
	b.giveBack(0) // nothing was charged
	assert.Zero(t, granted(b, t0+sec, 20))
	require.Equal(t, 9, granted(b, t0+11*sec, 20), "that of one second later still counts")
	b.giveBack(t0) // too old to matter
	assert.Zero(t, granted(b, t0+11*sec, 20))
	s := b.snapshot(t0 + 11*sec)
	assert.EqualValues(t, 20, s.Withdrawals)
	assert.EqualValues(t, 2, s.Returned)
}

// A nil budget is no obstacle.
func TestBudget_Nil(t *testing.T) {
	var b *Budget
	b.Deposit()
	assert.True(t, b.Withdraw())
	b.giveBack(t0)
	assert.False(t, b.isHedged())
	assert.Empty(t, b.Name())
	assert.Equal(t, BudgetConfig{}, b.Config())
	assert.NoError(t, b.Update(DefaultBudgetConfig()))
	assert.Error(t, b.Update(BudgetConfig{}))
	assert.Equal(t, BudgetSnapshot{}, b.Snapshot())
}

// Time may be 0, and then all at once far away.
func TestBudget_AnyTime(t *testing.T) {
	for _, start := range []int64{-5, 0, 1, sec - 1, math.MaxInt64 - 1} {
		b := newBudget("payments", DefaultBudgetConfig(), start)
		deposits(b, start, 100)
		assert.Equalf(t, 20, granted(b, start, 100), "at %d", start)
		if start <= sec {
			assert.Equalf(t, 10, granted(b, math.MaxInt64, 100), "at last, from %d", start)
		}
	}
}

// The count of calls may pass the end of its word.
func TestBudget_DepositsWrapAround(t *testing.T) {
	b := budget(t)
	b.deposits.Store(math.MaxUint64 - 50)
	b.dated = math.MaxUint64 - 50
	deposits(b, t0, 100)
	assert.Equal(t, 10+10, granted(b, t0, 100))
}

// More calls than anybody can make allow no nonsense.
func TestBudget_TooManyDeposits(t *testing.T) {
	b := budget(t, WithRatio(1), WithMinPerSecond(maxMinPerSecond), WithWindow(maxWindow))
	b.deposits.Store(math.MaxUint64)
	assert.Equal(t, 1000, granted(b, t0, 1000))
	assert.Positive(t, b.snapshot(t0).Available)
}

// At any rate a call is dated soon enough to count for most of the window. Without the
// floor, this is what a slow service lives on.
func TestBudget_FewCallsCountToo(t *testing.T) {
	for _, gap := range []int64{2 * sec, sec, 300 * ms, 100 * ms, 20 * ms, ms} {
		b := budget(t, WithRatio(1), WithMinPerSecond(0))
		now := t0
		for range 15_000 * ms / gap {
			now += gap
			b.deposit(now)
		}
		full := 10 * sec / gap
		got := int64(granted(b, now, int(2*full)))
		assert.LessOrEqualf(t, got, full, "a call each %v", time.Duration(gap))
		// A slot and a reading of the clock may be missing at the old end.
		assert.GreaterOrEqualf(t, got, full-full/10-max(sec, gap)/gap-1, "a call each %v", time.Duration(gap))
	}
}

// After a rush the clock is read seldom; when the rush is over, soon again.
func TestBudget_ReadsTheClockAsOftenAsItMust(t *testing.T) {
	b := budget(t)
	assert.Zero(t, b.batch.Load(), "at first every call")
	now := t0
	for range 10_000 {
		now += ms / 10
		b.deposit(now)
	}
	assert.EqualValues(t, maxBatch-1, b.batch.Load())
	for range 2 * maxBatch {
		now += sec
		b.deposit(now)
	}
	assert.Zero(t, b.batch.Load())
}

// A change keeps what has been counted, and allows nothing that was not.
func TestBudget_UpdateKeepsCounts(t *testing.T) {
	b := budget(t)
	deposits(b, t0, 1000)
	require.Equal(t, 60, granted(b, t0, 60))
	c := b.Config()
	c.Ratio, c.MinPerSecond = 0.2, 0
	b.update(t0, c)
	assert.Equal(t, 140, granted(b, t0, 1000), "at once")
	c.Ratio = 0.1
	b.update(t0, c)
	assert.Zero(t, granted(b, t0, 1000))
	assert.Zero(t, b.snapshot(t0).Available, "and not negative")
	assert.Zero(t, granted(b, t0+9*sec, 1000))

	b = budget(t)
	deposits(b, t0, 1000)
	require.Equal(t, 60, granted(b, t0, 60))
	for _, window := range []time.Duration{time.Minute, 5 * time.Second, 10 * time.Second} {
		c := b.Config()
		c.Window = window
		b.update(t0, c)
		want := 100 + int(window/time.Second) - 60
		assert.EqualValues(t, want, b.snapshot(t0).Available, window)
	}
}

func TestBudget_UpdateRefusesWhatIsWrong(t *testing.T) {
	b := budget(t)
	before := b.Config()
	require.ErrorContains(t, b.Update(BudgetConfig{Ratio: 2, Window: time.Second}), "Ratio 2")
	assert.Equal(t, before, b.Config())
	require.NoError(t, b.Update(BudgetConfig{Window: time.Second}))
	assert.Equal(t, BudgetConfig{Window: time.Second}, b.Config())
}

// The exported methods read the time themselves.
func TestBudget_TimePasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, err := NewBudget("payments")
		require.NoError(t, err)
		assert.Equal(t, "payments", b.Name())
		ask := func() (n int) {
			for b.Withdraw() {
				n++
			}
			return n
		}
		for range 100 {
			b.Deposit()
		}
		assert.Equal(t, 20, ask())
		time.Sleep(5 * time.Second)
		assert.Zero(t, ask())
		time.Sleep(6*time.Second + 1)
		assert.Equal(t, 10, ask())
		s := b.Snapshot()
		assert.Equal(t, BudgetSnapshot{Name: "payments", Deposits: 100, Withdrawals: 30, Refusals: 3}, s)
	})
}
