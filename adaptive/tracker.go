package adaptive

import (
	"errors"
	"sync/atomic"
	"time"
)

// newTracker makes what c and h want the limit to be worked out by. limit is what it
// is meanwhile.
func newTracker(c *TimeoutConfig, h *timeoutHooks, limit time.Duration, now int64) (tracker, error) {
	if h.estimator != nil {
		est := h.estimator()
		if est == nil {
			return nil, errors.New("adaptive: the function given to WithEstimator returned nil")
		}
		return &foreign{Estimator: est}, nil
	}
	return newBuiltIn(c, limit, now), nil
}

// newBuiltIn makes the estimator of c.Rule.
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

// foreign is an Estimator of the user's.
type foreign struct {
	Estimator
	done atomic.Int64
}

func (f *foreign) Observe(s Sample) {
	if s.End == Finished {
		f.done.Add(1)
	}
	f.Estimator.Observe(s)
}

func (f *foreign) finished() int64           { return f.done.Load() }
func (f *foreign) quantiles(int64) Quantiles { return Quantiles{} }
