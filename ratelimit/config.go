package ratelimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// Auto stands for a value that New and Update work out from others. It is "auto"
// in JSON.
const Auto = jsontime.Auto

// Config is what a Limiter decides on, as plain data: start from DefaultConfig and
// set Rate, because a Config is taken literally and the zero Config does not
// validate.
//
// In JSON the keys are in snake case, rates and durations are text such as "100/s"
// and "250ms", and decoding goes over what was there: absent keys keep their value,
// an unknown key is an error.
type Config struct {
	// Rate is how fast tokens come.
	Rate Rate
	// Burst is how many tokens there can be, and so the most that can be taken at
	// once. It must fill within 2 years. Auto is as many as come in Rate.Per.
	Burst int64
	// Initial is how many tokens a new limiter has, at most Burst. Auto is Burst.
	Initial int64
	// MaxWait is how long Wait and Do may wait for tokens. Auto lets Wait wait as
	// long as its ctx does, and Do not at all.
	MaxWait time.Duration
	// MaxWaiters is how many callers may wait at a time; one more is refused.
	MaxWaiters int
	// MaxDebt is how many tokens Debit may take that are not there. Auto is Burst.
	MaxDebt int64
}

// DefaultConfig returns a Config without a Rate: as many tokens as come in its Per
// can be taken at once, and they are there at the beginning; at most 10 000 callers
// wait.
func DefaultConfig() Config {
	return Config{Burst: Auto, Initial: Auto, MaxWait: Auto, MaxWaiters: 10_000, MaxDebt: Auto}
}

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c Config) Validate() error {
	var v complaints
	if err := c.Rate.Validate(); err != nil {
		v = append(v, err)
	} else {
		v.fill("Burst", c.Burst, 1, c.Rate)
		v.fill("Initial", c.Initial, 0, c.Rate)
		v.fill("MaxDebt", c.MaxDebt, 0, c.Rate)
	}
	if burst := c.burst(); burst >= 1 && c.Initial > burst && !c.Rate.IsUnlimited() && !c.Rate.IsBlocked() {
		v.add("Initial %d is more than Burst %d", c.Initial, burst)
	}
	v.unless(c.MaxWait == Auto || c.MaxWait >= 0 && c.MaxWait <= maxFill, "MaxWait %v is not in [0, %v], and not Auto", c.MaxWait, maxFill)
	v.unless(c.MaxWaiters >= 0, "MaxWaiters %d is negative", c.MaxWaiters)
	return errors.Join(v...)
}

// fill complains of so many tokens, if they are less than least, or too many to come
// within maxFill. r is valid.
func (v *complaints) fill(field string, tokens, least int64, r Rate) {
	if tokens == Auto {
		return
	}
	v.unless(tokens >= least, "%s %d is less than %d, and not Auto", field, tokens, least)
	if most := r.within(maxFill); tokens > most {
		v.add("%s %d does not come at %v within %v; the most is %d", field, tokens, r, maxFill, most)
	}
}

// burst is Burst worked out.
func (c Config) burst() int64 { return orElse(c.Burst, c.Rate.Tokens) }

// initial is Initial worked out.
func (c Config) initial() int64 { return orElse(c.Initial, c.burst()) }

// debt is MaxDebt worked out.
func (c Config) debt() int64 { return orElse(c.MaxDebt, c.burst()) }

// longest is how long Wait may wait, whatever its ctx says.
func (c Config) longest() time.Duration {
	return time.Duration(orElse(int64(c.MaxWait), int64(maxFill)))
}

// orElse is value, or auto if value is Auto.
func orElse(value, auto int64) int64 {
	if value == Auto {
		return auto
	}
	return value
}

// configJSON is Config as JSON has it.
type configJSON struct {
	Rate       Rate                  `json:"rate"`
	Burst      autoInt               `json:"burst"`
	Initial    autoInt               `json:"initial"`
	MaxWait    jsontime.AutoDuration `json:"max_wait"`
	MaxWaiters int                   `json:"max_waiters"`
	MaxDebt    autoInt               `json:"max_debt"`
}

// MarshalJSON writes every key, rates and durations as text.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is
// an error. It does not validate more than each value by itself; c is as before
// when it returns an error.
func (c *Config) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = Config{j.Rate, int64(j.Burst), int64(j.Initial), time.Duration(j.MaxWait), j.MaxWaiters, int64(j.MaxDebt)}
	return nil
}

func (c Config) toJSON() configJSON {
	return configJSON{c.Rate, autoInt(c.Burst), autoInt(c.Initial), jsontime.AutoDuration(c.MaxWait), c.MaxWaiters, autoInt(c.MaxDebt)}
}

// An autoInt is a number that may also be Auto, which is "auto" in JSON.
type autoInt int64

// MarshalJSON writes any value: to complain about it is the owner's Validate.
func (n autoInt) MarshalJSON() ([]byte, error) {
	if n == Auto {
		return []byte(`"auto"`), nil
	}
	return json.Marshal(int64(n))
}

// UnmarshalJSON leaves n unchanged when it returns an error.
func (n *autoInt) UnmarshalJSON(data []byte) error {
	var number int64
	switch {
	case string(data) == `"auto"`:
		number = Auto
	case string(data) == "null":
		return nil
	case json.Unmarshal(data, &number) != nil:
		return fmt.Errorf(`%.64s is not a whole number of tokens, or "auto"`, data)
	case number < 0:
		return fmt.Errorf(`%d is negative, want a number of tokens, or "auto"`, number)
	}
	*n = autoInt(number)
	return nil
}
