// Package stage is how rooms that admit and settle are composed without
// garbage: sluice.Call and sluice.Chain drive them in two steps, with one
// reading of the clock on the way in, one on the way out, and no closure. Its
// types keep the interface ours: a foreign Guard is run through its Do.
package stage

import (
	"context"
	"math"
)

// A Stage admits a call and is told how it ended.
//
// Admit takes the time it was reached, and a ctx that was not done then: whoever
// runs the stages looks once for all of them. It returns a ticket, or a refusal,
// which leaves nothing taken. Settle is called exactly once for each ticket: completed
// is false when the call, or a stage further in, panicked or ended the goroutine,
// and err means nothing then. ctx is the one given to Admit, but without the mark
// of a probe. Both are safe for concurrent use.
type Stage interface {
	Admit(ctx context.Context, now int64) (Ticket, error)
	Settle(t Ticket, ctx context.Context, now int64, err error, completed bool)
}

// A Ticket is what one Stage gave for one call. Its size is bounded by what the
// compiler keeps in registers: four words.
type Ticket struct {
	Ref  any   // what the Stage must find again: a pointer of its own, so that it costs nothing to box
	At   int64 // when the call was admitted: later than Admit's now if the Stage waited, so waiting is never slow
	Mark int64 // a number that the Stage must find again, or ProbeMark
}

// ProbeMark is the Mark of a call that decides whether a half-open breaker closes.
const ProbeMark int64 = math.MinInt64

// Probe reports whether the ticket bears ProbeMark.
func (t Ticket) Probe() bool { return t.Mark == ProbeMark }

type (
	probeKey  struct{}
	bypassKey struct{}
)

// WithProbe marks ctx as that of a half-open probe.
func WithProbe(ctx context.Context) context.Context {
	return context.WithValue(ctx, probeKey{}, true)
}

// IsProbe reports whether WithProbe marked ctx or a parent of it.
func IsProbe(ctx context.Context) bool {
	return ctx.Value(probeKey{}) != nil
}

// WithBypass marks ctx as that of calls which no guard refuses or counts.
func WithBypass(ctx context.Context) context.Context {
	return context.WithValue(ctx, bypassKey{}, true)
}

// Bypassed reports whether WithBypass marked ctx or a parent of it.
func Bypassed(ctx context.Context) bool {
	return ctx.Value(bypassKey{}) != nil
}

// EndOf returns the error of a ctx whose Done is closed. A ctx that has none then breaks
// its contract; nobody may take that for leave, or for a ctx that goes on.
func EndOf(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Canceled
}
