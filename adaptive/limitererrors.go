package adaptive

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
)

// ErrLimited is what every refusal of a Limiter matches with errors.Is. The refusal
// matches sluice.ErrRejected as well.
var ErrLimited = errors.New("adaptive: concurrency limit reached")

// The reasons of a refusal, as LimitError.Reason returns them.
const (
	ReasonLimit     = "limit"      // as many calls are under way as may, and this one may not wait
	ReasonQueueFull = "queue_full" // as many wait as may, or a more important call took the room
	ReasonMaxWait   = "max_wait"   // it waited as long as it may
)

// limitReason is a reason as a number, for counting.
type limitReason uint8

const (
	refusedLimit limitReason = iota
	refusedLimitQueue
	refusedLimitWait
	limitReasons = 3
)

var limitReasonNames = [limitReasons]string{refusedLimit: ReasonLimit, refusedLimitQueue: ReasonQueueFull, refusedLimitWait: ReasonMaxWait}

// LimitError is the refusal of a Limiter, found with errors.As; it implements
// sluice.Rejection. Each Limiter builds its own once, so refusing allocates nothing. It
// may be kept.
type LimitError struct {
	name   string
	reason limitReason
}

func newLimitRefusals(name string) *[limitReasons]LimitError {
	all := new([limitReasons]LimitError)
	for r := range all {
		all[r] = LimitError{name, limitReason(r)}
	}
	return all
}

// Error names the Limiter and the reason.
func (e *LimitError) Error() string {
	text := [limitReasons]string{
		refusedLimit:      "as many calls are under way as may",
		refusedLimitQueue: "as many calls are under way as may, and as many wait",
		refusedLimitWait:  "as many calls are under way as may, and it waited for too long",
	}[e.reason]
	return fmt.Sprintf("limiter %q: %s", e.name, text)
}

// Is makes the refusal match ErrLimited and sluice.ErrRejected.
func (e *LimitError) Is(target error) bool {
	return target == ErrLimited || target == sluice.ErrRejected
}

// Resource returns the name of the Limiter.
func (e *LimitError) Resource() string { return e.name }

// Policy returns "limiter".
func (e *LimitError) Policy() string { return "limiter" }

// Reason returns one of ReasonLimit, ReasonQueueFull and ReasonMaxWait.
func (e *LimitError) Reason() string { return limitReasonNames[e.reason] }

// RetryAfter returns 0: nobody knows when a call ends.
func (e *LimitError) RetryAfter() time.Duration { return 0 }

// errNoAlgorithm is the complaint about a function that makes no LimitAlgorithm.
var errNoAlgorithm = errors.New("adaptive: WithLimitAlgorithm's function returned nil")

// prepare makes the algorithm, for a Limiter whose maker has time to be told.
func (f *foreignLimit) prepare() error {
	if f.own = f.make(); f.own == nil {
		return errNoAlgorithm
	}
	return nil
}
