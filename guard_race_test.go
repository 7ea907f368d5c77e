package sluice_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stage"
)

// tally is a stage that counts, and refuses every fifth.
type tally struct {
	asked, admitted, completed, cutOff, open atomic.Int64
}

func (s *tally) Do(context.Context, func(context.Context) error) error {
	panic("a stage is to be run in two steps")
}

func (s *tally) Admit(_ context.Context, now int64) (stage.Ticket, error) {
	if s.asked.Add(1)%5 == 0 {
		return stage.Ticket{}, sluice.ErrRejected
	}
	s.admitted.Add(1)
	s.open.Add(1)
	return stage.Ticket{Ref: s, At: now}, nil
}

func (s *tally) Settle(t stage.Ticket, _ context.Context, _ int64, _ error, completed bool) {
	t.Ref.(*tally).open.Add(-1)
	if completed {
		s.completed.Add(1)
	} else {
		s.cutOff.Add(1)
	}
}

// What was admitted is settled, whatever many goroutines do at once with one chain.
func TestChain_IsSafeForConcurrentUse(t *testing.T) {
	const goroutines, each = 8, 500
	tallies := [6]*tally{{}, {}, {}, {}, {}, {}}
	guard := sluice.Chain(tallies[0], tallies[1], adds{"foreign"}, tallies[2], tallies[3], tallies[4], sluice.Chain(tallies[5]))
	var made, passed atomic.Int64
	var all sync.WaitGroup
	for n := range goroutines {
		all.Go(func() {
			for i := range each {
				how := ending(func() {
					_, _ = sluice.Call(t.Context(), guard, func(context.Context) (int, error) {
						switch made.Add(1); (n + i) % 4 {
						case 1:
							return 0, errDown
						case 2:
							panic("call")
						}
						return i, nil
					})
				})
				if how == "returned" {
					passed.Add(1)
				}
			}
		})
	}
	all.Wait()
	require.Positive(t, passed.Load())
	reached := int64(goroutines * each)
	for i, s := range tallies {
		assert.Equal(t, reached, s.asked.Load(), "everyone whom %d admits asks the next", i-1)
		assert.Zero(t, s.open.Load(), "%d", i)
		assert.Equal(t, s.admitted.Load(), s.completed.Load()+s.cutOff.Load(), "%d", i)
		assert.Equal(t, reached-reached/5, s.admitted.Load(), "%d", i)
		assert.Positive(t, s.cutOff.Load(), "%d", i)
		reached = s.admitted.Load()
	}
	assert.Equal(t, reached, made.Load(), "and whom the last admits is called")
}
