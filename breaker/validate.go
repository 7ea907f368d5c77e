package breaker

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

const (
	minRatio       = 0.000001
	maxBuckets     = 10_000
	maxCountWindow = 16_384
	maxStages      = 100
	maxStage       = 1_000
)

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c Config) Validate() error {
	var v complaints
	c.validateWindow(&v)
	c.validateRules(&v)
	c.validateOpen(&v)
	c.validateProbes(&v)
	return errors.Join(v...)
}

// complaints collects errors, each with the package's prefix.
type complaints []error

func (v *complaints) add(format string, args ...any) {
	*v = append(*v, fmt.Errorf("breaker: "+format, args...))
}

// unless adds the complaint if ok is false.
func (v *complaints) unless(ok bool, format string, args ...any) {
	if !ok {
		v.add(format, args...)
	}
}

func (c Config) validateWindow(v *complaints) {
	v.unless(c.Window > 0, "Window %v is not positive", c.Window)
	v.unless(c.Buckets >= 1 && c.Buckets <= maxBuckets, "Buckets %d is not in [1, %d]", c.Buckets, maxBuckets)
	c.validateSplit(v, "Window", c.Window)
	v.unless(c.CountWindow >= 0 && c.CountWindow <= maxCountWindow, "CountWindow %d is not in [0, %d]", c.CountWindow, maxCountWindow)
	v.unless(c.MinRequests >= 1, "MinRequests %d is not positive", c.MinRequests)
	v.unless(c.Confidence >= 0 && c.Confidence <= 10, "Confidence %v is not in [0, 10]", c.Confidence) // also catches NaN
}

// validateSplit complains about a span that cannot be cut into equal buckets.
func (c Config) validateSplit(v *complaints, field string, span time.Duration) {
	if span > 0 && c.Buckets >= 1 && c.Buckets <= maxBuckets {
		v.unless(int64(span)%int64(c.Buckets) == 0, "%s %v is not a multiple of %d Buckets", field, span, c.Buckets)
	}
}

func (c Config) validateRules(v *complaints) {
	v.unless(len(c.Rules) > 0, "Rules is empty: a breaker needs at least one")
	slow := false
	for i, r := range c.Rules {
		where := fmt.Sprintf("Rules[%d].", i)
		r.validate(v, where)
		slow = slow || r.Kind == SlowCallRatio
		c.validateSplit(v, where+"Over", r.Over)
		c.validateReach(v, where, r)
	}
	v.unless(slow || !c.InFlightSlow, "InFlightSlow true needs a rule of kind %v", SlowCallRatio)
}

// validateReach complains about a rule that could never trip.
func (c Config) validateReach(v *complaints, where string, r Rule) {
	if r.Kind.isRatio() {
		v.unless(r.Ratio != 1 || !(c.Confidence > 0), "%sRatio 1 can never be reached with Confidence %v", where, c.Confidence)
	}
	if c.CountWindow <= 0 || r.Over > 0 {
		return
	}
	switch gate := c.gate(r); {
	case r.Kind.isRatio() && gate > c.CountWindow && r.MinRequests > 0:
		v.add("%sMinRequests %d is more than CountWindow %d can hold", where, gate, c.CountWindow)
	case r.Kind.isRatio() && gate > c.CountWindow:
		v.add("MinRequests %d%s is more than CountWindow %d can hold", gate, c.defaulted(gate), c.CountWindow)
	case r.Kind == ErrorCount && r.Count > c.CountWindow:
		v.add("%sCount %d is more than CountWindow %d can hold", where, r.Count, c.CountWindow)
	}
}

// defaulted marks a MinRequests that its owner perhaps never set.
func (c Config) defaulted(minRequests int) string {
	if minRequests == DefaultConfig().MinRequests {
		return " (the default)"
	}
	return ""
}

// gate is how many calls must be in the window before r, a ratio rule, may trip.
func (c Config) gate(r Rule) int {
	if r.MinRequests > 0 {
		return r.MinRequests
	}
	return c.MinRequests
}

func (c Config) validateOpen(v *complaints) {
	v.unless(c.OpenFor > 0, "OpenFor %v is not positive", c.OpenFor)
	v.unless(c.BackoffFactor == 1 || c.BackoffFactor >= 1.01 && c.BackoffFactor <= 1000, "BackoffFactor %v is not 1, and not in [1.01, 1000]", c.BackoffFactor)
	v.unless(c.Jitter >= 0 && c.Jitter < 1, "Jitter %v is not in [0, 1)", c.Jitter)
	if c.BackoffMax == Auto {
		return
	}
	if c.BackoffMax <= 0 {
		v.add("BackoffMax %v is not positive, and not Auto", c.BackoffMax)
		return
	}
	open := ""
	if c.OpenFor == DefaultConfig().OpenFor {
		open = " (the default)"
	}
	v.unless(c.BackoffMax >= c.OpenFor, "BackoffMax %v is less than OpenFor %v%s", c.BackoffMax, c.OpenFor, open)
	for i, r := range c.Rules {
		v.unless(c.BackoffMax >= r.OpenFor, "BackoffMax %v is less than Rules[%d].OpenFor %v", c.BackoffMax, i, r.OpenFor)
	}
}

func (c Config) validateProbes(v *complaints) {
	v.unless(len(c.Probes) >= 1 && len(c.Probes) <= maxStages, "Probes has %d stages, not 1 to %d", len(c.Probes), maxStages)
	for i, n := range c.Probes {
		v.unless(n >= 1 && n <= maxStage, "Probes[%d] %d is not in [1, %d]", i, n, maxStage)
	}
	v.unless(c.ProbeTolerance >= 0 && c.ProbeTolerance < 1, "ProbeTolerance %v is not in [0, 1)", c.ProbeTolerance)
	v.unless(c.ProbeLease > 0 || c.ProbeLease == Auto, "ProbeLease %v is not positive, and not Auto", c.ProbeLease)
	v.unless(c.MinBudget >= 0 || c.MinBudget == Auto, "MinBudget %v is negative, and not Auto", c.MinBudget)
	for i, s := range c.Recovery {
		v.unless(s.Share >= minRatio && s.Share <= 1, "Recovery[%d].Share %v is not in [0.000001, 1]", i, s.Share)
		v.unless(s.For > 0, "Recovery[%d].For %v is not positive", i, s.For)
	}
}

// validate complains about what is wrong with the rule by itself.
func (r Rule) validate(v *complaints, where string) {
	if r.Kind < SlowCallRatio || r.Kind > ConsecutiveFailures {
		v.add("%sKind %d is not one of %s", where, uint8(r.Kind), strings.Join(kindNames[1:], ", "))
		return
	}
	if r.Kind.isRatio() {
		v.unless(r.Ratio >= minRatio && r.Ratio <= 1, "%sRatio %v is not in [0.000001, 1]", where, r.Ratio)
		v.unless(r.Count == 0, "%sCount %d has no meaning for %v", where, r.Count, r.Kind)
		v.unless(r.MinRequests >= 0, "%sMinRequests %d is negative", where, r.MinRequests)
	} else {
		v.unless(r.Count >= 1 && r.Count <= math.MaxInt32, "%sCount %d is not in [1, %d]", where, r.Count, math.MaxInt32)
		v.unless(r.Ratio == 0, "%sRatio %v has no meaning for %v", where, r.Ratio, r.Kind)
		v.unless(r.MinRequests == 0, "%sMinRequests %d has no meaning for %v: it trips at the n-th failure whatever the total", where, r.MinRequests, r.Kind)
	}
	if r.Kind == SlowCallRatio {
		v.unless(r.SlowerThan > 0, "%sSlowerThan %v is not positive", where, r.SlowerThan)
	} else {
		v.unless(r.SlowerThan == 0, "%sSlowerThan %v has no meaning for %v", where, r.SlowerThan, r.Kind)
	}
	v.unless(r.Over >= 0, "%sOver %v is negative", where, r.Over)
	v.unless(r.Over == 0 || r.Kind != ConsecutiveFailures, "%sOver %v has no meaning for %v: it looks at no window", where, r.Over, r.Kind)
	v.unless(r.OpenFor >= 0, "%sOpenFor %v is negative", where, r.OpenFor)
}
