package ratelimit

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// stocked has a lease that does not run out, starved a refusal that does not.
func stocked(t testing.TB) *Shared {
	s, err := NewShared("api", boundlessStore{}, Global(PerSecond(1_000_000)), WithMaxLease(1<<40))
	require.NoError(t, err)
	require.True(t, s.Allow())
	s.balance.Add(1 << 40)
	return s
}

func starved(t testing.TB) *Shared {
	m, err := NewMemoryStore(16)
	require.NoError(t, err)
	s, err := NewShared("api", m, Global(Every(365*24*time.Hour)))
	require.NoError(t, err)
	require.True(t, s.Allow())
	require.False(t, s.Allow())
	return s
}

// boundlessStore grants everything.
type boundlessStore struct{ Store }

func (boundlessStore) Take(_ context.Context, _ StoreKey, _ Quota, ask Ask) (Grant, error) {
	return Grant{Tokens: ask.Max, Remaining: 1 << 40}, nil
}

func failing(t testing.TB, p FailurePolicy) *Shared {
	s, err := NewShared("api", &wire{}, Global(Rate{10_000_000_000, time.Second}), WithFailure(p), WithBurst(1<<50))
	require.NoError(t, err)
	s.node.store.(*wire).down.Store(true)
	for range 10 {
		s.Allow()
	}
	require.Equal(t, ModeFallback, s.Snapshot().Node.Mode)
	s.node.cur.Load().until.Store(1 << 60)
	return s
}

func TestAllocs_Shared(t *testing.T) {
	ctx := t.Context()
	local, err := New("local", PerSecond(1_000_000), WithBurst(1_000_000_000))
	require.NoError(t, err)
	for name, s := range map[string]*Shared{
		"a lease":        stocked(t),
		"a refusal":      starved(t),
		"the local rate": failing(t, FailLocal),
		"reuse":          failing(t, ReuseLast),
		"open":           failing(t, FailOpen),
	} {
		for what, do := range map[string]func(){
			"Allow":   func() { s.Allow() },
			"Take":    func() { d := s.Take(1); _, _, _ = d.Remaining(), d.RetryAfter(), d.ResetAfter() },
			"nothing": func() { s.Take(0); s.Take(-1); s.Take(1 << 60) },
			"Peek":    func() { s.Peek(1) },
			"Refund":  func() { s.Refund(s.Take(1)) },
			"Do":      func() { _ = s.Do(ctx, nothing) },
			"Chain":   func() { _, _ = sluice.Call(ctx, s, value) },
			"Layer":   func() { TakeAll(1, local.Layer(), s.Layer()) },
		} {
			assert.Zero(t, testing.AllocsPerRun(100, do), "%s, %s", name, what)
		}
	}
	closed := failing(t, FailClosed)
	assert.Zero(t, testing.AllocsPerRun(100, func() { closed.Allow() }))
	assert.Zero(t, testing.AllocsPerRun(100, func() { _ = closed.Do(ctx, nothing) }))

	g, err := NewSharedGroup("users", boundlessStore{}, Global(PerSecond(1000)))
	require.NoError(t, err)
	keys := []string{"ann", "bob", "cid"}
	for range 100 {
		for _, key := range keys {
			g.Get(key).balance.Add(1 << 40)
		}
	}
	i := 0
	assert.Zero(t, testing.AllocsPerRun(100, func() { g.Get(keys[i%3]).Allow(); i++ }))
}

func BenchmarkShared(b *testing.B) {
	for name, s := range map[string]*Shared{
		"lease": stocked(b), "denied": starved(b), "fallback": failing(b, FailLocal),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.Allow()
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					s.Allow()
				}
			})
		})
	}
}
