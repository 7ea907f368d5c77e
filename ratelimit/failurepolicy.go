package ratelimit

import "fmt"

// A FailurePolicy says how a Shared limiter decides while its store does not answer.
type FailurePolicy uint8

const (
	// FailLocal goes on with a limit of the node's own: LocalRate, or its equal share of
	// the limit, so that the nodes together stay within it. The burst is shared, too, but
	// no node's is less than 1.
	FailLocal FailurePolicy = iota + 1
	// FailOpen admits everything. It is for what may be too much, but not too little.
	FailOpen
	// FailClosed refuses everything. It is for what must not be too much, whatever it
	// costs.
	FailClosed
	// ReuseLast goes on for ReuseFor at the rate at which the store gave tokens to this
	// node last, or its equal share if that is more, and then as FailLocal. A node that
	// has most of the traffic keeps it; all nodes together may get up to twice the
	// limit.
	ReuseLast
)

var failurePolicyNames = [...]string{FailLocal: "local", FailOpen: "open", FailClosed: "closed", ReuseLast: "reuse_last"}

// String returns "local", "open", "closed" or "reuse_last".
func (p FailurePolicy) String() string {
	if p >= FailLocal && p <= ReuseLast {
		return failurePolicyNames[p]
	}
	return fmt.Sprintf("FailurePolicy(%d)", uint8(p))
}

// MarshalText returns the text of String.
func (p FailurePolicy) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what String returns. p is as before when it returns an error.
func (p *FailurePolicy) UnmarshalText(text []byte) error {
	for q := FailLocal; q <= ReuseLast; q++ {
		if failurePolicyNames[q] == string(text) {
			*p = q
			return nil
		}
	}
	return fmt.Errorf("ratelimit: %.64q is not a failure policy: local, open, closed or reuse_last", text)
}
