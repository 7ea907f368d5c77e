package breaker

import (
	"context"
	"fmt"
	"time"
)

// Event is one change of state.
type Event struct {
	// Name is the breaker's.
	Name string
	// From and To differ; an event's From is the To of the one before it.
	From, To State
	// Generation is 1 for a new breaker and goes up by one with each event.
	Generation uint64
	Cause      Cause
	// OpenFor is how long the breaker stays open, if To is Open.
	OpenFor time.Duration
	// Time is when it happened, by the wall clock.
	Time time.Time
	// Ctx is the context of the call that caused it, for trace ids;
	// context.Background() if no call did.
	Ctx context.Context
}

// CauseReason is what made a breaker change its state.
type CauseReason uint8

const (
	// RuleTripped: Closed to Open, a rule's threshold was reached.
	RuleTripped CauseReason = iota + 1
	// ProbeFailed: HalfOpen to Open, more probes failed than are tolerated.
	ProbeFailed
	// ProbeLost: HalfOpen to Open, a probe did not end within its lease.
	ProbeLost
	// ProbesPassed: HalfOpen to Closed, the last stage ended well.
	ProbesPassed
	// DeadlinePassed: Open to HalfOpen, with the first call after the deadline.
	DeadlinePassed
	// TripRequested: to Open, by Trip or by a classifier's TripFor.
	TripRequested
	// ResetRequested: to Closed, by Reset.
	ResetRequested
)

var causeNames = [...]string{
	RuleTripped: "rule_tripped", ProbeFailed: "probe_failed", ProbeLost: "probe_lost", ProbesPassed: "probes_passed",
	DeadlinePassed: "deadline_passed", TripRequested: "trip_requested", ResetRequested: "reset_requested",
}

// String returns the reason in lower case, "none" for the zero value, which is
// that of a new breaker.
func (r CauseReason) String() string {
	switch {
	case r == 0:
		return "none"
	case int(r) < len(causeNames):
		return causeNames[r]
	}
	return fmt.Sprintf("CauseReason(%d)", uint8(r))
}

// MarshalText returns the text of String.
func (r CauseReason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Cause is why a breaker changed its state, or why it is as it is.
type Cause struct {
	Reason CauseReason
	// Rule is the rule that tripped; the zero Rule if Reason is another. When
	// several tripped at once, it is the one that opens for longest.
	Rule Rule
	// Bad of Total: calls in the rule's window that were slow or failed when it
	// tripped (both are the number in a row for a consecutive rule), or probes of a
	// stage.
	Bad, Total int64
}

// String says the cause in words and numbers, such as "slow 52 % of 50 %, 104 of
// 200 calls"; "" for the zero Cause.
func (c Cause) String() string {
	switch c.Reason {
	case 0:
		return ""
	case RuleTripped:
		return c.Rule.describe(c.Bad, c.Total)
	case ProbeFailed:
		return fmt.Sprintf("%d of %d probes failed", c.Bad, c.Total)
	case ProbeLost:
		return fmt.Sprintf("%d of %d probes failed, the last was lost", c.Bad, c.Total)
	case ProbesPassed:
		return fmt.Sprintf("%d of %d probes passed", c.Total-c.Bad, c.Total)
	case DeadlinePassed:
		return "the open period is over"
	case TripRequested:
		return "on request"
	}
	return "reset"
}

// describe says how far bad of total calls are from what the rule trips at.
func (r Rule) describe(bad, total int64) string {
	switch r.Kind {
	case SlowCallRatio:
		return fmt.Sprintf("slow %s of %s, %d of %d calls", percent(bad, total), share(r.Ratio), bad, total)
	case ErrorRatio:
		return fmt.Sprintf("errors %s of %s, %d of %d calls", percent(bad, total), share(r.Ratio), bad, total)
	case ErrorCount:
		return fmt.Sprintf("%d of %d errors in %d calls", bad, r.Count, total)
	}
	return fmt.Sprintf("%d of %d errors in a row", bad, r.Count)
}

func percent(bad, total int64) string {
	if total == 0 {
		return "0 %"
	}
	return share(float64(bad) / float64(total))
}

// share writes a ratio as a percentage with at most one decimal, rounded down: a
// threshold that is not reached must not look reached.
func share(ratio float64) string {
	tenths := int64(ratio*1000 + 1e-6)
	if tenths%10 == 0 {
		return fmt.Sprintf("%d %%", tenths/10)
	}
	return fmt.Sprintf("%d.%d %%", tenths/10, tenths%10)
}
