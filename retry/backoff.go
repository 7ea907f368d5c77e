package retry

import (
	"context"
	"math"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// wait is how long to wait after so many attempts, the last of which ended with err;
// ok is false if the dependency asks for more than it may. random is in [0, 1).
//
// With a Jitter of 1 it is the "full jitter" of "Exponential Backoff And Jitter" on
// the AWS Architecture Blog. A wait that was asked for comes before it, so that those
// who were told the same time do not come back at the same time.
func (p *plan) wait(made int, err error, random func() float64) (d time.Duration, ok bool) {
	d = grown(p.Backoff, p.BackoffFactor, made-1, p.BackoffMax)
	d -= time.Duration(p.Jitter * random() * float64(d))
	asked, has := sluice.RetryAfter(err)
	if !has {
		return d, true
	}
	if asked < 0 || asked > p.MaxRetryAfter {
		return 0, false
	}
	return time.Duration(clock.After(int64(asked), d)), true // saturates
}

// limit is how long the attempt after so many may take, 0 if ctx says it all.
func (p *plan) limit(ctx context.Context, made int, now int64) time.Duration {
	limit := grown(p.AttemptTimeout, p.AttemptGrowth, made, math.MaxInt64)
	deadline, ok := ctx.Deadline()
	if !ok {
		return limit
	}
	left := time.Duration(clock.At(deadline) - now)
	if p.SplitDeadline {
		share := left / time.Duration(max(p.Attempts-made, 1))
		if limit == 0 || share < limit {
			limit = share
		}
	}
	if limit >= left {
		return 0
	}
	return max(limit, 0)
}

// grown is first · factor^n, at most most, for any n from 0.
func grown(first time.Duration, factor float64, n int, most time.Duration) time.Duration {
	if first == 0 {
		return 0 // and not 0 · ∞
	}
	d := float64(first) * math.Pow(factor, float64(n))
	if d >= float64(most) {
		return most
	}
	return time.Duration(d)
}
