package adaptive

import (
	"errors"
	"fmt"
	"time"
)

// SystemOption sets one thing of a new System. The last one wins; they start from
// DefaultSystemConfig.
type SystemOption func(*systemSettings)

// WithMode sets what happens when a signal is above its threshold.
//
// Default: Proportional.
func WithMode(m SystemMode) SystemOption { return func(s *systemSettings) { s.Mode = m } }

// WithQueueDelay sets how long work may wait before it is begun; 0 is no rule.
//
// Default: 5 ms.
func WithQueueDelay(d time.Duration) SystemOption {
	return func(s *systemSettings) { s.QueueDelay = d }
}

// WithLoad1 sets the load that is too high if too many calls are under way as well; 0
// is no rule.
//
// Default: Auto, which is 2.5 × the cores that the process may have.
func WithLoad1(load float64) SystemOption { return func(s *systemSettings) { s.Load1 = load } }

// WithCPU sets the share of the CPU time that may be in use, below 1; 0 is no rule.
//
// Default: 0.
func WithCPU(share float64) SystemOption { return func(s *systemSettings) { s.CPU = share } }

// WithAvgRT sets how long calls may take on average; 0 is no rule.
//
// Default: 0.
func WithAvgRT(d time.Duration) SystemOption { return func(s *systemSettings) { s.AvgRT = d } }

// WithEntryQPS sets how many calls a second may be admitted; 0 is no rule. In the mode
// Proportional it is what the calls are brought back to, and may be exceeded meanwhile;
// for a bound that holds, use Hard or a limiter of package ratelimit.
//
// Default: 0.
func WithEntryQPS(perSecond float64) SystemOption {
	return func(s *systemSettings) { s.EntryQPS = perSecond }
}

// WithConcurrency sets how many calls may be under way; 0 is no rule. In the mode
// Proportional it is what the calls are brought back to, and may be exceeded
// meanwhile; for a bound that holds, use Hard or a bulkhead.
//
// Default: 0.
func WithConcurrency(n int) SystemOption { return func(s *systemSettings) { s.Concurrency = n } }

// WithCPUQuota says how many cores the process may have, where the system hides it: in
// virtual machines around a container, on Windows.
//
// Default: what the cgroups say, else the number of CPUs.
func WithCPUQuota(cores float64) SystemOption {
	return func(s *systemSettings) { s.CPUQuota = cores }
}

// WithSystemConfig replaces all data set so far by c, so it comes first.
//
// Default: DefaultSystemConfig.
func WithSystemConfig(c SystemConfig) SystemOption {
	return func(s *systemSettings) { s.SystemConfig = c }
}

// systemSettings is what the options fill in.
type systemSettings struct {
	SystemConfig
	errs []error
}

func (s *systemSettings) apply(opts []SystemOption) {
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("adaptive: option %d is nil", i))
			continue
		}
		o(s)
	}
}

// check returns all that is wrong.
func (s *systemSettings) check() error { return errors.Join(append(s.errs, s.Validate())...) }
