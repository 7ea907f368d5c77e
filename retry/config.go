package retry

import (
	"encoding/json"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
)

// Config is what a policy decides on, as plain data: start from DefaultConfig,
// because a Config is taken literally and the zero Config does not validate.
//
// In JSON the keys are in snake case, durations are text such as "250ms", and
// decoding goes over what was there: absent keys keep their value, an unknown key is
// an error.
type Config struct {
	// Attempts is how often a call is made at most, the first time included. At least
	// 1, which repeats nothing.
	Attempts int
	// Backoff is the longest wait before the second attempt. Each further wait is
	// BackoffFactor times as long, up to BackoffMax. A Backoff of 0 never waits; a
	// factor of 1 always waits alike.
	Backoff       time.Duration
	BackoffFactor float64
	BackoffMax    time.Duration
	// Jitter in [0, 1] is which part of each wait is left to chance: 1 draws evenly
	// from all of it, 0 waits the longest each time.
	Jitter float64
	// MaxRetryAfter is how long a wait a dependency may ask for (see
	// sluice.RetryAfter). If it asks for more, the call is not repeated.
	MaxRetryAfter time.Duration
	// AttemptTimeout is how long the first attempt may take, and each further one
	// AttemptGrowth times as long as the one before: a short first one and a long last
	// one. 0 sets no limit.
	AttemptTimeout time.Duration
	AttemptGrowth  float64
	// SplitDeadline gives each attempt no more than its share of the time that is left
	// until the deadline of the ctx: a half if there can be one more after it.
	SplitDeadline bool
}

// DefaultConfig returns: three attempts, waits of up to 50 ms and 100 ms drawn
// evenly, a Retry-After of up to 10 s, no limit of time for an attempt.
func DefaultConfig() Config {
	return Config{
		Attempts:      3,
		Backoff:       50 * time.Millisecond,
		BackoffFactor: 2,
		BackoffMax:    2 * time.Second,
		Jitter:        1,
		MaxRetryAfter: 10 * time.Second,
		AttemptGrowth: 1,
	}
}

// configJSON is Config as JSON has it.
type configJSON struct {
	Attempts       int               `json:"attempts"`
	Backoff        jsontime.Duration `json:"backoff"`
	BackoffFactor  float64           `json:"backoff_factor"`
	BackoffMax     jsontime.Duration `json:"backoff_max"`
	Jitter         float64           `json:"jitter"`
	MaxRetryAfter  jsontime.Duration `json:"max_retry_after"`
	AttemptTimeout jsontime.Duration `json:"attempt_timeout"`
	AttemptGrowth  float64           `json:"attempt_growth"`
	SplitDeadline  bool              `json:"split_deadline"`
}

// MarshalJSON writes every key, durations as text.
func (c Config) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is an
// error. It does not validate; c is as before when it returns an error.
func (c *Config) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = Config{
		j.Attempts, time.Duration(j.Backoff), j.BackoffFactor, time.Duration(j.BackoffMax), j.Jitter,
		time.Duration(j.MaxRetryAfter), time.Duration(j.AttemptTimeout), j.AttemptGrowth, j.SplitDeadline,
	}
	return nil
}

func (c Config) toJSON() configJSON {
	return configJSON{
		c.Attempts, jsontime.Duration(c.Backoff), c.BackoffFactor, jsontime.Duration(c.BackoffMax), c.Jitter,
		jsontime.Duration(c.MaxRetryAfter), jsontime.Duration(c.AttemptTimeout), c.AttemptGrowth, c.SplitDeadline,
	}
}
