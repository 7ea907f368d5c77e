package ratelimit

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func pacerOf(rate Rate, change func(*PacerConfig)) *Pacer {
	c := DefaultPacerConfig()
	c.Rate = rate
	if change != nil {
		change(&c)
	}
	return newPacer("test", c, true, 1)
}

func TestPacer_Steps(t *testing.T) {
	p := pacerOf(PerSecond(10), func(c *PacerConfig) { c.Slack = 2 })
	for i, step := range []struct {
		at    int64
		n     int64
		want  bool
		left  int64
		retry time.Duration
		reset time.Duration
	}{
		{0, 0, true, 3, 0, 0},
		{0, 1, true, 2, 0, 100 * time.Millisecond}, // the slack is there at the beginning
		{0, 1, true, 1, 0, 200 * time.Millisecond},
		{0, 1, true, 0, 0, 300 * time.Millisecond},
		{0, 1, false, 0, 100 * time.Millisecond, 300 * time.Millisecond},
		{0, 0, false, 0, 100 * time.Millisecond, 300 * time.Millisecond},
		{100*ms - 1, 5, false, 0, 1, 200*time.Millisecond + 1},
		{100 * ms, 5, true, 0, 0, 700 * time.Millisecond}, // the first goes, all are paid for
		{599 * ms, 1, false, 0, time.Millisecond, 201 * time.Millisecond},
		{50 * ms, 1, false, 0, 550 * time.Millisecond, 750 * time.Millisecond}, // a clock that steps back
		{600 * ms, 1, true, 0, 0, 300 * time.Millisecond},
		{850 * ms, 0, true, 2, 0, 50 * time.Millisecond},
		{3600_000 * ms, 1, true, 2, 0, 100 * time.Millisecond},
		{3600_000 * ms, math.MaxInt64, false, 0, -1, 0},
		{3600_000 * ms, -1, false, 0, -1, 0},
	} {
		peeked := p.peek(0, step.n, 1+step.at)
		d := p.take(0, step.n, 1+step.at)
		assert.Equal(t, step.want, d.OK(), "step %d", i)
		assert.Equal(t, step.want, peeked.OK(), "step %d", i)
		assert.Equal(t, step.left, d.Remaining(), "step %d", i)
		assert.Equal(t, step.retry, d.RetryAfter(), "step %d", i)
		assert.Equal(t, step.retry, peeked.RetryAfter(), "step %d", i)
		assert.Equal(t, step.reset, d.ResetAfter(), "step %d", i)
		assert.Equal(t, step.retry < 0, d.Never(), "step %d", i)
	}
}

// A paceOracle is a queue of slots as the textbook has it, in fractions of a
// nanosecond that are never rounded.
type paceOracle struct {
	token *big.Rat // nanoseconds
	slack *big.Rat
	next  *big.Rat // when the next slot begins
}

func newPaceOracle(r Rate, slack, now int64) *paceOracle {
	o := &paceOracle{token: big.NewRat(int64(r.Per), r.Tokens)}
	o.slack = new(big.Rat).Mul(o.token, big.NewRat(slack, 1))
	o.next = new(big.Rat).Sub(big.NewRat(now, 1), o.slack)
	return o
}

// slot is when a caller of now may go, in whole nanoseconds, and exactly.
func (o *paceOracle) slot(now int64) (int64, *big.Rat) {
	exact := new(big.Rat).Sub(big.NewRat(now, 1), o.slack)
	if exact.Cmp(o.next) < 0 {
		exact.Set(o.next)
	}
	up := new(big.Int).Neg(new(big.Int).Div(new(big.Int).Neg(exact.Num()), exact.Denom()))
	return max(now, up.Int64()), exact
}

func (o *paceOracle) take(n int64, slot *big.Rat) {
	o.next = new(big.Rat).Add(slot, new(big.Rat).Mul(o.token, big.NewRat(n, 1)))
}

// Every slot comes when the oracle says; only rates that a scale does not tell exactly
// may differ, by a nanosecond.
func TestPacer_Oracle(t *testing.T) {
	steps := 5_000
	if testing.Short() || raceEnabled {
		steps = 500
	}
	for i, x := range rates {
		r := rand.New(rand.NewPCG(11, uint64(i)))
		slack := r.Int64N(min(4, x.rate.within(maxFill)))
		maxWait := min(maxFill, time.Duration(r.Int64N(5*int64(x.rate.Per)/x.rate.Tokens+10)))
		c := PacerConfig{x.rate, slack, maxWait}
		require.NoError(t, c.Validate())
		p, o := newPacer("test", c, false, 1), newPaceOracle(x.rate, slack, 1)
		off := 1.0
		if x.exact {
			off = 0
		}
		token := max(1, int64(x.rate.Per)/x.rate.Tokens)
		now, due := int64(1), int64(1)
		for range steps {
			switch r.IntN(6) {
			case 0:
				now = max(now, due-1)
			case 1:
				now = max(now, due)
			case 2:
				now += r.Int64N(2 * token)
			case 3:
				now += r.Int64N(10 * token)
			}
			if now > 1<<55 {
				break
			}
			n := 1 + r.Int64N(min(3, x.rate.within(maxFill)))
			want, exact := o.slot(now)
			if r.IntN(3) > 0 {
				d := p.take(0, n, now)
				due = now + int64(d.RetryAfter())
				require.InDelta(t, want, due, off, "%v", x.rate)
				if d.OK() {
					o.take(n, exact)
				}
				continue
			}
			d, slot := p.reserve(n, now+int64(maxWait), now)
			due = now
			if !d.OK() {
				require.Greater(t, float64(want)+off, float64(now+int64(maxWait)))
				due = now + int64(d.RetryAfter()) - int64(maxWait)
				require.False(t, p.reserves(n, due-1, maxWait), "%v", x.rate)
				continue
			}
			require.InDelta(t, want, slot, off, "%v", x.rate)
			require.LessOrEqual(t, float64(want), float64(now+int64(maxWait))+off)
			o.take(n, exact)
		}
	}
}

// reserves reports whether it would give a slot within maxWait.
func (p *Pacer) reserves(n, now int64, maxWait time.Duration) bool {
	d, _ := p.reserve(n, now+int64(maxWait), now)
	p.giveBack(0, d, now)
	return d.OK()
}

// However they come, no two calls are closer than 1 / rate. A library that puts them on
// a grid lets two go 9.7 ms apart at one in 200 ms.
func TestPacer_Spacing(t *testing.T) {
	for i, rate := range []Rate{Every(200 * time.Millisecond), PerSecond(1001), PerSecond(7), Every(3)} {
		p, r := pacerOf(rate, nil), rand.New(rand.NewPCG(12, uint64(i)))
		token := int64(rate.Per) / rate.Tokens // rounded down
		last, now := int64(math.MinInt64/2), int64(1)
		for range 5_000 {
			now += r.Int64N(token) * r.Int64N(4)
			d, at := p.reserve(1, now+r.Int64N(3*token), now)
			if !d.OK() {
				continue
			}
			require.GreaterOrEqual(t, at, now)
			require.GreaterOrEqual(t, at-last, token)
			last = at
			if r.IntN(10) == 0 {
				p.giveBack(0, d, 0)
				last = math.MinInt64 / 2
			}
		}
	}
}

// Pacing by whole milliseconds is wrong above 1000 a second and none above 2000:
// https://github.com/alibaba/Sentinel/issues/1615,
// https://github.com/alibaba/sentinel-golang/issues/545. And after a pause a whole
// batch goes: https://github.com/alibaba/sentinel-golang/issues/593.
func TestPacer_AboveAThousandASecond(t *testing.T) {
	p := pacerOf(PerSecond(1001), nil)
	admitted := 0
	for i := range int64(40_000) { // 8000/s for 5 s
		now := 1 + i*125_000
		if d, _ := p.reserve(1, now+500*ms, now); d.OK() {
			admitted++
		}
	}
	assert.InDelta(t, 1001*5+500, admitted, 50, "and the queue")

	p = pacerOf(PerSecond(1000), nil)
	require.True(t, p.take(0, 1, 1).OK())
	d, at := p.reserve(5000, 10_000*ms+5*ms, 10_000*ms)
	assert.True(t, d.OK())
	assert.EqualValues(t, 10_000*ms, at, "one goes after a pause")
	d, _ = p.reserve(5000, 10_000*ms+5*ms, 10_000*ms)
	assert.False(t, d.OK())
	assert.Equal(t, 5*time.Second, d.RetryAfter())
}

// A limiter with slack let everything pass after a pause:
// https://github.com/uber-go/ratelimit/issues/119.
func TestPacer_SlackIsAllThatIsMadeUpFor(t *testing.T) {
	for _, slack := range []int64{0, 1, 10} {
		p := pacerOf(PerSecond(100), func(c *PacerConfig) { c.Slack = slack })
		for _, pause := range []int64{1, 1_000_000 * ms, 2_000_000 * ms} {
			n := int64(0)
			for p.take(0, 1, pause).OK() {
				n++
			}
			assert.Equal(t, 1+slack, n)
		}
	}
}

// Adding and taking back again lets others see a queue that is none, and refuses them.
// Here who does not want a slot leaves no trace.
func TestPacer_NoPhantomQueue(t *testing.T) {
	p := pacerOf(PerSecond(10), func(c *PacerConfig) { c.MaxWait = 50 * time.Millisecond })
	require.True(t, p.take(0, 1, 1).OK())
	before := p.cur.Load().next.Load()
	for range 1000 {
		d, _ := p.reserve(1, 1+50*ms, 1)
		require.False(t, d.OK())
		require.Equal(t, before, p.cur.Load().next.Load())
	}
	d, _ := p.reserve(1, 1+100*ms, 1+50*ms)
	assert.True(t, d.OK())
}

func TestPacer_GivesBackTheTailOnly(t *testing.T) {
	p := pacerOf(PerSecond(10), nil)
	now := int64(1)
	a, _ := p.reserve(1, now+ms, now)
	b, atB := p.reserve(1, now+1000*ms, now)
	c, atC := p.reserve(3, now+1000*ms, now)
	assert.Equal(t, []int64{100 * ms, 200 * ms}, []int64{atB - now, atC - now})
	p.giveBack(0, b, now)
	assert.Equal(t, 500*time.Millisecond, p.peek(0, 1, now).RetryAfter(), "c has been promised its time")
	p.giveBack(0, c, now)
	assert.Equal(t, 200*time.Millisecond, p.peek(0, 1, now).RetryAfter())
	p.giveBack(0, c, now)
	p.giveBack(0, p.peek(0, 1, now+900*ms), now)
	assert.Equal(t, 200*time.Millisecond, p.peek(0, 1, now).RetryAfter(), "once")
	p.giveBack(0, b, now)
	p.giveBack(0, a, now)
	assert.Zero(t, p.peek(0, 1, now).RetryAfter(), "all of them, from the last on")
}

func TestPacer_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPacer("test", PerSecond(10), WithMaxWait(250*time.Millisecond))
		require.NoError(t, err)
		j := &journal{began: time.Now()}
		ctx, cancel := context.WithCancel(t.Context())
		for _, who := range []struct {
			name string
			ctx  context.Context
		}{{"first", t.Context()}, {"second", t.Context()}, {"goes", ctx}} {
			go func() {
				if err := p.Wait(who.ctx); err != nil {
					assert.Equal(t, context.Canceled, err)
					who.name += " away"
				}
				j.write(who.name)
			}()
			synctest.Wait()
		}
		s := p.Snapshot()
		assert.Equal(t, []any{int64(2), 300 * time.Millisecond}, []any{s.Waiting, s.Queue})
		assert.False(t, p.Allow(), "nobody passes those who wait")
		err = p.Wait(t.Context())
		var full *LimitError
		require.ErrorAs(t, err, &full)
		assert.Equal(t, ReasonMaxWait, full.Reason())
		assert.Equal(t, 300*time.Millisecond, full.RetryAfter())
		late, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		err = p.Wait(late)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, ErrLimited)
		assert.Equal(t, time.Duration(0), time.Since(j.began), "at once")
		cancel()
		synctest.Wait()
		assert.NoError(t, p.Wait(t.Context()), "the last slot was free again")
		j.write("fourth")
		assert.Equal(t, []string{"first at 0s", "goes away at 0s", "second at 100ms", "fourth at 200ms"}, j.read())
		assert.Equal(t, context.Canceled, p.Wait(ctx))
		s = p.Snapshot()
		assert.Equal(t, TotalsSnapshot{Admitted: 3, Tokens: 3, Gone: 1}, s.Totals)
		assert.Equal(t, RefusedSnapshot{Limited: 1, MaxWait: 1, Deadline: 1}, s.Refused)
	})
}

// 1 in 10 s, MaxWait 5 s: who cannot go in time is told so at once. Libraries park for
// as long as they may: https://github.com/resilience4j/resilience4j/issues/1283.
func TestPacer_RefusesAtOnceWhatItCannotGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := NewPacer("test", Every(10*time.Second), WithMaxWait(5*time.Second))
		require.NoError(t, err)
		require.NoError(t, p.Wait(t.Context()))
		began := time.Now()
		assert.ErrorIs(t, p.Wait(t.Context()), ErrLimited)
		assert.Equal(t, began, time.Now())
		time.Sleep(5 * time.Second)
		assert.NoError(t, p.Wait(t.Context()))
		assert.Equal(t, 10*time.Second, time.Since(began))
	})
}
