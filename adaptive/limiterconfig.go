package adaptive

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
	"github.com/sluicego/sluice/internal/waitq"
)

// LimiterConfig is what a Limiter decides on, as plain data: start from
// DefaultLimiterConfig, because it is taken literally and the zero LimiterConfig does
// not validate. Two that are equal decide the same.
//
// In JSON the keys are in snake case, durations are text such as "250ms", and decoding
// goes over what was there: absent keys keep their value, a rule is replaced whole, an
// unknown key is an error.
type LimiterConfig struct {
	// Rule is by what the limit follows the calls.
	Rule LimitRule
	// Min and Max are what the limit stays within. Min is at least 1, Max at most a
	// million.
	Min, Max int
	// Initial is the limit of a new Limiter, within Min and Max; FixedLimit has its own.
	Initial int
	// Window is how often the limit is worked out: it is longer where calls are slow (ten
	// of them, one after another) or few (ten in all), and can be ended after a tenth of
	// it by 50 calls that say that the limit is far too high, or by four million of any
	// kind. In [10ms, 1m].
	Window time.Duration
	// MaxQueue is how many calls may wait for a place, at most a million. 0 lets none
	// wait, and makes what follows meaningless.
	MaxQueue int
	// MaxWait is how long each may wait. Its ctx may end the wait sooner. It is positive
	// if MaxQueue is, else 0.
	MaxWait time.Duration
	// CoDelTarget, if not 0 and shorter than MaxWait, is how long a call may wait that
	// comes in overload: while the queue has not been empty for CoDelInterval.
	CoDelTarget   time.Duration
	CoDelInterval time.Duration
	// NewestFirst lets the newest of those that wait go first in overload: the oldest have
	// waited so long that their callers are likely to be gone.
	NewestFirst bool
	// Aging, if not 0, lets more important calls go first (sluice.WithPriority): one that
	// comes up to Aging later goes before one that is one class less important.
	Aging time.Duration
	// Shares are what part of those that get a place after waiting are P0, P1 and P2 at
	// least, while any of them wait; the same part of the queue is kept for them. Each is 0
	// or in [0.000001, 1]; together they are at most 1.
	Shares [classes]float64
}

// DefaultLimiterConfig returns: Vegas, within 1 and 1000, from 20; a window of a second.
// Nobody waits; with a MaxQueue, the oldest and more important go first, and no share is
// guaranteed.
func DefaultLimiterConfig() LimiterConfig {
	return LimiterConfig{
		Rule: Vegas(), Min: 1, Max: 1000, Initial: 20, Window: time.Second,
		CoDelInterval: 100 * time.Millisecond, Aging: 50 * time.Millisecond,
	}
}

// mostLimit is the largest limit, and the longest queue.
const mostLimit = 1_000_000

// Validate returns all that is wrong with c, each complaint with the field, its value
// and what is wanted, joined; nil if nothing is.
func (c LimiterConfig) Validate() error {
	var v complaints
	v.unless(c.Min >= 1 && c.Min <= mostLimit, "Min %d is not in [1, %d]", c.Min, mostLimit)
	v.unless(c.Max >= c.Min && c.Max <= mostLimit, "Max %d is not in [Min %d, %d]", c.Max, c.Min, mostLimit)
	v.unless(c.Rule.Kind == LimitFixed || c.Initial >= c.Min && c.Initial <= c.Max, "Initial %d is not in [Min %d, Max %d]", c.Initial, c.Min, c.Max)
	c.Rule.validate(&v, c.Min, c.Max)
	v.unless(c.Window >= 10*time.Millisecond && c.Window <= time.Minute, "Window %v is not in [10ms, %v]", c.Window, time.Minute)
	c.validateQueue(&v)
	return errors.Join(v...)
}

func (c *LimiterConfig) validateQueue(v *complaints) {
	v.unless(c.MaxQueue >= 0 && c.MaxQueue <= mostLimit, "MaxQueue %d is not in [0, %d]", c.MaxQueue, mostLimit)
	v.unless(c.MaxWait >= 0, "MaxWait %v is negative", c.MaxWait)
	v.unless(c.MaxQueue <= 0 || c.MaxWait != 0, "MaxQueue %d lets calls wait, and MaxWait 0s does not", c.MaxQueue)
	v.unless(c.MaxQueue != 0 || c.MaxWait <= 0, "MaxWait %v lets calls wait, and with MaxQueue 0 none may", c.MaxWait)
	v.unless(c.CoDelTarget >= 0, "CoDelTarget %v is negative", c.CoDelTarget)
	v.unless(c.CoDelInterval > 0, "CoDelInterval %v is not positive", c.CoDelInterval)
	v.unless(c.Aging >= 0, "Aging %v is negative", c.Aging)
	sum := 0.0
	for class, share := range c.Shares {
		v.unless(share == 0 || share >= 0.000001 && share <= 1, "Shares[%d] %v is not 0, and not in [0.000001, 1]", class, share) // also catches NaN
		sum += share
	}
	v.unless(!(sum > 1.0000001), "Shares %v are more than 1 together", c.Shares)
}

// first is the limit of a new Limiter.
func (c *LimiterConfig) first() int {
	if c.Rule.Kind == LimitFixed {
		return c.Rule.Limit
	}
	return c.Initial
}

// ranked reports whether priorities matter.
func (c *LimiterConfig) ranked() bool { return c.Aging > 0 || c.Shares != [classes]float64{} }

// policy is c for the queue.
func (c *LimiterConfig) policy() waitq.Policy {
	p := waitq.Policy{
		MaxQueue: c.MaxQueue, MaxWait: c.MaxWait, Newest: c.NewestFirst, Aging: c.Aging,
		Target: c.CoDelTarget, Interval: c.CoDelInterval,
	}
	rest := waitq.Whole
	for class, share := range c.Shares {
		p.Shares[class] = min(int(share*waitq.Whole+0.001), rest)
		rest -= p.Shares[class]
	}
	return p
}

// limiterConfigJSON is LimiterConfig as JSON has it.
type limiterConfigJSON struct {
	Rule          LimitRule         `json:"rule"`
	Min           int               `json:"min"`
	Max           int               `json:"max"`
	Initial       int               `json:"initial"`
	Window        jsontime.Duration `json:"window"`
	MaxQueue      int               `json:"max_queue"`
	MaxWait       jsontime.Duration `json:"max_wait"`
	CoDelTarget   jsontime.Duration `json:"codel_target"`
	CoDelInterval jsontime.Duration `json:"codel_interval"`
	NewestFirst   bool              `json:"newest_first"`
	Aging         jsontime.Duration `json:"aging"`
	Shares        shares            `json:"shares"`
}

// MarshalJSON writes every key, durations as text, shares as a list from P0 to P2.
func (c LimiterConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is an
// error. It does not validate; c is as before when it returns an error.
func (c *LimiterConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = LimiterConfig{
		j.Rule, j.Min, j.Max, j.Initial, time.Duration(j.Window), j.MaxQueue, time.Duration(j.MaxWait),
		time.Duration(j.CoDelTarget), time.Duration(j.CoDelInterval), j.NewestFirst, time.Duration(j.Aging), j.Shares,
	}
	return nil
}

func (c *LimiterConfig) toJSON() limiterConfigJSON {
	return limiterConfigJSON{
		c.Rule, c.Min, c.Max, c.Initial, jsontime.Duration(c.Window), c.MaxQueue, jsontime.Duration(c.MaxWait),
		jsontime.Duration(c.CoDelTarget), jsontime.Duration(c.CoDelInterval), c.NewestFirst, jsontime.Duration(c.Aging), c.Shares,
	}
}

// shares is LimiterConfig.Shares; in JSON it has as many numbers as there are classes.
type shares [classes]float64

func (s *shares) UnmarshalJSON(data []byte) error {
	var list []float64
	if err := json.Unmarshal(data, &list); err != nil || list == nil {
		return err // null leaves them as they are
	}
	if len(list) != classes {
		return fmt.Errorf("%d shares, %d are wanted", len(list), classes)
	}
	*s = shares(list)
	return nil
}
