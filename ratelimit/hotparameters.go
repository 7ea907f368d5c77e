package ratelimit

import (
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
)

// HotParameters limits how often calls come with the same value of a parameter, such as
// a product that everybody looks at, with exceptions for single values; and it finds the
// values that are refused most. It is the hot parameter rule of Alibaba Sentinel, on top
// of Keyed, which says how it keeps its values and what it promises. Of a call with
// several parameters, each has its own HotParameters, and TakeAll asks them all.
//
// Most callers want Allow or Take. What is asked, and what it costs, is as for Keyed. A
// HotParameters starts no goroutine, is safe for concurrent use and must not be copied. A
// nil *HotParameters lets everything pass; the zero HotParameters is of no use, make one
// with NewHotParameters.
type HotParameters struct {
	// all are the values that are no exceptions; each limit that exceptions have is one
	// of its classes.
	all *Keyed
	// plan is the configuration in force. Written by Update, under mu.
	plan atomic.Pointer[hotPlan]
	mu   sync.Mutex // puts updates in order
}

// NewHotParameters returns a HotParameters of that name, which must not be empty, with
// that rate for each value that is no exception. It returns every complaint about them and
// the options at once.
//
// For package variables there is sluice.Must.
func NewHotParameters(name string, rate Rate, opts ...HotParametersOption) (*HotParameters, error) {
	c, counted, err := applyHotParameters(name, rate, opts)
	if err != nil {
		return nil, err
	}
	classes := classesOf(c.Exceptions, nil)
	h := &HotParameters{all: newKeyed(name, "hot_parameters", c.keyed(classes), counted, clock.Now())}
	h.plan.Store(h.newPlan(c, classes))
	return h, nil
}

// Name returns the name given to NewHotParameters.
func (h *HotParameters) Name() string {
	if h == nil {
		return ""
	}
	return h.all.Name()
}

// Allow takes a token of value if there is one, and reports whether.
func (h *HotParameters) Allow(value string) bool { return h.of(value).Allow(value) }

// Take takes n tokens of value if there are so many, as Keyed.Take does.
func (h *HotParameters) Take(value string, n int64) Decision { return h.of(value).Take(value, n) }

// Peek tells what Take would answer, as Keyed.Peek does.
func (h *HotParameters) Peek(value string, n int64) Decision { return h.of(value).Peek(value, n) }

// Debit takes n tokens of value whether they are there or not, as Keyed.Debit does.
func (h *HotParameters) Debit(value string, n int64) Decision { return h.of(value).Debit(value, n) }

// Refund gives back what d took of value, as Keyed.Refund does.
func (h *HotParameters) Refund(value string, d Decision) { h.of(value).Refund(value, d) }

// By returns value as a Layer of TakeAll.
func (h *HotParameters) By(value string) Layer { return h.of(value).By(value) }

// TopRejected returns the n values that are refused most lately, the most refused first.
func (h *HotParameters) TopRejected(n int) []HotKey { return h.of("").TopRejected(n) }

// of is where value is limited; nil if h is.
func (h *HotParameters) of(value string) *Keyed {
	if h == nil {
		return nil
	}
	if class := h.plan.Load().exceptions[value]; class != nil {
		return class
	}
	return h.all
}
