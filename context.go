package sluice

import (
	"context"
	"fmt"

	"github.com/sluicego/sluice/internal/stage"
)

// Priority is how important a call is when not all can be served. Lower is more
// important; the zero value is the middle class, P1.
type Priority int8

const (
	// P0 is for calls that must go through while anything does.
	P0 Priority = iota - 1
	// P1 is what a call is unless it says otherwise.
	P1
	// P2 is for calls that can be shed first.
	P2
)

// String returns "P0", "P1" or "P2", and the number for anything else.
func (p Priority) String() string {
	switch p {
	case P0:
		return "P0"
	case P1:
		return "P1"
	case P2:
		return "P2"
	}
	return fmt.Sprintf("Priority(%d)", int8(p))
}

// MarshalText returns the text of String, for JSON and logs.
func (p Priority) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

type priorityKey struct{}

// WithPriority returns a ctx whose calls have priority p. Those who look at it are
// adaptive.System, adaptive.Limiter if calls may wait for it, bulkhead.Bulkhead if its
// queue is one by priority (WithAging), ratelimit.Priorities, and a breaker that
// recovers, which always admits P0.
func WithPriority(ctx context.Context, p Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, p)
}

// PriorityOf returns the priority of ctx's calls, P1 if none was set.
func PriorityOf(ctx context.Context) Priority {
	p, _ := ctx.Value(priorityKey{}).(Priority)
	return p
}

// IsProbe reports whether ctx belongs to a half-open probe: a call whose result
// decides whether a circuit breaker closes. Code further in may give it more
// time, or leave out what would make it fail for reasons of its own.
func IsProbe(ctx context.Context) bool { return stage.IsProbe(ctx) }

// Bypass returns a ctx whose calls pass by all guards, neither refused nor
// counted: for health checks and administration. Chain, Call, CallOr and
// httpguard look for it; the methods of a single guard, such as Do and Allow, do
// what they are asked.
func Bypass(ctx context.Context) context.Context { return stage.WithBypass(ctx) }
