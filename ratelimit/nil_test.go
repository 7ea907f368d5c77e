package ratelimit

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// A caller who sends as many bytes as TakeUpTo says would send none for ever if a nil
// limiter, which lets everything pass, said 0.
func TestNil_GivesAllThatIsAskedFor(t *testing.T) {
	var (
		l *Limiter
		q *Priorities
		s *Shared
		k *Keyed
		e *KeyedExact
		w *SlidingWindow
	)
	for name, d := range map[string]Decision{
		"Limiter.Take":       l.Take(7),
		"Limiter.TakeUpTo":   l.TakeUpTo(1, 7),
		"Limiter.Peek":       l.Peek(7),
		"Limiter.Debit":      l.Debit(7),
		"Priorities.Take":    q.Take(sluice.P1, 7),
		"Shared.Take":        s.Take(7),
		"Keyed.Take":         k.Take("a", 7),
		"Keyed.Take2":        k.Take2("a", "b", 7),
		"KeyedExact.Take":    e.Take("a", 7),
		"SlidingWindow.Take": w.Take(7),
		"TakeAll":            TakeAll(7),
		"TakeAll of nil":     TakeAll(7, l.Layer(), k.By("a")),
	} {
		assert.True(t, d.OK(), name)
		assert.Equal(t, int64(7), d.Tokens(), name)
		assert.Equal(t, int64(math.MaxInt64), d.Remaining(), name)
		assert.NoError(t, d.Err(), name)
	}
	assert.Zero(t, l.Take(-1).Tokens())
}

// What nobody has taken, nobody gives back.
func TestNil_ItsDecisionsRefundNothingElsewhere(t *testing.T) {
	var none *Limiter
	d := none.Take(3)
	taken := make([]Decision, 2)
	l := begun(PerDay(1), func(c *Config) { c.Burst = 5 })
	require.True(t, l.take(0, 5, 1).OK())
	l.Refund(d)
	require.True(t, TakeEach(taken, 0, none.Layer(), l.Layer()).OK())
	l.Layer().Refund(taken[0])
	assert.Less(t, l.Peek(0).Remaining(), int64(3))
}
