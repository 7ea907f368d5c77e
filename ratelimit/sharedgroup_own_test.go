package ratelimit

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An update of one limiter and one of its group at the same time leave it with the
// configuration of one of them, and the group knows whose: else it would let go of one
// that is configured by itself, and hold one for ever that is not.
func TestSharedGroup_KnowsWhoHasConfiguredItself(t *testing.T) {
	g, err := NewSharedGroup("users", boundlessStore{}, Global(PerSecond(100)))
	require.NoError(t, err)
	a := g.Get("a")
	mine := g.Config()
	mine.Burst = 7
	rounds := 20_000
	if testing.Short() {
		rounds /= 8
	}
	for i := range rounds {
		c := g.Config()
		c.Burst = int64(20 + i%2)
		var both sync.WaitGroup
		both.Go(func() { assert.NoError(t, g.Update(c)) })
		both.Go(func() { assert.NoError(t, a.Update(mine)) })
		both.Wait()
		require.Equal(t, a.Config() == mine, a.member.Own.Load(), "round %d", i)
		require.NoError(t, g.Update(c))
		require.False(t, a.member.Own.Load())
	}
}
