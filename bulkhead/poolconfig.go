package bulkhead

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/sluicego/sluice/internal/jsontime"
	"github.com/sluicego/sluice/internal/waitq"
)

// PoolConfig is what a Pool decides on, as plain data: start from DefaultPoolConfig.
// It is taken literally, and has the same form in JSON as Config.
type PoolConfig struct {
	// Workers is how many tasks may run at once, at least 1 and at most a million.
	Workers int
	// MaxQueue is how many tasks may wait for a worker, at most a million. With 0 a
	// task is refused when all workers are busy.
	MaxQueue int
	// KeepAlive is how long a worker stays idle at least before it ends; it ends
	// before twice that. With 0 it ends when there is nothing to do.
	KeepAlive time.Duration
}

// DefaultPoolConfig returns: no queue, and workers that end after 5 s without work.
// Its Workers is 0, which does not validate, because there is no default for it.
func DefaultPoolConfig() PoolConfig {
	return PoolConfig{KeepAlive: 5 * time.Second}
}

const maxWorkers = 1_000_000

// Validate returns all that is wrong with c, each complaint with the field, its
// value and what is wanted, joined; nil if nothing is.
func (c PoolConfig) Validate() error {
	var v complaints
	v.unless(c.Workers >= 1 && c.Workers <= maxWorkers, "Workers %d is not in [1, %d]", c.Workers, maxWorkers)
	v.unless(c.MaxQueue >= 0 && c.MaxQueue <= maxQueue, "MaxQueue %d is not in [0, %d]", c.MaxQueue, maxQueue)
	v.unless(c.KeepAlive >= 0, "KeepAlive %v is negative", c.KeepAlive)
	return errors.Join(v...)
}

// policy is c for the queue.
func (c PoolConfig) policy() waitq.Policy {
	return waitq.Policy{MaxQueue: c.MaxQueue, MaxWait: math.MaxInt64}
}

// poolConfigJSON is PoolConfig as JSON has it.
type poolConfigJSON struct {
	Workers   int               `json:"workers"`
	MaxQueue  int               `json:"max_queue"`
	KeepAlive jsontime.Duration `json:"keep_alive"`
}

// MarshalJSON writes every key, durations as text.
func (c PoolConfig) MarshalJSON() ([]byte, error) { return json.Marshal(c.toJSON()) }

// UnmarshalJSON decodes over c: absent keys keep what was there, an unknown key is
// an error. It does not validate; c is as before when it returns an error.
func (c *PoolConfig) UnmarshalJSON(data []byte) error {
	j := c.toJSON()
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	*c = PoolConfig{j.Workers, j.MaxQueue, time.Duration(j.KeepAlive)}
	return nil
}

func (c PoolConfig) toJSON() poolConfigJSON {
	return poolConfigJSON{c.Workers, c.MaxQueue, jsontime.Duration(c.KeepAlive)}
}

// PoolOption sets one thing of a new Pool. The last one wins; they start from
// DefaultPoolConfig and the workers given to NewPool.
type PoolOption func(*poolSettings)

// WithPoolQueue lets up to n tasks wait for a worker, as long as their ctx lives.
//
// Default: 0, a task is refused when all workers are busy.
func WithPoolQueue(n int) PoolOption { return func(s *poolSettings) { s.MaxQueue = n } }

// WithKeepAlive sets how long a worker stays idle before it ends.
//
// Default: 5 s.
func WithKeepAlive(d time.Duration) PoolOption { return func(s *poolSettings) { s.KeepAlive = d } }

// WithPoolConfig replaces all data set so far by c, so it comes first. Workers in c
// must be what was given to NewPool, or 0.
//
// Default: DefaultPoolConfig.
func WithPoolConfig(c PoolConfig) PoolOption {
	return func(s *poolSettings) {
		if c.Workers == 0 {
			c.Workers = s.workers
		}
		if c.Workers != s.workers {
			s.errs = append(s.errs, fmt.Errorf("bulkhead: WithPoolConfig has Workers %d, and NewPool was given %d", c.Workers, s.workers))
		}
		s.PoolConfig = c
	}
}

// poolSettings is what the options fill in.
type poolSettings struct {
	PoolConfig
	workers int // as given to NewPool
	errs    []error
}

func newPoolSettings(workers int) *poolSettings {
	s := &poolSettings{PoolConfig: DefaultPoolConfig(), workers: workers}
	s.Workers = workers
	return s
}

func (s *poolSettings) apply(opts []PoolOption) {
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("bulkhead: option %d is nil", i))
			continue
		}
		o(s)
	}
}

// check returns all that is wrong.
func (s *poolSettings) check() error { return errors.Join(append(s.errs, s.Validate())...) }
