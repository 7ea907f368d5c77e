package breaker

import "fmt"

// State is where a breaker stands. See the package comment for what leads from
// one to another.
type State uint8

const (
	// Closed: calls pass and are counted. A breaker that is recovering is Closed
	// too, with Snapshot.Share below 1. It may be followed by Open.
	Closed State = iota + 1
	// Open: calls are refused until a deadline. It may be followed by HalfOpen, and
	// by Closed through Reset.
	Open
	// HalfOpen: a bounded number of calls pass as probes, and their results decide.
	// It may be followed by Closed and by Open.
	HalfOpen
)

// String returns "closed", "open" or "half_open".
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case Open:
		return "open"
	case HalfOpen:
		return "half_open"
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// MarshalText returns the text of String, for JSON and logs.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Mode is an override of what a breaker decides, set by Force. Under each but
// Disabled the breaker goes on counting and changing state underneath, so that
// the state is right when the override ends.
type Mode uint8

const (
	// ForcedOpen refuses every call, probes as well.
	ForcedOpen Mode = iota + 1
	// ForcedClosed admits every call. One that would have been refused is not
	// counted; the others are, and may change the state underneath.
	ForcedClosed
	// Disabled admits every call and counts none of those it admits. A deadline goes
	// on running, and calls that were admitted before still count.
	Disabled
	// Shadow is ForcedClosed that counts what it would have refused, for trying
	// out rules on real traffic.
	Shadow
)

// String returns "forced_open", "forced_closed", "disabled" or "shadow", and
// "none" for the zero Mode.
func (m Mode) String() string {
	switch m {
	case 0:
		return "none"
	case ForcedOpen:
		return "forced_open"
	case ForcedClosed:
		return "forced_closed"
	case Disabled:
		return "disabled"
	case Shadow:
		return "shadow"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// MarshalText returns the text of String, for JSON and logs.
func (m Mode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
