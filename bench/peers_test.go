package bench

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	aegis "github.com/go-kratos/aegis/circuitbreaker"
	"github.com/go-kratos/aegis/circuitbreaker/sre"
	"github.com/sony/gobreaker/v2"
	gozero "github.com/zeromicro/go-zero/core/breaker"
	"github.com/zeromicro/go-zero/core/logx"
)

// Each breaker, ours and theirs, is set up for the same job: count 10 s, in ten
// buckets, and trip when half of at least 20 calls failed. What a peer cannot be
// told is said at its constructor. None of the peers looks at how long a call
// took; sluice-errors-only is what compares with them in what it does, and
// "sluice" does more.
const (
	span        = 10 * time.Second
	buckets     = 10
	minRequests = 20
	ratio       = 0.5
)

// errDown is what a failing call returns.
var errDown = errors.New("down")

// The calls that are made inside the guards. They capture nothing, so that no
// closure is measured.
func answer() (int, error)                    { return 42, nil }
func fail() (int, error)                      { return 0, errDown }
func succeedWith(context.Context) error       { return nil }
func answerWith(context.Context) (int, error) { return 42, nil }

// mostly is a dependency that fails 63 of 64 calls, beginning with one that it
// does not; so every failure is judged by a rule that trips at all of them, and
// never trips. (failsafe-go rounds to whole percents, so 199 of 200 would be all.)
type mostly uint

// err is how the next call ends.
func (n *mostly) err() error {
	*n++
	if *n%64 == 1 {
		return nil
	}
	return errDown
}

// call is the next call itself.
func (n *mostly) call() func() (int, error) {
	if n.err() == nil {
		return answer
	}
	return fail
}

// TestMain silences go-zero, which writes the machine's load to the standard
// output once a minute, amid the figures. Its goroutine that samples the load
// four times a second goes on; it cannot be stopped.
func TestMain(m *testing.M) {
	logx.Disable()
	os.Exit(m.Run())
}

// newGobreaker counts in a rolling window under a mutex. It does not look at the
// ctx. It is measured through Execute, which its documentation shows first: the
// two-step form allocates a closure for each call.
func newGobreaker(ratio float64) *gobreaker.CircuitBreaker[int] {
	return gobreaker.NewCircuitBreaker[int](gobreaker.Settings{
		Name:         "bench",
		Interval:     span,
		BucketPeriod: span / buckets,
		Timeout:      time.Hour,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return c.Requests >= minRequests && float64(c.TotalFailures) >= ratio*float64(c.Requests)
		},
	})
}

// newFailsafe counts in ten buckets (fixed) under a mutex. By itself it does not
// look at the ctx, does not tell a late result from a new one, and leaves panics
// to its executor. It is measured as a permit and a record, which is faster than
// its executor; Call measures that one.
func newFailsafe(ratio float64) circuitbreaker.CircuitBreaker[int] {
	return circuitbreaker.NewBuilder[int]().
		WithFailureRateThreshold(ratio, minRequests, span).
		WithDelay(time.Hour).
		Build()
}

// newGoZero has no state that opens: it refuses at random, the more the more
// calls fail, worked out for every call from all of its 40 buckets over 10 s.
// None of its numbers can be set. It looks at the ctx.
func newGoZero() gozero.Breaker { return gozero.NewBreaker(gozero.WithName("bench")) }

// newAegis is of go-zero's kind with ten buckets. It does not look at the ctx.
// The share of successes below which it refuses can be set, to the same half.
func newAegis(success float64) aegis.CircuitBreaker {
	return sre.NewBreaker(sre.WithWindow(span), sre.WithBucket(buckets), sre.WithRequest(minRequests), sre.WithSuccess(success))
}

// mark tells aegis how a call ended.
func mark(br aegis.CircuitBreaker, err error) {
	if err != nil {
		br.MarkFailed()
		return
	}
	br.MarkSuccess()
}
