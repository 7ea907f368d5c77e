package adaptive

import (
	"sync/atomic"

	"github.com/sluicego/sluice/internal/stripe"
	"github.com/sluicego/sluice/metrics"
)

// limiterTally counts what the places do not. Calls that were answered are not counted:
// they are those that were admitted, less all others.
type limiterTally struct {
	admitted metrics.Total // keeps what is said of admissions from going down
	answers  metrics.Total // and of answers
	// Raised by whoever settles the call, and never lowered.
	dropped, failed, ignored atomic.Int64
	gaveUp                   atomic.Int64 // calls whose ctx ended while they waited
	// refused is nil until the first refusal. Made by countRefusals, and then stays.
	refused atomic.Pointer[limitRefusals]
}

// limitRefusals counts refusals. They are spread over cache lines, since in overload
// refusing is what many callers get.
type limitRefusals [stripe.Cells]struct {
	by [limitReasons]atomic.Int64
	_  [stripe.Line - limitReasons*8]byte
}

// refuse counts a refusal and returns it.
func (l *Limiter) refuse(r limitReason) error {
	counts := l.refused.Load()
	if counts == nil {
		counts = l.countRefusals()
	}
	counts[stripe.Index()].by[r].Add(1)
	return &l.refusals[r]
}

// countRefusals makes the counters, unless somebody else has.
func (t *limiterTally) countRefusals() *limitRefusals {
	t.refused.CompareAndSwap(nil, new(limitRefusals))
	return t.refused.Load()
}

// refusedSoFar adds the stripes up.
func (t *limiterTally) refusedSoFar() (s LimiterRefusedSnapshot) {
	counts := t.refused.Load()
	if counts == nil {
		return s
	}
	for i := range counts {
		s.Limit += counts[i].by[refusedLimit].Load()
		s.QueueFull += counts[i].by[refusedLimitQueue].Load()
		s.MaxWait += counts[i].by[refusedLimitWait].Load()
	}
	return s
}
