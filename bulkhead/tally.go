package bulkhead

import (
	"sync/atomic"

	"github.com/sluicego/sluice/internal/stripe"
	"github.com/sluicego/sluice/metrics"
)

// tally counts what the places do not.
type tally struct {
	gaveUp   atomic.Int64  // calls whose ctx ended while they waited
	admitted metrics.Total // keeps what is said of admissions from going down
	// refused is nil until the first refusal. Made by countRefusals, and then stays.
	refused atomic.Pointer[refused]
}

// refused counts refusals. They are spread over cache lines, since in overload
// refusing is what most callers get, and apart from the word that the others need.
type refused [stripe.Cells]struct {
	by [reasons]atomic.Int64
	_  [stripe.Line - reasons*8]byte
}

// refuse counts a refusal and returns it.
func (b *Bulkhead) refuse(r reason) error {
	counts := b.refused.Load()
	if counts == nil {
		counts = b.countRefusals()
	}
	counts[stripe.Index()].by[r].Add(1)
	return &b.refusals[r]
}

// countRefusals makes the counters, unless somebody else has.
func (t *tally) countRefusals() *refused {
	t.refused.CompareAndSwap(nil, new(refused))
	return t.refused.Load()
}

// refusedSoFar adds the stripes up.
func (t *tally) refusedSoFar() RefusedSnapshot {
	var n [reasons]int64
	if counts := t.refused.Load(); counts != nil {
		for i := range counts {
			for r := range n {
				n[r] += counts[i].by[r].Load()
			}
		}
	}
	return RefusedSnapshot{
		Full: n[refusedFull], QueueFull: n[refusedQueueFull], MaxWait: n[refusedMaxWait],
		ExceedsCapacity: n[refusedCapacity], Closed: n[refusedClosed],
	}
}
