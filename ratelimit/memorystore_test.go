package ratelimit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func newMemoryStore(t *testing.T, maxKeys int) *MemoryStore {
	t.Helper()
	s, err := NewMemoryStore(maxKeys)
	require.NoError(t, err)
	return s
}

func TestNewMemoryStore_WantsRoom(t *testing.T) {
	_, err := NewMemoryStore(0)
	assert.EqualError(t, err, "ratelimit: maxKeys 0 is not positive")
}

func TestMemoryStore_SaysWhatIsWrong(t *testing.T) {
	s, ctx, key := newMemoryStore(t, 16), t.Context(), StoreKey{"api", ""}
	q := Quota{PerSecond(1), 10}
	_, err := s.Take(ctx, key, q, Ask{Min: 11, Max: 11})
	assert.EqualError(t, err, "ratelimit: Ask.Min 11 is more than Burst 10")
	_, err = s.Take(ctx, key, Quota{PerSecond(1), 0}, Ask{})
	assert.EqualError(t, err, "ratelimit: Burst 0 is less than 1")
	assert.EqualError(t, s.Debit(ctx, key, q, -1), "ratelimit: debit of -1 tokens, which is negative")
	assert.Zero(t, s.Len())

	ended, end := context.WithCancel(ctx)
	end()
	_, err = s.Take(ended, key, q, Ask{Min: 1, Max: 1})
	assert.ErrorIs(t, err, context.Canceled)
	_, err = s.Beat(ended, "api", "a", time.Second)
	assert.ErrorIs(t, err, context.Canceled)
	assert.Zero(t, s.Len(), "who has gone takes nothing")
}

// Keys whose bucket is full again are forgotten as others come, and a key that is in
// use only if there is no other way.
func TestMemoryStore_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newMemoryStore(t, 160), t.Context()
		slow, fast := Quota{PerHour(1), 10}, Quota{PerSecond(1), 10}
		for i := range 100 {
			_, err := s.Take(ctx, StoreKey{"slow", fmt.Sprint(i)}, slow, Ask{Min: 10, Max: 10})
			require.NoError(t, err)
		}
		for i := range 20_000 {
			_, err := s.Take(ctx, StoreKey{"flood", fmt.Sprint(i)}, fast, Ask{Min: 1, Max: 1})
			require.NoError(t, err)
			require.LessOrEqual(t, s.Len(), 160)
		}
		assert.Positive(t, s.Evicted(), "all at once cannot be held")
		kept := 0
		for i := range 100 {
			g, err := s.Take(ctx, StoreKey{"slow", fmt.Sprint(i)}, slow, Ask{})
			require.NoError(t, err)
			if g.Remaining == 0 {
				kept++
			}
		}
		assert.Greater(t, kept, 50, "those that take long to fill are the last to go")

		s = newMemoryStore(t, 160)
		for i := range 1000 {
			_, err := s.Take(ctx, StoreKey{"flood", fmt.Sprint(i)}, fast, Ask{Min: 1, Max: 1})
			require.NoError(t, err)
			if i%20 == 19 {
				time.Sleep(time.Second)
			}
		}
		assert.Zero(t, s.Evicted(), "full buckets make room, and nothing is lost")
	})
}

func TestMemoryStore_KeepsNoFullBucket(t *testing.T) {
	s, ctx, q := newMemoryStore(t, 16), t.Context(), Quota{PerSecond(1), 10}
	g, err := s.Take(ctx, StoreKey{"api", "a"}, q, Ask{Min: 3, Max: 3})
	require.NoError(t, err)
	assert.Equal(t, 1, s.Len())
	require.NoError(t, s.Refund(ctx, StoreKey{"api", "a"}, q, g.Receipt, 3))
	assert.Zero(t, s.Len())
	_, err = s.Take(ctx, StoreKey{"api", "b"}, q, Ask{})
	require.NoError(t, err)
	assert.Zero(t, s.Len(), "looking writes nothing")
}

func TestMemoryStore_Forget(t *testing.T) {
	s, ctx, q, key := newMemoryStore(t, 16), t.Context(), Quota{PerHour(1), 1}, StoreKey{"login", "bob"}
	g, err := s.Take(ctx, key, q, Ask{Min: 1, Max: 1})
	require.NoError(t, err)
	require.Equal(t, int64(1), g.Tokens)
	s.Forget(key)
	g, err = s.Take(ctx, key, q, Ask{Min: 1, Max: 1})
	require.NoError(t, err)
	assert.Equal(t, int64(1), g.Tokens)
}

func TestMemoryStore_Beat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMemoryStore(t, 16)
		beat := func(limiter, node string, ttl time.Duration) int64 {
			n, err := s.Beat(t.Context(), limiter, node, ttl)
			require.NoError(t, err)
			return n
		}
		assert.Equal(t, int64(1), beat("api", "a", 10*time.Second))
		assert.Equal(t, int64(2), beat("api", "b", 10*time.Second))
		assert.Equal(t, int64(1), beat("other", "a", 10*time.Second))
		time.Sleep(5 * time.Second)
		assert.Equal(t, int64(2), beat("api", "a", 10*time.Second))
		time.Sleep(5 * time.Second)
		assert.Equal(t, int64(1), beat("api", "a", 10*time.Second), "b has not been heard of for 10 s")
		assert.Equal(t, int64(2), beat("api", "c", 10*time.Second))
		assert.Equal(t, int64(1), beat("api", "a", 0), "a has said goodbye")
		for i := range 15 {
			beat("api", fmt.Sprint(i), time.Second)
		}
		_, err := s.Beat(t.Context(), "api", "one more", time.Second)
		assert.EqualError(t, err, "ratelimit: more nodes than the store holds keys")
		assert.Equal(t, int64(16), beat("api", "c", time.Second))
		assert.Equal(t, int64(1), beat("other", "a", time.Second))
	})
}

// Thousands of takes and refunds at the same time; time stands still, and more
// is missing from the bucket than is given back, so every token is accounted for.
func TestMemoryStore_ConservesTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx, q, key := newMemoryStore(t, 16), t.Context(), Quota{PerHour(1), 10_000}, StoreKey{"api", ""}
		require.NoError(t, s.Debit(ctx, key, q, 2000))
		var wg sync.WaitGroup
		kept := make([]int64, 8)
		for i := range kept {
			wg.Go(func() {
				for n := range int64(400) {
					g, err := s.Take(ctx, key, q, Ask{Min: 1, Max: 1 + n%5})
					if err != nil {
						panic(err)
					}
					kept[i] += g.Tokens
					if n%3 == 0 && g.Tokens > 0 {
						if err := s.Refund(ctx, key, q, g.Receipt, 1); err != nil {
							panic(err)
						}
						kept[i]--
					}
				}
			})
		}
		wg.Wait()
		sum := int64(0)
		for _, n := range kept {
			sum += n
		}
		g, err := s.Take(ctx, key, q, Ask{})
		require.NoError(t, err)
		assert.Equal(t, int64(8000), sum+g.Remaining)
		assert.Zero(t, s.Evicted())
	})
}
