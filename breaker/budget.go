package breaker

import (
	"time"

	"github.com/sluicego/sluice"
)

// A ProbeBudget shares half-open probes among breakers, in one process or in
// many. It is called on the request path: both methods answer at once, from
// memory; what talks to a store does so behind them. It must be safe for
// concurrent use.
type ProbeBudget interface {
	// Take asks for leave to send one probe that lasts at most lease; false means
	// not now, also while an answer is under way. The fence names this leave.
	Take(resource string, lease time.Duration) (fence uint64, ok bool)
	// Settle tells how the probe ended. A fence older than the current one changes
	// nothing. Ignored means that the leave was not used or proved nothing.
	Settle(resource string, fence uint64, o sluice.Outcome)
}
