package adaptive

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluicego/sluice"
)

// Nothing is allocated on the way in, on the way out, and by a refusal, whatever the rule
// and however the call ends.
func TestLimiter_Allocs(t *testing.T) {
	if raceDetector {
		t.Skip("needs a build without -race, which allocates")
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for name, opts := range map[string][]LimiterOption{
		"Vegas": nil, "AIMD": {WithLimitRule(AIMD(time.Second))}, "Gradient2": {WithLimitRule(Gradient2())}, "fixed": {WithLimitRule(FixedLimit(5))},
		"own": {(&script{}).option()}, "queue": {WithQueue(10, time.Second)},
	} {
		l := buildLimiter(t, append(opts, WithLimitWindow(time.Minute))...)
		for what, call := range map[string]func(){
			"done": func() {
				p, _ := l.Acquire(ctx)
				p.Done(nil)
			},
			"failed": func() {
				p, _ := l.TryAcquire(ctx)
				p.Done(errRefused)
			},
			"settled": func() {
				p, _ := l.Acquire(ctx)
				defer p.Close()
				p.Settle(sluice.Throttled)
			},
			"cancelled": func() {
				p, _ := l.Acquire(ctx)
				p.Cancel()
			},
			"do": func() { _ = l.Do(ctx, nothingToDo) },
		} {
			assert.Zerof(t, testing.AllocsPerRun(500, call), "%s, %s", name, what)
		}
	}
	full := few(t, 1)
	p, err := full.Acquire(ctx)
	require.NoError(t, err)
	defer p.Close()
	assert.Zero(t, testing.AllocsPerRun(500, func() {
		_, err = full.Acquire(ctx)
		_, err = full.TryAcquire(ctx)
		err = full.Do(ctx, nothingToDo)
	}))
	assert.ErrorIs(t, err, ErrLimited)

	value := func(context.Context) (int, error) { return 7, nil }
	l := buildLimiter(t)
	for name, g := range map[string]sluice.Guard{"alone": l, "in a chain": sluice.Chain(l, buildLimiter(t)), "refused": sluice.Chain(l, full)} {
		assert.Zero(t, testing.AllocsPerRun(500, func() { _, _ = sluice.Call(ctx, g, value) }), name)
	}
}
