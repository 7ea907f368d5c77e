package canary

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// ControllerState is what a Controller is doing.
type ControllerState uint8

const (
	// ControllerIdle: no version was started.
	ControllerIdle ControllerState = iota + 1
	// ControllerRamping: a step is under way; Awaiting, Paused, Completed or RolledBack may
	// follow.
	ControllerRamping
	// ControllerAwaiting: the next step has a gate; Ramping follows with its approval. The
	// Judge goes on.
	ControllerAwaiting
	// ControllerPaused: somebody has stopped the ramp; Ramping follows with Resume. The
	// Judge goes on.
	ControllerPaused
	// ControllerCompleted: the version has passed the last step. If it was not promoted, the
	// Judge goes on, and RolledBack may follow. Start begins with the next version.
	ControllerCompleted
	// ControllerRolledBack: the version has lost its share. Start begins again.
	ControllerRolledBack
)

var controllerStateNames = [...]string{
	ControllerIdle: "idle", ControllerRamping: "ramping", ControllerAwaiting: "awaiting_approval",
	ControllerPaused: "paused", ControllerCompleted: "completed", ControllerRolledBack: "rolled_back",
}

// String returns the state in snake case, "none" for the zero value.
func (s ControllerState) String() string {
	switch {
	case s == 0:
		return "none"
	case int(s) < len(controllerStateNames):
		return controllerStateNames[s]
	}
	return fmt.Sprintf("ControllerState(%d)", uint8(s))
}

// MarshalText returns the text of String.
func (s ControllerState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ControllerEventKind is what has happened.
type ControllerEventKind uint8

const (
	// ControllerStarted: the version has its first weight, or goes on from the one that it
	// had.
	ControllerStarted ControllerEventKind = iota + 1
	// ControllerStepped: it has the weight of the next step.
	ControllerStepped
	// ControllerGated: it waits for an approval.
	ControllerGated
	// ControllerHeld: somebody has paused the ramp, or taken the weight away without a
	// rollback.
	ControllerHeld
	// ControllerResumed: it goes on.
	ControllerResumed
	// ControllerChanged: somebody else has changed the weights; the step begins anew.
	ControllerChanged
	// ControllerStuck: the step should be over by now, and the Judge has no verdict to go on.
	ControllerStuck
	// ControllerCondemned: the Judge has condemned the version, and AutoRollback is off.
	ControllerCondemned
	// ControllerReverted: the version was rolled back.
	ControllerReverted
	// ControllerDone: it has passed the last step, and is stable if Promote is on.
	ControllerDone
	// ControllerRefused: the Picker has refused a change; it is tried again at each look.
	ControllerRefused
)

var controllerEventNames = [...]string{
	ControllerStarted: "started", ControllerStepped: "stepped", ControllerGated: "gated", ControllerHeld: "held",
	ControllerResumed: "resumed", ControllerChanged: "changed", ControllerStuck: "stuck", ControllerCondemned: "condemned",
	ControllerReverted: "reverted", ControllerDone: "done", ControllerRefused: "refused",
}

// String returns the kind in lower case.
func (k ControllerEventKind) String() string {
	if k > 0 && int(k) < len(controllerEventNames) {
		return controllerEventNames[k]
	}
	return fmt.Sprintf("ControllerEventKind(%d)", uint8(k))
}

// MarshalText returns the text of String.
func (k ControllerEventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// ControllerEvent is one thing that a Controller did or saw.
type ControllerEvent struct {
	Name    string // the Picker's
	Version string
	Kind    ControllerEventKind
	// State is the one after it.
	State ControllerState
	// From and To are the version's weights before and after.
	From, To Weight
	// Moved is who has moved by it.
	Moved Diff
	// Cause says why, in words and numbers.
	Cause string
	// Verdict is what the Judge said last.
	Verdict Verdict
	// Generation is that of the plan after it.
	Generation uint64
	// Time is when it happened, by the wall clock.
	Time time.Time
}

// tell gives one event to the logger and to every listener. A panic or Goexit in one does
// not keep it from the others.
func (c *Controller) tell(e ControllerEvent) { c.tellFrom(-1, e) }

// tellFrom begins with the listener of that number; -1 is the logger.
func (c *Controller) tellFrom(i int, e ControllerEvent) {
	if i == len(c.listeners) {
		return
	}
	defer c.tellFrom(i+1, e)
	defer c.caught("a listener")
	switch {
	case i >= 0:
		c.listeners[i](e)
	case c.logger != nil:
		logRamp(c.logger, e)
	}
}

// caught ends a panic of what the user gave, counts it and logs it.
func (c *Controller) caught(what string) {
	recovered := recover()
	if recovered == nil {
		return
	}
	c.panics.Add(1)
	if c.logger != nil {
		defer func() { _ = recover() }() // it may be the logger that panics
		c.logger.LogAttrs(context.Background(), slog.LevelError, "canary: "+what+" of the controller panicked",
			slog.Group(group, slog.String("resource", c.Name()), slog.Any("panic", recovered)))
	}
}

func logRamp(l *slog.Logger, e ControllerEvent) {
	level := slog.LevelInfo
	switch e.Kind {
	case ControllerStuck, ControllerCondemned, ControllerReverted, ControllerRefused:
		level = slog.LevelWarn
	}
	attrs := []any{
		slog.String("resource", e.Name), slog.String("version", e.Version), slog.String("event", e.Kind.String()),
		slog.String("state", e.State.String()), slog.String("from", e.From.String()), slog.String("to", e.To.String()),
		slog.Uint64("generation", e.Generation), slog.String("cause", e.Cause),
	}
	if v := e.Verdict; v.Result != 0 {
		attrs = append(attrs, slog.String("verdict", v.Result.String()), slog.String("reason", v.Reason),
			slog.Int64("users", v.CanarySeen.Users), slog.Int64("requests", v.CanarySeen.Requests))
	}
	l.LogAttrs(context.Background(), level, "canary: ramp", slog.Group(group, attrs...))
}
