package ratelimit

import (
	"encoding/json"
	"errors"
	"math/big"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/jsontime"
)

// classes is how many priorities there are: P0, P1 and P2.
const classes = 3

// PrioritiesConfig is what a Priorities decides on, as plain data: start from
// DefaultPrioritiesConfig and set Rate. Like Config it is taken literally, and in
// JSON decoding goes over what was there.
type PrioritiesConfig struct {
	// Rate is how fast tokens come, for all classes together.
	Rate Rate
	// Burst is how many tokens there can be, for all together. Auto is as many as come
	// in Rate.Per. Each assured class and the shared bucket need one at least.
	Burst int64
	// Classes are P0, P1 and P2, in this order. Together they are assured at most all.
	Classes [classes]PriorityClass
	// Keep in [0, 1] is the share of its own tokens that a class does not lend. It
	// always keeps one at least.
	Keep float64
}

// PriorityClass is what the calls of one priority may have.
type PriorityClass struct {
	// Assured in [0, 1] is the share of rate and burst that is theirs, whatever others
	// do. 0 is nothing.
	Assured float64
	// Floor in [0, 1) is the share of the shared bucket that they leave to more
	// important classes, so it is no less than theirs.
	Floor float64
}

// DefaultPrioritiesConfig returns a PrioritiesConfig without a Rate: P0, P1 and P2
// are assured 20, 10 and 5 %, leave 0, 10 and 30 % of what is shared, and lend what
// is above 90 % of their own.
func DefaultPrioritiesConfig() PrioritiesConfig {
	return PrioritiesConfig{
		Burst:   Auto,
		Classes: [classes]PriorityClass{{Assured: 0.2}, {Assured: 0.1, Floor: 0.1}, {Assured: 0.05, Floor: 0.3}},
		Keep:    0.9,
	}
}

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c PrioritiesConfig) Validate() error {
	var v complaints
	rate := c.Rate.Validate()
	if rate != nil {
		v = append(v, rate)
	}
	sum, above := int64(0), 0.0
	for i, class := range c.Classes {
		name := sluice.Priority(i - 1)
		v.unless(class.Assured >= 0 && class.Assured <= 1, "Assured %v of %v is not in [0, 1]", class.Assured, name)
		v.unless(class.Floor >= 0 && class.Floor < 1, "Floor %v of %v is not in [0, 1)", class.Floor, name)
		v.unless(!(class.Floor < above), "Floor %v of %v is less than that of a more important class, %v", class.Floor, name, above)
		above = max(above, class.Floor)
		sum += millionths(class.Assured)
	}
	v.unless(c.Keep >= 0 && c.Keep <= 1, "Keep %v is not in [0, 1]", c.Keep)
	v.unless(sum <= million, "the Assured of all classes add up to more than 1")
	if len(v) > 0 || c.Rate.IsUnlimited() || c.Rate.IsBlocked() {
		return errors.Join(v...)
	}
	v.fill("Burst", c.Burst, 1, c.Rate)
	if len(v) == 0 {
		c.validateShares(&v)
	}
	return errors.Join(v...)
}

// validateShares complains of a bucket that would have no token, or not in time.
func (c PrioritiesConfig) validateShares(v *complaints) {
	slowest := big.NewRat(1, int64(maxFill)) // a token
	for i, s := range c.split() {
		name := "the shared bucket"
		if i < classes {
			name = sluice.Priority(i - 1).String()
		}
		if s.rate.Sign() == 0 {
			continue
		}
		if s.burst < 1 {
			v.add("Burst %d has no token left for %s", c.burst(), name)
		} else if fill := new(big.Rat).Quo(s.rate, big.NewRat(s.burst, 1)); fill.Cmp(slowest) < 0 {
			v.add("%d tokens for %s do not come at its share of %v within %v", s.burst, name, c.Rate, maxFill)
		}
	}
}

// portion is what a bucket has of the whole.
type portion struct {
	rate  *big.Rat // tokens a nanosecond; 0 if there is no such bucket
	burst int64
}

// split divides rate and burst among the classes and, last, the shared bucket. The
// Rate is valid and a real one.
func (c PrioritiesConfig) split() (all [classes + 1]portion) {
	left, rest := int64(million), c.burst()
	for i, class := range c.Classes {
		ppm := millionths(class.Assured)
		all[i].rate = c.portionOf(ppm)
		if ppm > 0 {
			all[i].burst = max(1, rescale(c.burst(), million, ppm))
		}
		left -= ppm
		rest -= all[i].burst
	}
	all[classes] = portion{c.portionOf(left), rest}
	return all
}

func (c PrioritiesConfig) portionOf(ppm int64) *big.Rat {
	rate := c.Rate.perNano()
	return rate.Mul(rate, big.NewRat(ppm, million))
}

// burst is Burst worked out.
func (c PrioritiesConfig) burst() int64 { return orElse(c.Burst, c.Rate.Tokens) }

const million = 1_000_000

// millionths turns a share into whole millionths. 0 if it is none.
func millionths(share float64) int64 {
	if !(share >= 0 && share <= 1) {
		return 0
	}
	return int64(share*million + 0.001)
}

// prioritiesJSON is PrioritiesConfig as JSON has it.
type prioritiesJSON struct {
	Rate  Rate      `json:"rate"`
	Burst autoInt   `json:"burst"`
	P0    classJSON `json:"p0"`
	P1    classJSON `json:"p1"`
	P2    classJSON `json:"p2"`
	Keep  float64   `json:"keep"`
}

type classJSON struct {
	Assured float64 `json:"assured"`
	Floor   float64 `json:"floor"`
}

// MarshalJSON writes every key, rates as text.
func (c PrioritiesConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c, as that of Config does.
func (c *PrioritiesConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = PrioritiesConfig{j.Rate, int64(j.Burst), [classes]PriorityClass{PriorityClass(j.P0), PriorityClass(j.P1), PriorityClass(j.P2)}, j.Keep}
	return nil
}

func (c PrioritiesConfig) toJSON() prioritiesJSON {
	return prioritiesJSON{c.Rate, autoInt(c.Burst), classJSON(c.Classes[0]), classJSON(c.Classes[1]), classJSON(c.Classes[2]), c.Keep}
}
