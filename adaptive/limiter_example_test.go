package adaptive_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/adaptive"
)

func ExampleLimiter() {
	limiter := sluice.Must(adaptive.NewLimiter("orders"))

	err := limiter.Do(context.Background(), func(context.Context) error {
		fmt.Println("served, as one of up to", limiter.Limit())
		return nil
	})
	if errors.Is(err, adaptive.ErrLimited) {
		fmt.Println("503:", err)
	}
	// Output: served, as one of up to 20
}

// In front of a server whose calls differ in importance: some wait for a moment, the more
// important ones first, and a tenth of the places is kept for the least important.
func ExampleLimiter_Acquire() {
	limiter := sluice.Must(adaptive.NewLimiter("gateway",
		adaptive.WithQueue(100, 20*time.Millisecond),
		adaptive.WithShares(0, 0, 0.1),
	))
	ctx := sluice.WithPriority(context.Background(), sluice.P0)

	p, err := limiter.Acquire(ctx)
	if err != nil {
		fmt.Println("come back later:", err)
		return
	}
	defer p.Close()
	fmt.Println("paid")
	p.Done(nil)
	// Output: paid
}

// Around the calls to a dependency that says when it has enough: say which of its answers
// mean that.
func ExampleAIMD() {
	errTooMany := errors.New("429")
	limiter := sluice.Must(adaptive.NewLimiter("search",
		adaptive.WithLimitRule(adaptive.AIMD(0)),
		adaptive.WithLimiterClassifier(func(_ context.Context, err error) sluice.Outcome {
			if errors.Is(err, errTooMany) {
				return sluice.Throttled
			}
			return 0
		}),
	))
	_ = limiter.Do(context.Background(), func(context.Context) error { return errTooMany })
	fmt.Println(limiter.Snapshot().Totals.Dropped)
	// Output: 1
}

// A rule of one's own: as many as were under way at most in the last window, and two.
type twoMore struct{}

func (twoMore) Next(w adaptive.LimitWindow) float64 { return float64(w.InFlight + 2) }

func ExampleLimitAlgorithm() {
	limiter := sluice.Must(adaptive.NewLimiter("own",
		adaptive.WithLimitAlgorithm(func() adaptive.LimitAlgorithm { return twoMore{} })))
	fmt.Println(limiter.Snapshot().Rule)
	// Output: own
}

// How to test what happens when the limit is reached: with a limit of one.
func ExampleFixedLimit() {
	limiter := sluice.Must(adaptive.NewLimiter("test", adaptive.WithLimitRule(adaptive.FixedLimit(1))))
	ctx := context.Background()

	_ = limiter.Do(ctx, func(ctx context.Context) error { // is under way
		_, err := sluice.CallOr(ctx, limiter, func(context.Context) (string, error) { return "fresh", nil },
			func(_ context.Context, cause error) (string, error) {
				var refusal *adaptive.LimitError
				fmt.Println("fallback:", errors.As(cause, &refusal), refusal.Reason())
				return "cached", nil
			})
		return err
	})
	// Output: fallback: true limit
}

func ExampleLimiterGroup() {
	hosts := sluice.Must(adaptive.NewLimiterGroup("upstream",
		adaptive.WithLimiterOverride("reports", adaptive.WithLimits(1, 4), adaptive.WithInitialLimit(4))))
	fmt.Println(hosts.Get("orders").Limit(), hosts.Get("reports").Limit())
	// Output: 20 4
}
