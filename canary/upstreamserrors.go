package canary

import (
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice"
)

// ErrNoUpstream is what Upstreams' refusals match with errors.Is: no instance is up, not
// drained, and has a weight. The refusal matches sluice.ErrRejected as well.
var ErrNoUpstream = errors.New("canary: no upstream")

// ErrUnknownUpstream is what changes of an instance that there is not match.
var ErrUnknownUpstream = errors.New("canary: unknown upstream")

// NoUpstreamError is the refusal of an Upstreams, found with errors.As; it implements
// sluice.Rejection. Each Upstreams builds its own once.
type NoUpstreamError struct{ name string }

// Error names the Upstreams.
func (e *NoUpstreamError) Error() string {
	return fmt.Sprintf("upstreams %q: none is up and has a weight", e.name)
}

// Is makes the refusal match ErrNoUpstream and sluice.ErrRejected.
func (e *NoUpstreamError) Is(target error) bool {
	return target == ErrNoUpstream || target == sluice.ErrRejected
}

// Resource returns the name of the Upstreams.
func (e *NoUpstreamError) Resource() string { return e.name }

// Policy returns "upstreams".
func (e *NoUpstreamError) Policy() string { return "upstreams" }

// Reason returns "none".
func (e *NoUpstreamError) Reason() string { return "none" }

// RetryAfter returns 0: when one is back is not known.
func (e *NoUpstreamError) RetryAfter() time.Duration { return 0 }
