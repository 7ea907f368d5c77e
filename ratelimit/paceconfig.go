package ratelimit

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// PacerConfig is what a Pacer decides on, as plain data: start from DefaultPacerConfig
// and set Rate, because a PacerConfig is taken literally and the zero one does not
// validate.
//
// In JSON the keys are in snake case, rates and durations are text such as "50/s" and
// "300ms", and decoding goes over what was there: absent keys keep their value, an
// unknown key is an error.
type PacerConfig struct {
	// Rate is how many calls go in what time, evenly.
	Rate Rate
	// Slack is how many calls may go at once after a pause, beside the one whose turn it
	// is, for slots that nobody used. They must be what comes within two years.
	Slack int64
	// MaxWait is how long Wait and Do may wait, at most two years. With 0 they do not.
	MaxWait time.Duration
}

// DefaultPacerConfig returns a PacerConfig without a Rate: no slack, and callers wait
// for up to 500 ms.
func DefaultPacerConfig() PacerConfig { return PacerConfig{MaxWait: 500 * time.Millisecond} }

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c PacerConfig) Validate() error {
	var v complaints
	if err := c.Rate.Validate(); err != nil {
		v = append(v, err)
	} else if most := c.Rate.within(maxFill); c.Slack < 0 || c.Slack > most {
		v.add("Slack %d is not in [0, %d], what comes at %v within %v", c.Slack, most, c.Rate, maxFill)
	}
	v.unless(c.MaxWait >= 0 && c.MaxWait <= maxFill, "MaxWait %v is not in [0, %v]", c.MaxWait, maxFill)
	return errors.Join(v...)
}

// pacerJSON is a PacerConfig as JSON has it.
type pacerJSON struct {
	Rate    Rate              `json:"rate"`
	Slack   int64             `json:"slack"`
	MaxWait jsontime.Duration `json:"max_wait"`
}

// MarshalJSON writes every key, rates and durations as text.
func (c PacerConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is
// an error. It does not validate; c is as before when it returns an error.
func (c *PacerConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = PacerConfig{j.Rate, j.Slack, time.Duration(j.MaxWait)}
	return nil
}

func (c PacerConfig) toJSON() pacerJSON {
	return pacerJSON{c.Rate, c.Slack, jsontime.Duration(c.MaxWait)}
}
