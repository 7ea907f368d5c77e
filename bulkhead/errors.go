package bulkhead

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/waitq"
)

var (
	// ErrFull is what every refusal of a Bulkhead or a Pool matches with errors.Is,
	// whatever its reason. The refusal matches sluice.ErrRejected as well.
	ErrFull = errors.New("bulkhead: full")
	// ErrExceedsCapacity is what the refusal of more places than there are matches
	// too. Waiting does not help.
	ErrExceedsCapacity = errors.New("bulkhead: exceeds capacity")
	// ErrClosed is what a refusal by a bulkhead whose limit is 0, or by a pool after
	// Close, matches too.
	ErrClosed = errors.New("bulkhead: closed")
)

// The reasons of a refusal, as FullError.Reason returns them.
const (
	ReasonFull            = "full"             // no place is free, and nobody may wait
	ReasonQueueFull       = "queue_full"       // as many wait as may, or a more important call took the room
	ReasonMaxWait         = "max_wait"         // it waited as long as it may
	ReasonExceedsCapacity = "exceeds_capacity" // it asks for more places than there are
	ReasonClosed          = "closed"           // the limit is 0, or the pool was closed
)

// reason is a reason as a number, for counting.
type reason uint8

const (
	refusedFull reason = iota
	refusedQueueFull
	refusedMaxWait
	refusedCapacity
	refusedClosed
	reasons = 5
)

var reasonNames = [reasons]string{
	refusedFull: ReasonFull, refusedQueueFull: ReasonQueueFull, refusedMaxWait: ReasonMaxWait,
	refusedCapacity: ReasonExceedsCapacity, refusedClosed: ReasonClosed,
}

// reasonOf turns the verdicts that refuse into reasons.
var reasonOf = [...]reason{
	waitq.Full: refusedQueueFull, waitq.Expired: refusedMaxWait, waitq.TooLarge: refusedCapacity, waitq.Closed: refusedClosed,
}

// FullError is the refusal of a Bulkhead or a Pool, found with errors.As; it
// implements sluice.Rejection. Each builds its own once, so refusing allocates
// nothing. It may be kept.
type FullError struct {
	name, policy string
	reason       reason
}

func newRefusals(name, policy string) *[reasons]FullError {
	all := new([reasons]FullError)
	for r := range all {
		all[r] = FullError{name, policy, reason(r)}
	}
	return all
}

// Error names what refused, and the reason.
func (e *FullError) Error() string {
	text := [reasons]string{
		refusedFull: "full", refusedQueueFull: "full, and so is the queue", refusedMaxWait: "waited for too long",
		refusedCapacity: "more is asked for than there is", refusedClosed: "closed",
	}[e.reason]
	return fmt.Sprintf("%s %q: %s", e.policy, e.name, text)
}

// Is makes the refusal match the sentinel errors that are named at them.
func (e *FullError) Is(target error) bool {
	switch target {
	case ErrFull, sluice.ErrRejected:
		return true
	case ErrExceedsCapacity:
		return e.reason == refusedCapacity
	case ErrClosed:
		return e.reason == refusedClosed
	}
	return false
}

// Resource returns the name of what refused.
func (e *FullError) Resource() string { return e.name }

// Policy returns "bulkhead" or "pool".
func (e *FullError) Policy() string { return e.policy }

// Reason returns one of the Reason constants.
func (e *FullError) Reason() string { return reasonNames[e.reason] }

// RetryAfter returns 0, because nobody knows when a call ends; or a negative
// duration if asking again will never help: more was asked for than there is, or a
// pool was closed.
func (e *FullError) RetryAfter() time.Duration {
	if e.reason == refusedCapacity || e.reason == refusedClosed && e.policy == "pool" {
		return -1
	}
	return 0
}
