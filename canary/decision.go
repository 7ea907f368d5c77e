package canary

import "fmt"

// Decision is what a Picker decided for one request, and why.
type Decision struct {
	// Version serves the request. It is never nil, unless the Picker is.
	Version *Version
	// Reason is what decided.
	Reason Reason
	// Point is where the identity lies, below 1 000 000. For a request without one it is
	// what chance has thrown, or 0 if a wish or Default decided. It tells users apart, so it
	// is that of hash spec 1 also where another hash decides (WithHash), which may have so
	// few points that many users share one.
	Point uint32
	// Generation is that of the plan that decided.
	Generation uint64
}

// Judged reports whether the request belongs to a fair sample of its version's
// requests, which hash or chance has split by the weights in force. What was forced,
// targeted, assigned earlier or had no choice is left out when versions are compared.
func (d Decision) Judged() bool { return d.Reason == Split || d.Reason == Random }

// Reason is what decided on a version.
type Reason uint8

// The reasons, the strongest first.
const (
	// Killed: Kill sends everything to the stable version.
	Killed Reason = iota + 1
	// Override: an authorised wish for this one request.
	Override
	// Targeted: a rule or a feature flag names the version.
	Targeted
	// Sticky: an assignment that was stored earlier.
	Sticky
	// Split: the hash of the identity.
	Split
	// Random: there is no identity, and chance decides by the weights.
	Random
	// Default: there is no identity, and the stable version serves such requests.
	Default
)

// reasons is how many there are.
const reasons = int(Default)

var reasonNames = [...]string{
	Killed: "killed", Override: "override", Targeted: "targeting_match", Sticky: "sticky",
	Split: "split", Random: "random", Default: "default",
}

// String returns the reason in lower case. Those that OpenFeature knows have its
// word: "targeting_match", "split", "default". The zero Reason, which a nil *Picker
// gives, is "disabled".
func (r Reason) String() string {
	switch {
	case r == 0:
		return "disabled"
	case int(r) <= reasons:
		return reasonNames[r]
	}
	return fmt.Sprintf("Reason(%d)", uint8(r))
}

// MarshalText returns the text of String.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }
