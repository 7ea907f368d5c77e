package ratelimit

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func slidingOf(limit Rate, change func(*SlidingWindowConfig)) *SlidingWindow {
	c := DefaultSlidingWindowConfig()
	c.Limit = limit
	if change != nil {
		change(&c)
	}
	return newSlidingWindow("test", c, true, 1)
}

func TestSlidingWindow_Steps(t *testing.T) {
	w := slidingOf(Rate{10, time.Second}, nil)
	for i, step := range []struct {
		at    int64
		n     int64
		want  bool
		left  int64
		retry time.Duration
		reset time.Duration
	}{
		{0, 0, true, 10, 0, 0},
		{500 * ms, 4, true, 6, 0, 1500 * time.Millisecond},
		{900 * ms, 6, true, 0, 0, 1100 * time.Millisecond},
		// 10 in the window, so one fits when a tenth of the next has passed.
		{950 * ms, 1, false, 0, 150 * time.Millisecond, 1050 * time.Millisecond},
		{1000 * ms, 1, false, 0, 100 * time.Millisecond, 1000 * time.Millisecond},
		{1100*ms - 1, 1, false, 0, 1, 900*time.Millisecond + 1},
		{1100 * ms, 1, true, 0, 0, 1900 * time.Millisecond},
		{1250 * ms, 2, false, 1, 50 * time.Millisecond, 1750 * time.Millisecond},
		{1300*ms - 1, 2, false, 1, 1, 1700*time.Millisecond + 1},
		{1300 * ms, 2, true, 0, 0, 1700 * time.Millisecond},
		{1300 * ms, 10, false, 0, 1700 * time.Millisecond, 1700 * time.Millisecond},
		{1300 * ms, 11, false, 0, -1, 1700 * time.Millisecond},
		{1300 * ms, -1, false, 0, -1, 0},
		// A clock that steps back: nothing is forgotten for it.
		{600 * ms, 1, false, 0, 400 * time.Millisecond, 2000 * time.Millisecond},
		// 3 in the window, which ends at 2 s; they are gone at 3 s.
		{2500 * ms, 9, false, 8, 167 * time.Millisecond, 500 * time.Millisecond},
		{3000 * ms, 10, true, 0, 0, 2000 * time.Millisecond},
		{3600_000 * ms, 10, true, 0, 0, 2000 * time.Millisecond},
	} {
		peeked := w.peek(0, step.n, 1+step.at)
		d := w.take(0, step.n, 1+step.at)
		retry := d.RetryAfter()
		if i == 14 {
			retry = retry.Round(time.Millisecond) // a third of a second
		}
		assert.Equal(t, step.want, d.OK(), "step %d", i)
		assert.Equal(t, step.want, peeked.OK(), "step %d", i)
		assert.Equal(t, step.left, d.Remaining(), "step %d", i)
		assert.Equal(t, step.retry, retry, "step %d", i)
		assert.Equal(t, d.RetryAfter(), peeked.RetryAfter(), "step %d", i)
		assert.Equal(t, step.reset, d.ResetAfter(), "step %d", i)
		assert.Equal(t, step.retry < 0, d.Never(), "step %d", i)
	}
}

// A windowOracle counts for a SlidingWindow as it is told: it keeps all tokens, in
// aligned windows, and weighs those of the window before with a fraction.
type windowOracle struct {
	limit, width int64
	ledger       windowLedger // times since the epoch
}

// used is how many tokens are used at now, since the epoch.
func (o *windowOracle) used(now int64) *big.Rat {
	start := now / o.width * o.width
	in, before := o.ledger.within(start-1, start+o.width-1), o.ledger.within(start-o.width-1, start-1)
	weighed := big.NewRat(before, 1)
	weighed.Mul(weighed, big.NewRat(start+o.width-now, o.width))
	return weighed.Add(weighed, big.NewRat(in, 1))
}

func (o *windowOracle) fits(n, now int64) bool {
	return new(big.Rat).Add(o.used(now), big.NewRat(n, 1)).Cmp(big.NewRat(o.limit, 1)) <= 0
}

func (o *windowOracle) left(now int64) int64 {
	free := new(big.Rat).Sub(big.NewRat(o.limit, 1), o.used(now))
	return max(0, new(big.Int).Div(free.Num(), free.Denom()).Int64())
}

// Every answer is what the oracle says, to the token and the nanosecond: at random
// times and at the very nanosecond that was promised and the one before, with refunds
// and clocks that are late.
func TestSlidingWindow_Oracle(t *testing.T) {
	walks := 150
	if testing.Short() || raceEnabled {
		walks = 30
	}
	for seed := range uint64(walks) {
		walkSlidingWindow(t, rand.New(rand.NewPCG(7, seed)), seed%4 == 3)
	}
}

func walkSlidingWindow(t *testing.T, r *rand.Rand, penal bool) {
	o := &windowOracle{limit: 1 + r.Int64N(12), width: []int64{1, 7, 1000, int64(time.Hour), int64(maxPer)}[r.IntN(5)]}
	w := slidingOf(Rate{o.limit, time.Duration(o.width)}, func(c *SlidingWindowConfig) { c.CountRejected = penal })
	var now, seen int64 // since the epoch; the latest window that anybody has come to begins at seen
	due := int64(-1)
	var given []Decision
	for range 150 {
		switch choice := r.IntN(8); {
		case choice == 0 && due >= 0:
			now = max(now, due-1)
		case choice <= 2 && due >= 0:
			now = max(now, due)
		case choice == 3:
			now += r.Int64N(o.width) * 3
		case choice == 4:
			now += o.width*70_000 - r.Int64N(2*o.width) // more windows than 16 bits count
		case choice <= 6:
			now += r.Int64N(o.width/4 + 1)
		}
		if len(given) > 0 && r.IntN(6) == 0 {
			i := r.IntN(len(given))
			o.ledger.giveBack(given[i].n, given[i].mark)
			w.giveBack(0, given[i], 0)
			given = append(given[:i], given[i+1:]...)
		}
		at := now
		if r.IntN(6) == 0 { // somebody who was held up
			at = max(0, now-r.Int64N(2*o.width))
		}
		n := r.Int64N(o.limit + 2)
		d := w.take(0, n, 1+at)
		at = max(at, seen)
		require.Equal(t, o.fits(n, at), d.OK(), "%d at %d", n, at)
		if d.OK() && n > 0 {
			require.Equal(t, at, d.mark)
			o.ledger.take(n, at)
			given = append(given, d)
			seen = at / o.width * o.width
		}
		if !d.OK() && penal && n > 0 && !d.Never() {
			w.count(0, d)
			o.ledger.take(n, at)
			seen = at / o.width * o.width
		}
		require.Equal(t, o.left(at), d.Remaining())
		require.Equal(t, o.left(at), w.peek(0, 0, 1+at).Remaining())
		reset := at + int64(d.ResetAfter())
		require.Equal(t, o.limit, o.left(reset), "all is back")
		if reset > at {
			require.Less(t, o.left(reset-1), o.limit, "and not before")
		}
		if d.Never() {
			require.Greater(t, n, o.limit)
		} else if !d.OK() {
			due = at + int64(d.RetryAfter())
			require.Greater(t, due, at)
			require.True(t, o.fits(n, due), "%d at %d", n, due)
			require.False(t, o.fits(n, due-1), "%d at %d", n, due-1)
			require.True(t, w.peek(0, n, 1+due).OK())
			require.False(t, w.peek(0, n, due).OK())
		}
	}
}

// The bound is reached, so the documentation must name it: 199 of 100.
func TestSlidingWindow_WorstInATrueWindowIsTwiceTheLimitLessOne(t *testing.T) {
	const limit, width = 100, int64(time.Second)
	w, taken := slidingOf(Rate{limit, time.Second}, nil), &windowLedger{}
	for now := width - 1; now < 2*width-1; {
		d := w.take(0, 1, 1+now)
		if d.OK() {
			taken.take(1, now)
			continue
		}
		now += int64(d.RetryAfter())
	}
	assert.Equal(t, 2*limit-1, taken.worst(width))
}

// Windows of a hundred nanoseconds, and a pause of as many as 16 bits count, and of
// one more and less: the counts of before are not taken for new ones.
func TestSlidingWindow_LongPause(t *testing.T) {
	for pause := int64(65_534); pause <= 65_538; pause++ {
		w := slidingOf(Rate{3, 100}, nil)
		require.True(t, w.take(0, 3, 1).OK())
		d := w.take(0, 3, 1+100*pause)
		assert.True(t, d.OK(), "after %d windows", pause)
		assert.False(t, w.take(0, 1, 1+100*pause).OK())
		w.giveBack(0, d, 0)
		assert.True(t, w.take(0, 3, 1+100*pause).OK())
	}
	w := slidingOf(Rate{3, 100}, nil)
	old := w.take(0, 3, 1)
	w.take(0, 3, 1+100*65_536)
	w.giveBack(0, old, 0)
	assert.False(t, w.take(0, 1, 1+100*65_536).OK(), "what counts no more is not given back")
}

// A call that was held up for longer than a window must not be taken for one of the
// far future, nor make the counts of now those of the past.
func TestSlidingWindow_LateCallSeesTheStartOfTheWindow(t *testing.T) {
	w := slidingOf(Rate{10, time.Second}, nil)
	require.True(t, w.take(0, 8, 1+10_500*ms).OK())
	for _, late := range []int64{-5, 1, 900 * ms, 9_999 * ms, 10_200 * ms} {
		d := w.take(0, 3, late)
		assert.False(t, d.OK())
		assert.EqualValues(t, 2, d.Remaining())
	}
	assert.True(t, w.take(0, 1, 1).OK())
	assert.False(t, w.take(0, 2, 1+10_999*ms).OK(), "it counted in the window that is running")
	assert.EqualValues(t, 1, w.take(0, 2, 1+11_000*ms).Remaining())
}
