package bulkhead

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
	"github.com/sluicego/sluice/internal/waitq"
)

// Config is what a bulkhead decides on, as plain data: start from DefaultConfig,
// because a Config is taken literally and the zero Config does not validate.
//
// In JSON the keys are in snake case, durations are text such as "250ms", and
// decoding goes over what was there: absent keys keep their value, an unknown key
// is an error.
type Config struct {
	// Limit is how many places there are, at most 2³⁰. With 0 the bulkhead is closed:
	// it refuses all, also those that wait.
	Limit int
	// MaxQueue is how many calls may wait for a place, at most a million. 0 lets none
	// wait.
	MaxQueue int
	// MaxWait is how long each may wait. Its ctx may end the wait sooner. It is
	// positive if MaxQueue is, else 0.
	MaxWait time.Duration
	// Order says who goes first among those that wait.
	Order Order
	// Aging, if not 0, lets more important calls go first (sluice.WithPriority): one
	// that comes up to Aging later goes before one that is one class less important,
	// and so does one that comes up to twice as late before one of two classes less.
	Aging time.Duration
	// CoDelTarget, if not 0, is how long a call may wait that comes in overload: while
	// the queue has not been empty for CoDelInterval. It is at most MaxWait.
	CoDelTarget time.Duration
	// CoDelInterval is after how long a queue that is never empty is in overload, for
	// CoDelTarget and AdaptiveLIFO.
	CoDelInterval time.Duration
}

// unset is the Config.Limit of DefaultConfig.
const unset = -1

// DefaultConfig returns: nobody waits; those that would wait are served in the order
// in which they come; overload begins after 100 ms. Its Limit is -1, which does not
// validate, because there is no default for it.
func DefaultConfig() Config {
	return Config{Limit: unset, Order: FIFO, CoDelInterval: 100 * time.Millisecond}
}

const (
	maxLimit = waitq.MaxLimit
	maxQueue = 1_000_000
)

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c Config) Validate() error {
	var v complaints
	v.unless(c.Limit >= 0 && c.Limit <= maxLimit, "Limit %d is not in [0, %d]", c.Limit, maxLimit)
	v.unless(c.MaxQueue >= 0 && c.MaxQueue <= maxQueue, "MaxQueue %d is not in [0, %d]", c.MaxQueue, maxQueue)
	v.unless(c.MaxWait >= 0, "MaxWait %v is negative", c.MaxWait)
	v.unless(c.Order.known(), "Order %d is not one of %v, %v", uint8(c.Order), FIFO, AdaptiveLIFO)
	v.unless(c.Aging >= 0, "Aging %v is negative", c.Aging)
	v.unless(c.CoDelTarget >= 0, "CoDelTarget %v is negative", c.CoDelTarget)
	v.unless(c.CoDelInterval > 0, "CoDelInterval %v is not positive", c.CoDelInterval)
	switch {
	case c.MaxQueue > 0:
		v.unless(c.MaxWait != 0, "MaxQueue %d lets calls wait, and MaxWait 0s does not", c.MaxQueue)
		v.unless(c.CoDelTarget <= max(c.MaxWait, 0), "CoDelTarget %v is more than MaxWait %v", c.CoDelTarget, c.MaxWait)
	case c.MaxQueue == 0:
		const nobody = ", and with MaxQueue 0 none may"
		v.unless(c.MaxWait <= 0, "MaxWait %v lets calls wait"+nobody, c.MaxWait)
		v.unless(c.Order != AdaptiveLIFO, "Order %v is for calls that wait"+nobody, c.Order)
		v.unless(c.Aging <= 0, "Aging %v is for calls that wait"+nobody, c.Aging)
		v.unless(c.CoDelTarget <= 0, "CoDelTarget %v is for calls that wait"+nobody, c.CoDelTarget)
	}
	return errors.Join(v...)
}

// complaints collects errors, each with the package's prefix.
type complaints []error

// unless adds the complaint if ok is false.
func (v *complaints) unless(ok bool, format string, args ...any) {
	if !ok {
		*v = append(*v, fmt.Errorf("bulkhead: "+format, args...))
	}
}

// policy is c for the queue.
func (c Config) policy() waitq.Policy {
	return waitq.Policy{
		MaxQueue: c.MaxQueue, MaxWait: c.MaxWait, Newest: c.Order == AdaptiveLIFO, Aging: c.Aging,
		Target: c.CoDelTarget, Interval: c.CoDelInterval,
	}
}

// configJSON is Config as JSON has it.
type configJSON struct {
	Limit         int               `json:"limit"`
	MaxQueue      int               `json:"max_queue"`
	MaxWait       jsontime.Duration `json:"max_wait"`
	Order         Order             `json:"order"`
	Aging         jsontime.Duration `json:"aging"`
	CoDelTarget   jsontime.Duration `json:"codel_target"`
	CoDelInterval jsontime.Duration `json:"codel_interval"`
}

// MarshalJSON writes every key, durations as text.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is
// an error. It does not validate; c is as before when it returns an error.
func (c *Config) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = Config{
		j.Limit, j.MaxQueue, time.Duration(j.MaxWait), j.Order, time.Duration(j.Aging),
		time.Duration(j.CoDelTarget), time.Duration(j.CoDelInterval),
	}
	return nil
}

func (c Config) toJSON() configJSON {
	return configJSON{
		c.Limit, c.MaxQueue, jsontime.Duration(c.MaxWait), c.Order, jsontime.Duration(c.Aging),
		jsontime.Duration(c.CoDelTarget), jsontime.Duration(c.CoDelInterval),
	}
}
