package ratelimit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// at returns a clock that stands still.
func at(now int64) func() int64 { return func() int64 { return now } }

// event is tokens that were taken and are meant to be used at a time.
type event struct {
	n    int64
	mark int64
	at   int64
	kept bool
}

// A trace is random takes, reservations and refunds of one limiter, and the events
// that came of them.
type trace struct {
	p      *plan
	rand   *rand.Rand
	now    int64
	events []event
}

func newTrace(r *rand.Rand) *trace {
	c := DefaultConfig()
	c.Rate, c.Burst = Every(10), 1+r.Int64N(10)
	return &trace{p: newPlan("test", c, 1), rand: r, now: 1}
}

func (x *trace) step() {
	b := &x.p.own
	x.now += x.rand.Int64N(40) * x.rand.Int64N(3)
	switch n := 1 + x.rand.Int64N(x.p.most); x.rand.IntN(3) {
	case 0:
		if lack, mark, _ := b.take(n, 0, x.now); lack <= 0 {
			x.events = append(x.events, event{n, mark, x.now, true})
		}
	default:
		if len(x.events) > 0 {
			e := &x.events[x.rand.IntN(len(x.events))]
			if e.kept {
				e.kept = false
				b.giveBack(e.n*b.unit, e.mark, at(x.now))
			}
		}
	}
}

// worst returns how many tokens too many are kept in the worst time between two
// events: more than burst + rate × time.
func (x *trace) worst() int64 {
	worst := int64(0)
	for _, from := range x.events {
		for _, to := range x.events {
			if !from.kept || !to.kept || to.at < from.at {
				continue
			}
			sum := int64(0)
			for _, e := range x.events {
				if e.kept && from.at <= e.at && e.at <= to.at {
					sum += e.n
				}
			}
			// Ten nanoseconds a token: in tenths of a token.
			worst = max(worst, 10*sum-(10*x.p.most+to.at-from.at))
		}
	}
	return worst
}

// Whatever is given back, and when: what was kept never exceeds burst + rate × time.
// Giving back all that was taken breaks that in most traces, and a rule that does not
// know what others have given back in some.
func TestRefund_MintsNothing(t *testing.T) {
	traces := 100_000
	if testing.Short() {
		traces = 5_000
	}
	r := rand.New(rand.NewPCG(2, 3))
	refunds := 0
	for i := range traces {
		x := newTrace(r)
		for range 30 {
			x.step()
		}
		require.LessOrEqual(t, x.worst(), int64(0), "trace %d: %+v", i, x.events)
		for _, e := range x.events {
			if !e.kept {
				refunds++
			}
		}
	}
	assert.Greater(t, refunds, traces, "the traces are about refunds")
}

// A take that is given back before anybody else came leaves nothing behind: from then
// on the limiter answers as one that was never asked.
func TestRefund_AtOnceIsAsIfItHadNeverBeen(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for range 5_000 {
		x := newTrace(r)
		twin := newPlan("twin", x.p.config, 1)
		for range 20 {
			x.now += r.Int64N(40) * r.Int64N(3)
			n := 1 + r.Int64N(x.p.most)
			if r.IntN(2) == 0 {
				d, _ := x.p.take(n, x.now)
				same, _ := twin.take(n, x.now)
				require.Equal(t, same.lack, d.lack)
				continue
			}
			if d, _ := x.p.take(n, x.now); d.OK() {
				later := x.now + r.Int64N(200) // of no account as nobody came
				x.p.own.giveBack(n*x.p.own.unit, d.mark, at(later))
			}
		}
	}
}

func TestRefund(t *testing.T) {
	const token = int64(time.Second)
	start := func(t *testing.T) (*Limiter, func(now int64) int64) {
		l := newLimiter("test", settings{Config: Config{Rate: PerSecond(1), Burst: 10, Initial: Auto, MaxWait: Auto, MaxDebt: Auto}}, 1)
		return l, func(now int64) int64 { return l.peek(0, 0, now).Remaining() }
	}
	giveBack := func(l *Limiter, d Decision, now int64) {
		b := &l.cur.Load().own
		b.giveBack(d.n*b.unit, d.mark, at(now))
	}
	t.Run("after another take", func(t *testing.T) {
		l, left := start(t)
		mine := l.take(0, 4, 1)
		l.take(0, 5, 1)
		giveBack(l, mine, 1)
		assert.EqualValues(t, 5, left(1), "all of it: x/time gives back less the more others took")
	})
	t.Run("the last first", func(t *testing.T) {
		l, left := start(t)
		first, second, third := l.take(0, 2, 1), l.take(0, 3, 1), l.take(0, 4, 1)
		giveBack(l, third, 1)
		giveBack(l, second, 1)
		giveBack(l, first, 1)
		assert.EqualValues(t, 10, left(1))
	})
	t.Run("the last after one before it", func(t *testing.T) {
		l, left := start(t)
		first, second, third := l.take(0, 2, 1), l.take(0, 3, 1), l.take(0, 4, 1)
		giveBack(l, second, 1)
		giveBack(l, third, 1)
		assert.EqualValues(t, 8, left(1), "both in full")
		giveBack(l, first, 1)
		assert.EqualValues(t, 8, left(1), "near the brim, what others gave back is taken for what has run over")
	})
	t.Run("in any order far from the brim", func(t *testing.T) {
		l, left := start(t)
		l.take(0, 3, 1)
		first, second, third := l.take(0, 2, 1), l.take(0, 3, 1), l.take(0, 2, 1)
		for _, d := range []Decision{second, first, third} {
			giveBack(l, d, 1)
		}
		assert.EqualValues(t, 7, left(1))
	})
	t.Run("what has been refilled since is lost", func(t *testing.T) {
		l, left := start(t)
		mine := l.take(0, 4, 1)
		l.take(0, 1, 1+2*token) // 8 were there
		giveBack(l, mine, 1+2*token)
		assert.EqualValues(t, 9, left(1+2*token), "2 of the 4, as without mine 1 of 10 would be gone")
	})
	t.Run("all of it has been refilled", func(t *testing.T) {
		l, left := start(t)
		mine := l.take(0, 4, 1)
		l.take(0, 10, 1+4*token)
		giveBack(l, mine, 1+4*token)
		assert.Zero(t, left(1+4*token))
	})
	t.Run("a refused or peeked decision gives nothing", func(t *testing.T) {
		l, left := start(t)
		l.take(0, 10, 1)
		for _, d := range []Decision{l.peek(0, 1, 1), l.take(0, 1, 1), l.peek(0, 11, 1), l.peek(0, -5, 1), l.peek(0, 0, 1), {}} {
			l.Refund(d)
			assert.Zero(t, left(1))
		}
		l.take(0, 5, 1+10*token)
		l.Refund(l.peek(0, 5, 1+10*token))
		assert.EqualValues(t, 5, left(1+10*token), "a look at tokens that are there has taken none")
	})
}
