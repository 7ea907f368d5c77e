package ratelimit

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// crowd runs do in goroutines until the time is over or do returns false, and once at
// least.
func crowd(goroutines int, during time.Duration, do func(r *rand.Rand) bool) {
	var wg sync.WaitGroup
	end := clock.After(clock.Now(), during)
	for i := range goroutines {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			for do(r) && clock.Now() < end {
			}
		})
	}
	wg.Wait()
}

// Admitted ≤ burst + rate × time, whatever goroutines do: take one or many, take what
// there is, reserve, give back at once or later, owe, look, and change the rate back
// and forth. And the totals are exact.
func TestRace_Conservation(t *testing.T) {
	const burst, perSecond = 50, 100_000
	began := clock.Now()
	l := build(t, PerSecond(perSecond), WithBurst(burst), WithMaxDebt(burst))
	slower := with(l.Config(), func(c *Config) { c.Rate = PerSecond(perSecond / 3) })
	var kept, admitted, tokens, refused, refunded atomic.Int64
	said := func(d Decision) bool {
		if !d.OK() {
			refused.Add(1)
			return false
		}
		kept.Add(d.Tokens())
		admitted.Add(min(d.Tokens(), 1))
		tokens.Add(d.Tokens())
		return true
	}
	crowd(8, 300*time.Millisecond, func(r *rand.Rand) bool {
		n := 1 + r.Int64N(3)
		switch r.IntN(10) {
		case 0, 1, 2, 3:
			said(l.Take(n))
		case 4:
			if d := l.Take(n); said(d) {
				runtime.Gosched()
				l.Refund(d)
				kept.Add(-d.Tokens())
				refunded.Add(1)
			}
		case 5:
			if d := l.TakeUpTo(1, 5); said(d) {
				time.Sleep(time.Duration(r.IntN(100)) * time.Microsecond) // holds them while others come
				l.Refund(d)
				kept.Add(-d.Tokens())
				refunded.Add(1)
			}
		case 6:
			l.Debit(n) // at most MaxDebt, and then less is charged than this counts
			tokens.Add(n)
		case 7:
			if v, err := l.Reserve(n, time.Duration(r.IntN(200))*time.Microsecond); err == nil {
				admitted.Add(1)
				tokens.Add(n)
				kept.Add(n)
				if r.IntN(2) == 0 {
					v.Cancel()
					kept.Add(-n)
					refunded.Add(1)
				}
			}
		case 8:
			l.Peek(n)
			l.Snapshot()
		case 9:
			if r.IntN(20) == 0 {
				require.NoError(t, l.Update([]Config{slower, with(slower, func(c *Config) { c.Rate = PerSecond(perSecond) })}[r.IntN(2)]))
			}
		}
		return true
	})
	s := l.Snapshot()
	most := burst + perSecond*float64(clock.Now()-began)/1e9
	// What is promised within 200 µs has been taken, and is not due yet.
	assert.LessOrEqual(t, float64(kept.Load()), most+perSecond*200e-6)
	assert.LessOrEqual(t, float64(kept.Load())+s.Level, most, "what was taken and what is left")
	assert.Equal(t, admitted.Load(), s.Totals.Admitted)
	assert.Equal(t, tokens.Load(), s.Totals.Tokens)
	assert.Equal(t, refused.Load(), s.Refused.Limited)
	assert.Equal(t, refunded.Load(), s.Totals.Refunded)
}

// From a bucket that does not fill, all that was there is taken and no more, by however
// many at once; what is given back is there again.
func TestRace_NothingIsLost(t *testing.T) {
	tokens := int64(300_000) // so far below the brim that all that is given back counts
	if testing.Short() {
		tokens /= 10
	}
	l := build(t, Every(time.Minute), WithBurst(1_000_000), WithInitial(tokens), WithoutTotals())
	var kept, left atomic.Int64
	crowd(4, time.Minute, func(r *rand.Rand) bool {
		for range 100 {
			d := l.Take(1)
			switch {
			case !d.OK():
				return false
			case r.IntN(4) == 0:
				l.Refund(d)
			default:
				kept.Add(1)
			}
		}
		return true
	})
	// Somebody may have been refused just before another gave back.
	for l.Allow() {
		left.Add(1)
	}
	assert.LessOrEqual(t, left.Load(), int64(4))
	assert.InDelta(t, tokens, kept.Load()+left.Load(), 1, "one may have come in the meantime")
	assert.GreaterOrEqual(t, kept.Load()+left.Load(), tokens)
}

func TestRace_Waiters(t *testing.T) {
	began := clock.Now()
	l := build(t, PerSecond(20_000), WithBurst(10))
	var got atomic.Int64
	require.NoError(t, l.Wait(t.Context()))
	got.Add(1)
	crowd(20, 200*time.Millisecond, func(r *rand.Rand) bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(3000))*time.Microsecond)
		defer cancel()
		if l.Wait(ctx) == nil {
			got.Add(1)
		}
		if r.IntN(10) == 0 {
			c := with(l.Config(), func(c *Config) { c.Burst = 5 + r.Int64N(5) })
			require.NoError(t, l.Update(c))
		}
		return true
	})
	assert.LessOrEqual(t, float64(got.Load()), 10+20_000*float64(clock.Now()-began)/1e9)
	assert.Zero(t, l.queued.Load())
	assert.Zero(t, l.waiting.Load())
	assert.Nil(t, l.queue.first)
}

func TestRace_Priorities(t *testing.T) {
	const burst, perSecond = 100, 50_000
	began := clock.Now()
	q, err := NewPriorities("test", PerSecond(perSecond), WithBurst(burst))
	require.NoError(t, err)
	var kept, admitted, refused, refunded atomic.Int64
	crowd(6, 200*time.Millisecond, func(r *rand.Rand) bool {
		switch d := q.Take(sluice.Priority(r.IntN(3)-1), 1); {
		case !d.OK():
			refused.Add(1)
		case r.IntN(4) == 0:
			q.Refund(d)
			admitted.Add(1)
			refunded.Add(1)
		default:
			kept.Add(1)
			admitted.Add(1)
		}
		if r.IntN(1000) == 0 {
			c := q.Config()
			c.Classes[0].Assured = 0.1 + 0.4*r.Float64()
			require.NoError(t, q.Update(c))
		}
		return true
	})
	s := q.Snapshot()
	levels, total, no := s.Shared.Level, int64(0), int64(0)
	for _, class := range s.Classes {
		levels += class.Own.Level
		total += class.Admitted
		no += class.Refused.all()
	}
	assert.LessOrEqual(t, float64(kept.Load())+levels, burst+perSecond*float64(clock.Now()-began)/1e9)
	assert.Equal(t, admitted.Load(), total)
	assert.Equal(t, refused.Load(), no)
	assert.Equal(t, refunded.Load(), s.Refunded)
}
