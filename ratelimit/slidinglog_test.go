package ratelimit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func logOf(limit Rate, change func(*SlidingLogConfig)) *SlidingLog {
	c := DefaultSlidingLogConfig()
	c.Limit = limit
	if change != nil {
		change(&c)
	}
	return newSlidingLog("test", c, true)
}

func TestSlidingLog_Steps(t *testing.T) {
	l := logOf(Rate{4, time.Second}, nil)
	for i, step := range []struct {
		at    int64
		n     int64
		want  bool
		left  int64
		retry time.Duration
		reset time.Duration
	}{
		{0, 0, true, 4, 0, 0},
		{100 * ms, 2, true, 2, 0, time.Second},
		{300 * ms, 1, true, 1, 0, time.Second},
		{400 * ms, 2, false, 1, 700 * time.Millisecond, 900 * time.Millisecond},
		{400 * ms, 4, false, 1, 900 * time.Millisecond, 900 * time.Millisecond},
		{400 * ms, 1, true, 0, 0, time.Second},
		{400 * ms, 1, false, 0, 700 * time.Millisecond, time.Second},
		{400 * ms, 3, false, 0, 900 * time.Millisecond, time.Second},
		{400 * ms, 5, false, 0, -1, time.Second},
		{400 * ms, -1, false, 0, -1, 0},
		{200 * ms, 1, false, 0, 700 * time.Millisecond, time.Second}, // a clock that steps back
		{1100*ms - 1, 1, false, 0, 1, 300*time.Millisecond + 1},
		{1100 * ms, 3, false, 2, 200 * time.Millisecond, 300 * time.Millisecond},
		{1100 * ms, 2, true, 0, 0, time.Second},
		{1350 * ms, 0, true, 1, 0, 750 * time.Millisecond},
		{2100*ms - 1, 4, false, 2, 1, 1},
		{2100 * ms, 4, true, 0, 0, time.Second},
	} {
		peeked := l.peek(0, step.n, step.at)
		d := l.take(0, step.n, step.at)
		assert.Equal(t, step.want, d.OK(), "step %d", i)
		assert.Equal(t, step.want, peeked.OK(), "step %d", i)
		assert.Equal(t, step.left, d.Remaining(), "step %d", i)
		assert.Equal(t, step.retry, d.RetryAfter(), "step %d", i)
		assert.Equal(t, step.retry, peeked.RetryAfter(), "step %d", i)
		assert.Equal(t, step.reset, d.ResetAfter(), "step %d", i)
		assert.Equal(t, step.retry < 0, d.Never(), "step %d", i)
	}
}

// Every answer is what a ledger of all tokens says, to the nanosecond, with refunds
// in any order, other limits and windows, clocks that are late, and penalties.
func TestSlidingLog_Oracle(t *testing.T) {
	walks := 400
	if testing.Short() || raceEnabled {
		walks = 80
	}
	for seed := range uint64(walks) {
		walkSlidingLog(t, rand.New(rand.NewPCG(8, seed)), seed%3 == 2)
	}
}

func walkSlidingLog(t *testing.T, r *rand.Rand, penal bool) {
	most := 1 + r.Int64N(9)
	limit, width := most, []int64{1, 10, int64(time.Minute), int64(maxLogPer)}[r.IntN(4)]
	config := func() SlidingLogConfig {
		c := DefaultSlidingLogConfig()
		c.Limit, c.CountRejected = Rate{limit, time.Duration(width)}, penal
		return c
	}
	l, all := newSlidingLog("test", config(), true), &windowLedger{}
	left := func(now int64) int64 { return max(0, limit-all.within(now-width, now)) }
	var now, latest, due int64
	var given []Decision
	for range 100 {
		switch choice := r.IntN(8); {
		case choice <= 1:
			now = max(now, due-1)
		case choice == 2:
			now = max(now, due)
		case choice == 3:
			now += r.Int64N(2 * width)
		case choice <= 6:
			now += r.Int64N(width/4 + 1)
		}
		if len(given) > 0 && r.IntN(5) == 0 {
			i := r.IntN(len(given))
			all.giveBack(given[i].n, given[i].mark)
			l.giveBack(0, given[i], 0)
			given = slices.Delete(given, i, i+1)
		}
		if r.IntN(20) == 0 && limit > 1 && !penal { // what is lowered is known to the end
			limit--
			require.NoError(t, l.Update(config()))
			given = slices.DeleteFunc(given, func(d Decision) bool { return d.n > limit })
		}
		at := now
		if r.IntN(6) == 0 { // somebody who was held up
			at = max(0, now-r.Int64N(2*width))
		}
		n := r.Int64N(limit + 2)
		d := l.take(0, n, at)
		at = max(at, latest)
		before := left(at)
		require.Equal(t, n <= before, d.OK(), "%d at %d", n, at)
		if d.OK() {
			all.take(n, at)
			if n > 0 {
				require.Equal(t, at, d.mark)
				given, latest = append(given, d), at
			}
		}
		if !d.OK() && penal && n > 0 && !d.Never() {
			l.count(0, d)
			all.take(n, at)
			latest = at
		}
		require.Equal(t, left(at), d.Remaining())
		there := l.peek(0, 0, at)
		require.Equal(t, left(at), there.Remaining())
		require.Equal(t, d.ResetAfter(), there.ResetAfter())
		reset := at + int64(d.ResetAfter())
		require.Equal(t, limit, left(reset), "all is back")
		if reset > at {
			require.Less(t, left(reset-1), limit, "and not before")
		}
		if d.Never() {
			require.Greater(t, n, limit)
		} else if !d.OK() {
			due = at + int64(d.RetryAfter())
			require.Greater(t, due, at)
			require.GreaterOrEqual(t, left(due), n)
			require.Less(t, left(due-1), n)
			require.True(t, l.peek(0, n, due).OK())
			require.False(t, l.peek(0, n, due-1).OK())
		}
	}
	if !penal {
		require.LessOrEqual(t, all.worst(width), int(most))
	}
}

// Sliding log of 10 a minute: 10 calls 2 s apart, and an 11th at 20 s. Libraries say
// one second too little, a whole window, or milliseconds:
// https://github.com/brandur/redis-cell/issues/56
// https://github.com/go-chi/httprate/issues/47
// https://github.com/fastify/fastify-rate-limit/issues/301
func TestSlidingLog_RetryAfterIsWhenTheOldestLeaves(t *testing.T) {
	const second = int64(time.Second)
	l := logOf(PerMinute(10), nil)
	for i := range int64(10) {
		require.True(t, l.take(0, 1, 1+2*i*second).OK())
	}
	d := l.take(0, 1, 1+20*second)
	assert.Equal(t, 40*time.Second, d.RetryAfter())
	assert.False(t, l.take(0, 1, 60*second).OK())
	assert.True(t, l.take(0, 1, 1+60*second).OK())
	assert.False(t, l.take(0, 1, 1+60*second).OK(), "one passes")
}

// A longer window or a higher limit reaches as far back as the log does.
func TestSlidingLog_UpdateKeepsWhatItRemembers(t *testing.T) {
	l := logOf(Rate{4, 100}, nil)
	for i := range int64(4) {
		require.True(t, l.take(0, 1, 10*i).OK())
	}
	set := func(tokens, width int64) {
		c := l.Config()
		c.Limit = Rate{tokens, time.Duration(width)}
		require.NoError(t, l.Update(c))
	}
	set(100, 100)
	assert.EqualValues(t, 96, l.peek(0, 0, 99).Remaining())
	assert.EqualValues(t, 97, l.peek(0, 0, 100).Remaining())
	set(2, 100)
	assert.EqualValues(t, 21, l.take(0, 1, 99).RetryAfter(), "when the last but one leaves")
	set(4, 1000)
	assert.EqualValues(t, 900, l.take(0, 1, 100).RetryAfter())
	set(4, 20)
	assert.EqualValues(t, 4, l.peek(0, 0, 100).Remaining())
	require.True(t, l.take(0, 4, 100).OK())
	c := l.Config()
	c.Limit = Blocked()
	require.NoError(t, l.Update(c))
	assert.False(t, l.take(0, 1, 200).OK())
	set(4, 200)
	assert.Zero(t, l.peek(0, 0, 200).Remaining(), "it was not forgotten while nothing was admitted")
}
