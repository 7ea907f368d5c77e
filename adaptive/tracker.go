package adaptive

import (
	"errors"
	"sync/atomic"
	"time"
)

// newTracker makes what c and h want the limit to be worked out by.
func newTracker(c *TimeoutConfig, h *timeoutHooks, now int64) tracker {
	if h.estimator != nil {
		return &foreign{make: h.estimator}
	}
	return newBuiltIn(c, c.first(), now)
}

// newBuiltIn makes the estimator of c.Rule. limit is what it begins with.
func newBuiltIn(c *TimeoutConfig, limit time.Duration, now int64) tracker {
	switch c.Rule.Kind {
	case KindMeanMultiple:
		return newMeanMultiple(c.Rule)
	case KindQuantile:
		m := &quantileMultiple{rule: c.Rule, growth: growth{limit: limit}}
		m.form(c.shape(), c.Max, c.Window, c.History, now)
		return m
	case KindRFC6298:
		return &rfc6298{initial: limit}
	case KindFixed:
		return &fixed{limit: c.Rule.Limit}
	}
	k := &kaplanMeier{growth: growth{limit: limit}, tuning: c.tuning(), ref: limit}
	k.form(c.shape(), c.Max, c.Window, c.History, now)
	return k
}

func (c *TimeoutConfig) shape() shape {
	if c.Compact {
		return compactShape
	}
	return fullShape
}

func (c *TimeoutConfig) tuning() tuning { return tuning{c.Rule.FalseTimeouts, c.Margin, c.OutageCap} }

var errNoEstimator = errors.New("adaptive: the function given to WithEstimator returned nil")

// foreign is an Estimator of the user's. It is made by the first call that ends, since
// a TimeoutGroup makes its Timeouts with a lock held.
type foreign struct {
	make func() Estimator
	est  atomic.Pointer[Estimator] // written once, by CAS
	done atomic.Int64
}

func (f *foreign) Observe(s Sample) {
	if s.End == Finished {
		f.done.Add(1)
	}
	f.made().Observe(s)
}

func (f *foreign) Estimate(now int64, b Bounds) Estimate { return f.made().Estimate(now, b) }

func (f *foreign) made() Estimator {
	if est := f.est.Load(); est != nil {
		return *est
	}
	if err := f.prepare(); err != nil {
		panic(err)
	}
	return *f.est.Load()
}

// prepare makes the Estimator, unless somebody else is first.
func (f *foreign) prepare() error {
	est := f.make()
	if est == nil {
		return errNoEstimator
	}
	f.est.CompareAndSwap(nil, &est)
	return nil
}

func (f *foreign) finished() int64           { return f.done.Load() }
func (f *foreign) quantiles(int64) Quantiles { return Quantiles{} }
