package ratelimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicego/sluice/internal/jsontime"
)

// HotParametersConfig is what a HotParameters decides on, as plain data: start from
// DefaultHotParametersConfig and set Rate, because it is taken literally and the zero one
// does not validate.
//
// In JSON the keys are in snake case, rates are text such as "100/s", and decoding goes
// over what was there: absent keys keep their value, Exceptions is replaced whole, an
// unknown key is an error.
type HotParametersConfig struct {
	// Rate, Burst and MaxDebt are the limit of each value that is no exception, as in
	// KeyedConfig.
	Rate    Rate
	Burst   int64
	MaxDebt int64
	// Exceptions have limits of their own. All together may have 100 different ones.
	Exceptions []HotException
	// MaxKeys, WhenFull and TopRejected are as in KeyedConfig.
	MaxKeys     int
	WhenFull    WhenFull
	TopRejected int
}

// HotException is a value with a limit of its own. Burst and MaxDebt may be Auto, as in
// KeyedConfig.
type HotException struct {
	Value   string
	Rate    Rate
	Burst   int64
	MaxDebt int64
}

// DefaultHotParametersConfig returns a HotParametersConfig without a Rate: as
// DefaultKeyedConfig, and 256 of the values that are refused most are kept track of.
func DefaultHotParametersConfig() HotParametersConfig {
	k := DefaultKeyedConfig()
	return HotParametersConfig{Burst: k.Burst, MaxDebt: k.MaxDebt, MaxKeys: k.MaxKeys, WhenFull: k.WhenFull, TopRejected: 256}
}

// Validate returns all that is wrong with c, each complaint with the field, its value
// and what is wanted, joined; nil if nothing is.
func (c HotParametersConfig) Validate() error {
	v := complaints{c.keyed(nil).Validate()}
	values := map[string]bool{}
	for i, e := range c.Exceptions {
		where := fmt.Sprintf("Exceptions[%d].", i)
		v.unless(!values[e.Value], "%sValue %q stands there twice", where, e.Value)
		values[e.Value] = true
		v.limit(where, e.Rate, e.Burst, e.MaxDebt)
	}
	limits := len(classesOf(c.Exceptions, nil))
	v.unless(limits <= maxClasses, "Exceptions has %d different limits, more than %d", limits, maxClasses)
	return errors.Join(v...)
}

// Clone returns a copy that shares nothing with c.
func (c HotParametersConfig) Clone() HotParametersConfig {
	c.Exceptions = slices.Clone(c.Exceptions)
	return c
}

// Equal reports whether c and d decide the same.
func (c HotParametersConfig) Equal(d HotParametersConfig) bool {
	return c.keyed(nil).Equal(d.keyed(nil)) && slices.Equal(c.Exceptions, d.Exceptions)
}

// keyed is c for a Keyed that has those classes.
func (c HotParametersConfig) keyed(classes []KeyClass) KeyedConfig {
	return KeyedConfig{c.Rate, c.Burst, c.MaxDebt, classes, c.MaxKeys, c.WhenFull, c.TopRejected}
}

// hotParametersConfigJSON is HotParametersConfig as JSON has it.
type hotParametersConfigJSON struct {
	Rate        Rate           `json:"rate"`
	Burst       autoInt        `json:"burst"`
	MaxDebt     autoInt        `json:"max_debt"`
	Exceptions  []HotException `json:"exceptions"`
	MaxKeys     int            `json:"max_keys"`
	WhenFull    WhenFull       `json:"when_full"`
	TopRejected int            `json:"top_rejected"`
}

// MarshalJSON writes every key, rates as text.
func (c HotParametersConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, Exceptions is replaced
// whole, an unknown key is an error. It does not validate more than each value by itself;
// c is as before when it returns an error.
func (c *HotParametersConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	j.Exceptions = nil
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	if j.Exceptions == nil {
		j.Exceptions = c.Exceptions
	}
	*c = HotParametersConfig{j.Rate, int64(j.Burst), int64(j.MaxDebt), j.Exceptions, j.MaxKeys, j.WhenFull, j.TopRejected}
	return nil
}

func (c HotParametersConfig) toJSON() hotParametersConfigJSON {
	return hotParametersConfigJSON{c.Rate, autoInt(c.Burst), autoInt(c.MaxDebt), c.Exceptions, c.MaxKeys, c.WhenFull, c.TopRejected}
}

// hotExceptionJSON is HotException as JSON has it.
type hotExceptionJSON struct {
	Value   string  `json:"value"`
	Rate    Rate    `json:"rate"`
	Burst   autoInt `json:"burst"`
	MaxDebt autoInt `json:"max_debt"`
}

// MarshalJSON writes every key, the rate as text.
func (e HotException) MarshalJSON() ([]byte, error) {
	return json.Marshal(hotExceptionJSON{e.Value, e.Rate, autoInt(e.Burst), autoInt(e.MaxDebt)})
}

// UnmarshalJSON decodes an exception; an absent burst or max_debt is "auto", an unknown
// key is an error.
func (e *HotException) UnmarshalJSON(data []byte) error {
	j := hotExceptionJSON{Burst: Auto, MaxDebt: Auto}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*e = HotException{j.Value, j.Rate, int64(j.Burst), int64(j.MaxDebt)}
	return nil
}
