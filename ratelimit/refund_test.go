package ratelimit

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// at returns a clock that stands still.
func at(now int64) func() int64 { return func() int64 { return now } }

// event is tokens that somebody may use from a time on.
type event struct {
	n    int64
	at   int64
	kept bool
	d    Decision
	turn *turn // of a reservation
}

// A trace is takes, reservations and refunds of one limiter, and the events
// that came of them.
type trace struct {
	l      *Limiter
	burst  int64
	now    int64
	events []event
}

// tokenTime is how long a token of a trace takes.
const tokenTime = 10

func newTrace(burst int64) *trace {
	c := DefaultConfigOf(Every(tokenTime))
	c.Burst = burst
	return &trace{l: newLimiter("test", settings{Config: c}, 1), burst: burst, now: 1}
}

// randomly does something after some time.
func (x *trace) randomly(r *rand.Rand) {
	x.step(r.IntN(3), r.Int64N(40)*r.Int64N(3), 1+r.Int64N(x.burst), r.Int64N(40*tokenTime), r.Int())
}

// step lets time pass, and then takes n tokens, reserves them within wait, or gives
// those of an earlier event back.
func (x *trace) step(what int, pass, n, wait int64, which int) {
	x.now += pass
	switch what {
	case 0:
		if d := x.l.take(0, n, x.now); d.OK() {
			x.events = append(x.events, event{n, x.now, true, d, nil})
		}
	case 1:
		t := &turn{n: n}
		if d, _ := x.l.enqueue(t, x.now+wait, x.now); d.OK() {
			x.events = append(x.events, event{n, t.promised, true, d, t})
		}
	case 2:
		if len(x.events) > 0 {
			x.giveBack(&x.events[which%len(x.events)])
		}
	}
	for i := range x.events { // those behind a refund move up
		e := &x.events[i]
		if e.turn != nil && e.turn.queued && e.at > x.now {
			e.at = max(x.now, x.l.due(e.turn))
		}
	}
}

func (x *trace) giveBack(e *event) {
	if !e.kept {
		return
	}
	e.kept = false
	if e.turn != nil {
		if x.l.withdraw(e.turn, at(x.now)) {
			return
		}
		e.d = e.turn.taken
	}
	b := &x.l.cur.Load().own
	b.giveBack(e.n*b.unit, e.d.mark, at(x.now))
}

// excess returns by how much, in tenths of a token, what is kept exceeds
// burst + rate × time in the worst time between two events.
func (x *trace) excess() int64 {
	kept := slices.DeleteFunc(slices.Clone(x.events), func(e event) bool { return !e.kept })
	slices.SortFunc(kept, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	worst := int64(0)
	for i, from := range kept {
		sum := int64(0)
		for _, to := range kept[i:] {
			sum += to.n
			worst = max(worst, tokenTime*(sum-x.burst)-(to.at-from.at))
		}
	}
	return worst
}

// Whatever is given back, by whom and when: what is kept never exceeds
// burst + rate × time. Giving back all that was taken breaks that, and so does a rule
// that does not know what others have given back, or a queue that does not move up.
func TestRefund_MintsNothing(t *testing.T) {
	traces := 100_000
	if testing.Short() || raceEnabled {
		traces = 5_000
	}
	r := rand.New(rand.NewPCG(2, 3))
	refunds := 0
	for i := range traces {
		x := newTrace(1 + r.Int64N(10))
		for range 30 {
			x.randomly(r)
		}
		require.LessOrEqual(t, x.excess(), int64(0), "trace %d: %+v", i, x.events)
		for _, e := range x.events {
			if !e.kept {
				refunds++
			}
		}
	}
	assert.Greater(t, refunds, traces, "the traces are about refunds")
}

// When all who wait go away, in whatever order, it is as if none had ever come: what
// they were promised does not stay lost. See failsafe-go's reservations, which leak
// when a caller is cancelled.
func TestRefund_QueueLeavesNothingBehind(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 7))
	for range 2_000 {
		x := newTrace(1 + r.Int64N(10))
		p := x.l.cur.Load()
		twin := newPlan("twin", p.config, 1) // where nobody ever waits
		x.l.take(0, p.most, x.now)
		twin.take(p.most, x.now)
		x.now += r.Int64N(tokenTime)
		for range 1 + r.IntN(20) {
			turn := &turn{n: 1 + r.Int64N(p.most)}
			d, _ := x.l.enqueue(turn, x.now+int64(maxFill), x.now)
			require.True(t, d.OK())
			x.events = append(x.events, event{turn.n, 0, true, d, turn})
			if r.IntN(3) == 0 {
				x.giveBack(&x.events[r.IntN(len(x.events))])
			}
		}
		r.Shuffle(len(x.events), func(i, j int) { x.events[i], x.events[j] = x.events[j], x.events[i] })
		for i := range x.events {
			x.giveBack(&x.events[i])
		}
		left, _ := p.own.level(x.now)
		want, _ := twin.own.level(x.now)
		require.Equal(t, want, left)
	}
}

// A take that is given back before anybody else came leaves nothing behind: from then
// on the limiter answers as one that was never asked.
func TestRefund_AtOnceIsAsIfItHadNeverBeen(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 5))
	for range 5_000 {
		x := newTrace(1 + r.Int64N(10))
		p := x.l.cur.Load()
		twin := newPlan("twin", p.config, 1)
		for range 20 {
			x.now += r.Int64N(40) * r.Int64N(3)
			n := 1 + r.Int64N(p.most)
			if r.IntN(2) == 0 {
				d, _ := p.take(n, x.now)
				same, _ := twin.take(n, x.now)
				require.Equal(t, same.lack, d.lack)
				continue
			}
			if d, _ := p.take(n, x.now); d.OK() {
				later := x.now + r.Int64N(200) // of no account as nobody came
				p.own.giveBack(n*p.own.unit, d.mark, at(later))
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
	t.Run("far from the brim however much was given back before", func(t *testing.T) {
		l, left := start(t)
		l.take(0, 5, 1)
		for range 100 {
			first, second := l.take(0, 2, 1), l.take(0, 3, 1)
			giveBack(l, first, 1)
			giveBack(l, second, 1)
			require.EqualValues(t, 5, left(1))
		}
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
