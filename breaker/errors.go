package breaker

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
)

// ErrOpen is what every refusal of a breaker matches with errors.Is, whatever its
// reason. The refusal matches sluice.ErrRejected as well.
var ErrOpen = errors.New("breaker: open")

// The reasons of a refusal, as OpenError.Reason returns them.
const (
	ReasonOpen       = "open"        // the breaker is open
	ReasonHalfOpen   = "half_open"   // all probes are out, or none may go yet
	ReasonRecovering = "recovering"  // this call is not in the admitted share
	ReasonForcedOpen = "forced_open" // an override refuses all
)

// reason is a reason as a number, for counting.
type reason uint8

const (
	refusedOpen reason = iota
	refusedHalfOpen
	refusedRecovering
	refusedForced
	reasons = 4
)

var reasonNames = [reasons]string{refusedOpen: ReasonOpen, refusedHalfOpen: ReasonHalfOpen, refusedRecovering: ReasonRecovering, refusedForced: ReasonForcedOpen}

// OpenError is the refusal of a breaker, found with errors.As; it implements
// sluice.Rejection. It is built once for each stay in a state, so refusing
// allocates nothing. It keeps no context and may be kept.
type OpenError struct {
	name   string
	reason reason
	cause  Cause
	until  *atomic.Int64 // when it is worth while to ask again; nil if that is not known
}

// Error names the breaker, the reason and what led to it.
func (e *OpenError) Error() string {
	text := fmt.Sprintf("breaker %q: %s", e.name, e.Reason())
	if why := e.why(); why != "" {
		text += " (" + why + ")"
	}
	return text
}

// why is what led to the refusal. In HalfOpen that is not what led to the state.
func (e *OpenError) why() string {
	switch e.reason {
	case refusedForced:
		return ""
	case refusedHalfOpen:
		return "no probe may go now"
	}
	return e.cause.String()
}

// Is makes the refusal match ErrOpen and sluice.ErrRejected.
func (e *OpenError) Is(target error) bool { return target == ErrOpen || target == sluice.ErrRejected }

// Resource returns the name of the breaker.
func (e *OpenError) Resource() string { return e.name }

// Policy returns "breaker".
func (e *OpenError) Policy() string { return "breaker" }

// Reason returns one of the Reason constants.
func (e *OpenError) Reason() string { return reasonNames[e.reason] }

// Cause returns why the breaker went into the state in which it refused.
func (e *OpenError) Cause() Cause { return e.cause }

// RetryAfter returns how long the breaker stays open yet, as of the time of this
// call; 0 if that is over or not known.
func (e *OpenError) RetryAfter() time.Duration {
	if e.until == nil {
		return 0
	}
	return time.Duration(max(0, e.until.Load()-clock.Now()))
}
