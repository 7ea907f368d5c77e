package ratelimit

import (
	"math"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/stripe"
)

// tally counts what callers were told, exactly. What every call raises is spread
// over cache lines; each number is raised by whoever gives the answer, after it was
// decided, and never lowered.
type tally struct {
	_        [stripe.Line]byte
	cells    [stripe.Cells]cell
	refunded atomic.Int64 // decisions given back
	gone     atomic.Int64 // callers whose ctx ended while they waited
	// refused counts the refusals that are not for want of tokens.
	refused [reasons]atomic.Int64
}

// cell is one cache line.
type cell struct {
	admitted atomic.Int64 // decisions
	extra    atomic.Int64 // tokens taken, without one for each decision
	limited  atomic.Int64 // refusals for want of tokens
	_        [stripe.Line - 3*8]byte
}

// The reasons that are counted one by one.
var reasonNames = [...]string{
	ReasonExceedsCapacity, ReasonBlocked, ReasonInvalid, ReasonMaxWait, ReasonDeadline, ReasonMaxWaiters,
}

const reasons = len(reasonNames)

// count counts d as an answer. A question for no tokens is none.
func (t *tally) count(d Decision) {
	if t == nil || d.n == 0 {
		return
	}
	c := &t.cells[stripe.Index()]
	switch {
	case d.lack <= 0:
		c.admitted.Add(1)
		if d.n != 1 {
			raise(&c.extra, d.n-1, math.MaxInt64)
		}
	case d.Never():
		t.refuse(d.reason())
	default:
		c.limited.Add(1)
	}
}

// refuse counts a refusal for another reason than ReasonLimited.
func (t *tally) refuse(reason string) {
	if t == nil {
		return
	}
	for i, name := range reasonNames {
		if name == reason {
			t.refused[i].Add(1)
		}
	}
}

// tokens counts tokens that were taken without a decision.
func (t *tally) tokens(n int64) {
	if t != nil {
		raise(&t.cells[stripe.Index()].extra, n, math.MaxInt64)
	}
}

// raise adds n, at least 0, to a sum, which stops at most.
func raise(sum *atomic.Int64, n, most int64) {
	for {
		old := sum.Load()
		if sum.CompareAndSwap(old, max(old, min(sumOf(old, n), most))) {
			return
		}
	}
}

// sumOf returns x + y, or the most there is. Both are at least 0.
func sumOf(x, y int64) int64 { return x + min(y, math.MaxInt64-x) }

func (t *tally) countRefund() {
	if t != nil {
		t.refunded.Add(1)
	}
}

func (t *tally) countGone() {
	if t != nil {
		t.gone.Add(1)
	}
}
