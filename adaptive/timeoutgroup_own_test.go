package adaptive

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An update of one timeout and one of its group at the same time leave it with the
// configuration of one of them, and the group knows whose: else it would let go of one
// that is configured by itself, and hold one for ever that is not.
func TestTimeoutGroup_KnowsWhoHasConfiguredItself(t *testing.T) {
	g, err := NewTimeoutGroup("upstream", ms, time.Second)
	require.NoError(t, err)
	a := g.Get("a")
	mine := g.Config()
	mine.Max = 7 * time.Second
	rounds := 20_000
	if brief() {
		rounds = 2000
	}
	for i := range rounds {
		c := g.Config()
		c.Max = time.Duration(2+i%2) * time.Second
		var both sync.WaitGroup
		both.Go(func() { assert.NoError(t, g.Update(c)) })
		both.Go(func() { assert.NoError(t, a.Update(mine)) })
		both.Wait()
		require.Equal(t, a.Config() == mine, a.member.Own.Load(), "round %d", i)
		require.NoError(t, g.Update(c))
		require.False(t, a.member.Own.Load())
	}
}
