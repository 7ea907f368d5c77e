package retry

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A fleet is three replicas that answer after 20 ms or less half of the time and after
// 440 ms or more once in a thousand times; for some time one of them is ten times as
// slow. Each attempt of each call has a latency of its own, whatever else happens.
type fleet struct {
	slowFrom, slowTo time.Duration
	began            time.Time
}

func (f *fleet) latency(call, attempt int) time.Duration {
	r := rand.New(rand.NewPCG(uint64(call), uint64(attempt)))
	d := time.Duration(20e6 * math.Exp(r.NormFloat64()))
	replica := (call + attempt) % 3 // the second attempt goes to another one
	if now := time.Since(f.began); replica == 0 && f.slowFrom <= now && now < f.slowTo {
		d *= 10
	}
	return d
}

// lives lets n calls come at 200/s, and returns how long each took, in order of length,
// and how many attempts there were.
func (f *fleet) lives(ctx context.Context, h *Hedger, n int) (took []time.Duration, sent int) {
	f.began = time.Now()
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range n {
		time.Sleep(5 * time.Millisecond)
		all.Go(func() {
			began := time.Now()
			_, _ = Hedge(ctx, h, func(ctx context.Context) (int, error) {
				attempt := AttemptOf(ctx)
				mu.Lock()
				sent++
				mu.Unlock()
				t := time.NewTimer(f.latency(i, attempt))
				defer t.Stop()
				select {
				case <-t.C:
					return attempt, nil
				case <-ctx.Done():
					return 0, ctx.Err()
				}
			}, nil)
			mu.Lock()
			took = append(took, time.Since(began))
			mu.Unlock()
		})
	}
	all.Wait()
	slices.Sort(took)
	return took, sent
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	return sorted[int(q*float64(len(sorted)))]
}

// E12: a second attempt for calls that take longer than nineteen of twenty do cuts the
// slowest in a thousand from 440 ms to less than half of that, for a twentieth more
// attempts. While one of the three replicas is ten times as slow, a twentieth becomes more
// than a fifth, unless a budget bounds it.
func TestE12_HedgingCutsTheTail(t *testing.T) {
	const p95 = 103_600 * time.Microsecond
	t.Attr("columns", "replicas | hedging | median | p95 | p99.9 | more attempts, %")
	row := func(t *testing.T, replicas, hedging string, took []time.Duration, sent int) {
		q := func(q float64) time.Duration { return quantile(took, q).Round(time.Millisecond) }
		t.Attr("row", fmt.Sprintf("%s | %s | %v | %v | %v | %.0f", replicas, hedging, q(0.5), q(0.95), q(0.999), 100*float64(sent-len(took))/float64(len(took))))
	}
	calls := max(rounds(24_000), 6000)
	within := func(t *testing.T, want, got, off time.Duration) {
		t.Helper()
		assert.InDelta(t, want.Seconds(), got.Seconds(), off.Seconds())
	}
	t.Run("none", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			took, sent := new(fleet).lives(t.Context(), nil, calls)
			within(t, 20*time.Millisecond, quantile(took, 0.5), 2*time.Millisecond)
			within(t, 440*time.Millisecond, quantile(took, 0.999), 150*time.Millisecond)
			assert.Equal(t, calls, sent)
			row(t, "alike", "none", took, sent)
		})
	})
	t.Run("at the 95th percentile", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hedger(t, p95, WithHedgeBudget(budgetNow(t)))
			took, sent := new(fleet).lives(t.Context(), h, calls)
			within(t, 20*time.Millisecond, quantile(took, 0.5), 2*time.Millisecond)
			within(t, 186*time.Millisecond, quantile(took, 0.999), 40*time.Millisecond)
			assert.InDelta(t, 0.05, float64(sent-calls)/float64(calls), 0.01, "extra load")
			assert.Zero(t, h.Snapshot().Throttled)
			row(t, "alike", "at the 95th percentile", took, sent)
		})
	})
	slow := fleet{slowFrom: 0, slowTo: time.Hour}
	t.Run("one replica slow, no budget", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hedger(t, p95)
			took, sent := slow.lives(t.Context(), h, 6000)
			assert.InDelta(t, 0.28, float64(sent-6000)/6000, 0.05, "extra load grows to what is slow")
			within(t, 186*time.Millisecond, quantile(took, 0.95), 60*time.Millisecond)
			row(t, "one slow", "the same, no budget", took, sent)
		})
	})
	t.Run("one replica slow, 10 % and 1/s", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			h := hedger(t, p95, WithHedgeBudget(budgetNow(t)))
			took, sent := slow.lives(t.Context(), h, 6000)
			assert.LessOrEqual(t, sent-6000, 600+30+10, "the budget bounds it")
			assert.GreaterOrEqual(t, sent-6000, 550, "and is used")
			assert.Positive(t, h.Snapshot().Throttled)
			row(t, "one slow", "the same, budget of 10 % and 1/s", took, sent)
		})
	})
}
