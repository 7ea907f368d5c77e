package ratelimit

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzLimiter: whatever the rate, the steps of time and the questions, every answer is
// the oracle's, within the rounding of the rate.
func FuzzLimiter(f *testing.F) {
	f.Add(uint64(1), uint64(time.Second), uint64(10), []byte{0, 1, 255, 3, 16, 200, 0, 0, 1, 1})
	f.Add(uint64(3_000_000), uint64(time.Second), uint64(7), []byte{1, 1, 1, 2, 1, 3, 1, 4})
	f.Add(uint64(997), uint64(time.Second), uint64(3), []byte{9, 1, 9, 2, 9, 3, 9, 200})
	f.Add(uint64(10), uint64(1), uint64(1<<40), []byte{1, 1, 255, 255})
	f.Fuzz(func(t *testing.T, tokens, per, burst uint64, script []byte) {
		c := DefaultConfigOf(Rate{int64(tokens >> 1), time.Duration(per >> 1)})
		c.Burst = int64(burst >> 1)
		if c.Validate() != nil || c.Rate.IsUnlimited() || c.Rate.IsBlocked() {
			return
		}
		now := int64(1)
		l := newLimiter("fuzz", settings{Config: c}, now)
		o := newOracle(c.Rate, c.Burst, now)
		unit := l.cur.Load().own.unit
		slack := new(big.Int).Div(o.parts(5), big.NewInt(4*unit)) // of a rate that is rounded
		due := now
		for ; len(script) >= 2 && now < 1<<61; script = script[2:] {
			switch step := int64(script[0]); {
			case step < 4:
				now = max(now, due-2+step)
			case step < 128:
				now += step - 4
			default:
				now += int64(1) << (step % 61)
			}
			o.pass(now)
			n := max(1, c.Burst*int64(script[1]%16)/16)
			if c.Burst > 1<<58 {
				n = c.Burst
			}
			d := l.take(0, n, now)
			missing := o.missing(n)
			if d.OK() != (missing.Sign() <= 0) && missing.CmpAbs(slack) > 0 {
				t.Fatalf("%v at %d: take %d is %v, missing %v parts", c.Rate, now, n, d.OK(), missing)
			}
			if d.OK() {
				o.take(n)
				continue
			}
			due = now + int64(d.RetryAfter())
			if early, _ := l.cur.Load().peek(n, due-1); early.OK() {
				t.Fatalf("%v at %d: retry after %v is too long", c.Rate, now, d.RetryAfter())
			}
			if punctual, ok := l.cur.Load().peek(n, due); ok && !punctual.OK() {
				t.Fatalf("%v at %d: retry after %v is too short", c.Rate, now, d.RetryAfter())
			}
		}
	})
}

// FuzzRefund: what is kept never exceeds burst + rate × time, whatever is taken,
// reserved and given back, in whatever order.
func FuzzRefund(f *testing.F) {
	f.Add(uint8(9), []byte{0, 3, 0, 5, 22, 0, 70, 1, 1, 2, 3, 0})
	f.Add(uint8(0), []byte{0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 2, 30, 0, 0})
	f.Fuzz(func(t *testing.T, burst uint8, script []byte) {
		x := newTrace(1 + int64(burst%16))
		for ; len(script) >= 3 && len(x.events) < 60; script = script[3:] {
			pass, n, what := int64(script[0]), int64(script[1]), int(script[2])
			x.step(what%3, pass, 1+n%x.burst, 4*n, what/3)
		}
		require.LessOrEqual(t, x.excess(), int64(0), "%+v", x.events)
	})
}

// FuzzConfig: what is read from JSON and validates makes a limiter, and comes back the
// same from what is written.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(`{"rate":"100/s","burst":"auto","initial":0,"max_wait":"1s","max_waiters":3,"max_debt":7}`))
	f.Add([]byte(`{"rate":"unlimited","burst":1e3}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := DefaultConfig()
		if json.Unmarshal(data, &c) != nil || c.Validate() != nil {
			return
		}
		l := newLimiter("fuzz", settings{Config: c}, 1)
		l.take(0, 1, 1)
		out, err := json.Marshal(c)
		require.NoError(t, err)
		var again Config
		require.NoError(t, json.Unmarshal(out, &again))
		require.Equal(t, c, again)
	})
}
