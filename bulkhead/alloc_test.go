package bulkhead

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

func nothing(context.Context) error { return nil }

func nothingAtAll(context.Context) (int, error) { return 0, nil }

func TestAllocs_Admit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b := build(t, 64, WithConfig(Config{
		Limit: 64, MaxQueue: 9, MaxWait: time.Second, Order: AdaptiveLIFO, Aging: 1, CoDelTarget: 1, CoDelInterval: 1,
	}))
	chain := sluice.Chain(b, build(t, 3))
	for name, call := range map[string]func(){
		"Acquire":     func() { p, _ := b.Acquire(ctx); p.Done(nil) },
		"AcquireN":    func() { p, _ := b.AcquireN(ctx, 7); p.Close() },
		"TryAcquire":  func() { p, _ := b.TryAcquire(ctx); p.Cancel() },
		"TryAcquireN": func() { p, _ := b.TryAcquireN(ctx, 7); p.Settle(sluice.Success) },
		"deferred":    func() { p, _ := b.Acquire(ctx); defer p.Close() },
		"Do":          func() { _ = b.Do(ctx, nothing) },
		"Do, capturing": func() {
			n := 0
			_ = b.Do(ctx, func(context.Context) error { n++; return nil })
		},
		"Call":  func() { _, _ = sluice.Call(ctx, b, nothingAtAll) },
		"Chain": func() { _, _ = sluice.Call(ctx, chain, nothingAtAll) },
	} {
		assert.Zero(t, testing.AllocsPerRun(500, call), name)
	}
}

func TestAllocs_Refuse(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	full := build(t, 2)
	fill(t, full, 2)
	queued := build(t, 2, WithQueue(1, math.MaxInt64), WithAging(time.Second))
	fill(t, queued, 2)
	go func() { _, _ = queued.Acquire(ctx) }()
	require.Eventually(t, func() bool { return queued.Snapshot().Waiting == 1 }, time.Minute, time.Millisecond)
	closed := build(t, 0, WithQueue(1, time.Second))
	for name, b := range map[string]*Bulkhead{"full": full, "queue full": queued, "closed": closed} {
		for how, call := range map[string]func() error{
			"Acquire":    func() error { _, err := b.Acquire(ctx); return err },
			"AcquireN":   func() error { _, err := b.AcquireN(ctx, 2); return err },
			"too large":  func() error { _, err := b.AcquireN(ctx, 3); return err },
			"TryAcquire": func() error { _, err := b.TryAcquire(ctx); return err },
			"Do":         func() error { return b.Do(ctx, nothing) },
			"Call":       func() error { _, err := sluice.Call(ctx, b, nothingAtAll); return err },
		} {
			require.ErrorIs(t, call(), ErrFull, "%s, %s", name, how)
			assert.Zero(t, testing.AllocsPerRun(500, func() { _ = call() }), "%s, %s", name, how)
		}
	}
}
