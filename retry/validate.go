package retry

import (
	"errors"
	"fmt"
	"math"
	"time"
)

const maxFactor = 1000

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c Config) Validate() error {
	var v complaints
	v.unless(c.Attempts >= 1 && c.Attempts <= math.MaxInt32, "Attempts %d is not in [1, %d]", c.Attempts, math.MaxInt32)
	v.unless(c.BackoffFactor >= 1 && c.BackoffFactor <= maxFactor, "BackoffFactor %v is not in [1, %d]", c.BackoffFactor, maxFactor) // also catches NaN
	v.unless(c.Jitter >= 0 && c.Jitter <= 1, "Jitter %v is not in [0, 1]", c.Jitter)
	v.unless(c.MaxRetryAfter >= 0, "MaxRetryAfter %v is negative", c.MaxRetryAfter)
	if v.unless(c.Backoff >= 0, "Backoff %v is negative", c.Backoff) {
		d := DefaultConfig()
		v.unless(c.BackoffMax >= c.Backoff, "BackoffMax %v%s is less than Backoff %v%s",
			c.BackoffMax, defaulted(c.BackoffMax, d.BackoffMax), c.Backoff, defaulted(c.Backoff, d.Backoff))
	}
	v.unless(c.AttemptTimeout >= 0, "AttemptTimeout %v is negative", c.AttemptTimeout)
	if v.unless(c.AttemptGrowth >= 1 && c.AttemptGrowth <= maxFactor, "AttemptGrowth %v is not in [1, %d]", c.AttemptGrowth, maxFactor) {
		v.unless(c.AttemptGrowth == 1 || c.AttemptTimeout != 0, "AttemptGrowth %v has no meaning without an AttemptTimeout", c.AttemptGrowth)
	}
	return errors.Join(v...)
}

// defaulted marks a value that its owner perhaps never set.
func defaulted(d, by time.Duration) string {
	if d == by {
		return " (the default)"
	}
	return ""
}

var errNoName = errors.New("retry: the name is empty")

func noOption(i int) error { return fmt.Errorf("retry: option %d is nil", i) }

// complaints collects errors, each with the package's prefix.
type complaints []error

// unless adds the complaint if ok is false, and returns ok.
func (v *complaints) unless(ok bool, format string, args ...any) bool {
	if !ok {
		*v = append(*v, fmt.Errorf("retry: "+format, args...))
	}
	return ok
}
