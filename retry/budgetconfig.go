package retry

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// BudgetConfig is what a Budget decides on, as plain data: start from
// DefaultBudgetConfig, because it is taken literally and the zero BudgetConfig does
// not validate.
//
// In JSON the keys are in snake case, durations are text such as "10s", and decoding
// goes over what was there: absent keys keep their value, an unknown key is an error.
type BudgetConfig struct {
	// Ratio is how many repetitions each call of the last Window allows: 0 or in
	// [0.000001, 1].
	Ratio float64
	// MinPerSecond is how many repetitions a second are allowed whatever the calls
	// are, as many as a Window has of them at once: for services with little traffic.
	// In [0, 1000000]. If it and Ratio are 0, nothing is repeated.
	MinPerSecond float64
	// Window is for how long a call allows repetitions, and a repetition counts: from
	// 100ms to 1h, and a multiple of 50ns.
	Window time.Duration
}

const (
	million         = 1_000_000
	minRatio        = 0.000001
	maxMinPerSecond = 1_000_000
	minWindow       = 100 * time.Millisecond
	maxWindow       = time.Hour
)

// DefaultBudgetConfig returns: a tenth of the calls and one a second, over 10 s.
func DefaultBudgetConfig() BudgetConfig {
	return BudgetConfig{Ratio: 0.1, MinPerSecond: 1, Window: 10 * time.Second}
}

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c BudgetConfig) Validate() error {
	var v complaints
	v.unless(c.Ratio == 0 || c.Ratio >= minRatio && c.Ratio <= 1, "Ratio %v is not 0, and not in [0.000001, 1]", c.Ratio) // also catches NaN
	v.unless(c.MinPerSecond >= 0 && c.MinPerSecond <= maxMinPerSecond, "MinPerSecond %v is not in [0, %d]", c.MinPerSecond, maxMinPerSecond)
	if v.unless(c.Window >= minWindow && c.Window <= maxWindow, "Window %v is not in [%v, %v]", c.Window, minWindow, maxWindow) {
		v.unless(c.Window%slots == 0, "Window %v is not a multiple of %v", c.Window, time.Duration(slots))
	}
	return errors.Join(v...)
}

// allowance is how many repetitions so many calls allow in a Window. It is worked
// out in whole numbers, so that it is exact.
func (c BudgetConfig) allowance(deposited uint64) int64 {
	const most = 1 << 42 // beyond what any machine does in an hour; its product fits
	floor := int64(math.Floor(c.MinPerSecond*c.Window.Seconds()*million + 1e-3))
	return (floor + c.ppm()*int64(min(deposited, most))) / million
}

// ppm is the Ratio in millionths.
func (c BudgetConfig) ppm() int64 { return int64(math.Floor(c.Ratio*million + 1e-3)) }

// width is how long a slot of the ledger lasts.
func (c BudgetConfig) width() int64 { return int64(c.Window) / slots }

// budgetJSON is BudgetConfig as JSON has it.
type budgetJSON struct {
	Ratio        float64           `json:"ratio"`
	MinPerSecond float64           `json:"min_per_second"`
	Window       jsontime.Duration `json:"window"`
}

// MarshalJSON writes every key, durations as text.
func (c BudgetConfig) MarshalJSON() ([]byte, error) {
	return json.Marshal(budgetJSON{c.Ratio, c.MinPerSecond, jsontime.Duration(c.Window)})
}

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is an
// error. It does not validate; c is as before when it returns an error.
func (c *BudgetConfig) UnmarshalJSON(data []byte) error {
	j := budgetJSON{c.Ratio, c.MinPerSecond, jsontime.Duration(c.Window)}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = BudgetConfig{j.Ratio, j.MinPerSecond, time.Duration(j.Window)}
	return nil
}

// BudgetOption sets one thing of a new budget. The last one wins; they start from
// DefaultBudgetConfig.
type BudgetOption func(*budgetSettings)

// budgetSettings is what the options fill in.
type budgetSettings struct {
	BudgetConfig
	errs []error
}

// WithRatio sets how many repetitions each call allows. With calls arriving at a rate
// λ at a dependency that can serve C, a backlog of calls that all fail goes away only
// if λ · (1 + ratio) is less than C.
//
// Default: 0.1.
func WithRatio(ratio float64) BudgetOption { return func(s *budgetSettings) { s.Ratio = ratio } }

// WithMinPerSecond sets how many repetitions a second are allowed however few calls
// there are. Those of a whole Window may come at once: with the defaults, ten in the
// first moment.
//
// Default: 1.
func WithMinPerSecond(n float64) BudgetOption {
	return func(s *budgetSettings) { s.MinPerSecond = n }
}

// WithWindow sets for how long calls and repetitions count.
//
// Default: 10 s.
func WithWindow(d time.Duration) BudgetOption { return func(s *budgetSettings) { s.Window = d } }

// WithBudgetConfig replaces all data set so far by c, so it comes first.
//
// Default: DefaultBudgetConfig.
func WithBudgetConfig(c BudgetConfig) BudgetOption {
	return func(s *budgetSettings) { s.BudgetConfig = c }
}
