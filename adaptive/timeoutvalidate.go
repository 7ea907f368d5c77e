package adaptive

import (
	"errors"
	"fmt"
	"time"
)

const day = 24 * time.Hour

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c TimeoutConfig) Validate() error {
	var v complaints
	v.unless(c.Base > 0, "Base %v is not positive", c.Base)
	v.unless(c.Max > 0 && c.Max <= day, "Max %v is not in (0, %v]", c.Max, day)
	v.unless(c.Max >= c.Base, "Max %v is less than Base %v", c.Max, c.Base)
	v.unless(c.Initial == Auto || c.Initial >= c.Base && c.Initial <= c.Max, "Initial %v is not in [Base %v, Max %v], and not Auto", c.Initial, c.Base, c.Max)
	c.Rule.validate(&v, c.bounds())
	v.unless(c.Margin >= 1 && c.Margin <= 10, "Margin %v is not in [1, 10]", c.Margin) // also catches NaN
	v.unless(c.OutageCap >= 1 && c.OutageCap <= 1000, "OutageCap %v is not in [1, 1000]", c.OutageCap)
	v.unless(c.ProbeShare >= 0 && c.ProbeShare <= 1, "ProbeShare %v is not in [0, 1]", c.ProbeShare)
	v.unless(c.Window >= time.Second && c.Window <= time.Hour, "Window %v is not in [1s, %v]", c.Window, time.Hour)
	v.unless(c.History >= c.Window && c.History <= day, "History %v is not in [Window %v, %v]", c.History, c.Window, day)
	return errors.Join(v...)
}

// complaints collects errors, each with the package's prefix.
type complaints []error

func (v *complaints) add(format string, args ...any) {
	*v = append(*v, fmt.Errorf("adaptive: "+format, args...))
}

// unless adds the complaint if ok is false.
func (v *complaints) unless(ok bool, format string, args ...any) {
	if !ok {
		v.add(format, args...)
	}
}
