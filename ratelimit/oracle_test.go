package ratelimit

import (
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An oracle is a token bucket as the textbook has it, in fractions of a token that
// are never rounded: a token has Per parts, and a nanosecond brings Tokens of them.
type oracle struct {
	rate         Rate
	burst, level *big.Int // in parts
	last         int64
}

func newOracle(r Rate, burst, now int64) *oracle {
	o := &oracle{rate: r, last: now}
	o.burst, o.level = o.parts(burst), o.parts(burst)
	return o
}

func (o *oracle) parts(tokens int64) *big.Int { return product(tokens, int64(o.rate.Per)) }

func product(x, y int64) *big.Int { return new(big.Int).Mul(big.NewInt(x), big.NewInt(y)) }

// pass lets time pass until now.
func (o *oracle) pass(now int64) {
	if now > o.last {
		o.level.Add(o.level, product(now-o.last, o.rate.Tokens))
		o.last = now
	}
	if o.level.Cmp(o.burst) > 0 {
		o.level.Set(o.burst)
	}
}

// missing is how many parts there are not, for n tokens; at most 0 if they are there.
func (o *oracle) missing(n int64) *big.Int { return new(big.Int).Sub(o.parts(n), o.level) }

func (o *oracle) take(n int64) { o.level.Sub(o.level, o.parts(n)) }

// remaining is how many whole tokens there are.
func (o *oracle) remaining() int64 {
	return max(0, new(big.Int).Div(o.level, big.NewInt(int64(o.rate.Per))).Int64())
}

// wait is how many whole nanoseconds it takes until so many parts have come.
func (o *oracle) wait(parts *big.Int) int64 {
	less := new(big.Int).Div(new(big.Int).Neg(parts), big.NewInt(o.rate.Tokens)) // rounds down
	return max(0, -less.Int64())
}

// tenYears is the uptime of a process that nobody restarts.
const tenYears = int64(10 * 365 * 24 * time.Hour)

// Every answer is what the oracle says: which calls are admitted, what is left, when
// to come again and when all is back. Steps are as nasty as can be: at the very
// nanosecond that was promised and the one before, at once, after the bucket has run
// over. Rates that are exact (see scale) never differ. The others are off by at most
// 1.25 units, which is less than a sixth of a nanosecond, since the bucket was full
// last: no step at random sees that up to 3 000 000/s, and nasty ones find a
// nanosecond.
func TestOracle(t *testing.T) {
	for i, r := range rates {
		for _, began := range []int64{1, tenYears} {
			for _, nasty := range []bool{true, false} {
				name := r.rate.String()
				if began > 1 {
					name += " after ten years"
				}
				if nasty {
					name += " nasty"
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					x := examination{r.rate, r.exact, nasty, rand.New(rand.NewPCG(1, uint64(i)))}
					differ := x.run(t, began)
					if r.exact || !nasty && r.rate.Tokens < int64(r.rate.Per)/300 {
						assert.Zero(t, differ, "answers")
					}
				})
			}
		}
	}
}

type examination struct {
	rate  Rate
	exact bool // no difference at all is allowed
	nasty bool
	rand  *rand.Rand
}

// run returns how many answers differ.
func (x *examination) run(t *testing.T, began int64) (differ int) {
	burst := 1 + x.rand.Int64N(min(20, x.rate.within(maxFill)))
	c := DefaultConfig()
	c.Rate, c.Burst = x.rate, burst
	require.NoError(t, c.Validate())
	l := newLimiter("test", settings{Config: c}, began)
	o := newOracle(x.rate, burst, began)
	slack := new(big.Int) // in parts
	if !x.exact {
		slack.Div(o.parts(5), big.NewInt(4*l.cur.Load().own.unit))
	}
	perToken := max(1, int64(x.rate.Per)/x.rate.Tokens)
	now, due := began, began
	steps := 20_000
	if testing.Short() || raceEnabled {
		steps = 1_000
	}
	for range steps {
		switch choice := x.rand.IntN(8); {
		case !x.nasty || choice == 0:
			now += x.rand.Int64N(2 * perToken)
		case choice <= 3:
			now = max(now, due)
		case choice == 4:
			now = max(now, due-1)
		case choice == 5:
			now += x.rand.Int64N(2*burst*perToken + 1)
		case choice == 6:
			now++
		}
		if now > 1<<62 {
			break // a day a step is 50 years, but a year a step is beyond all time
		}
		o.pass(now)
		n := 1 + x.rand.Int64N(burst)
		d := l.take(0, n, now)
		missing := o.missing(n)
		if d.OK() != (missing.Sign() <= 0) {
			differ++
			require.LessOrEqual(t, missing.CmpAbs(slack), 0, "take %d: %v, missing %v", n, d.OK(), missing)
		}
		p := l.cur.Load() // another one after four years
		if d.OK() {
			o.take(n)
			due = now
			x.check(t, d.RetryAfter() == 0, "retry after %v although admitted", d.RetryAfter())
		} else {
			due = now + int64(d.RetryAfter())
			x.check(t, x.near(o.wait(missing), d.RetryAfter()), "retry after %v, missing %v", d.RetryAfter(), missing)
			early, _ := p.peek(n, due-1)
			punctual, ok := p.peek(n, due)
			x.check(t, !early.OK() && (punctual.OK() || !ok), "retry after %v is too long or too short", d.RetryAfter())
		}
		level, ok := p.own.level(now)
		off := new(big.Int).Sub(product(level, int64(x.rate.Per)), new(big.Int).Mul(o.level, big.NewInt(p.own.unit)))
		off.Quo(off, big.NewInt(p.own.unit))
		x.check(t, ok && off.CmpAbs(slack) <= 0, "it is off by %v parts", off)
		there, _ := p.peek(0, now)
		x.check(t, !x.exact || d.Remaining() == o.remaining() && there.Remaining() == o.remaining(), "remaining %d, %d", d.Remaining(), there.Remaining())
		x.check(t, x.near(o.wait(off.Sub(o.burst, o.level)), d.ResetAfter()), "reset after %v", d.ResetAfter())
	}
	return differ
}

// check is require.True without its cost, for what is asked a million times.
func (x *examination) check(t *testing.T, ok bool, format string, args ...any) {
	if !ok {
		require.Failf(t, "not as the oracle says", format, args...)
	}
}

func (x *examination) near(want int64, got time.Duration) bool {
	off := want - int64(got)
	return off == 0 || !x.exact && (off == 1 || off == -1)
}
