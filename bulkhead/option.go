package bulkhead

import (
	"errors"
	"fmt"
	"time"
)

// Option sets one thing of a new Bulkhead. The last one wins; they start from
// DefaultConfig and the limit given to New.
type Option func(*settings)

// WithQueue lets up to n calls wait for a place, each for at most maxWait; its ctx
// may end the wait sooner. For waits that only the ctx ends, give math.MaxInt64.
//
// Default: nobody waits.
func WithQueue(n int, maxWait time.Duration) Option {
	return func(s *settings) { s.MaxQueue, s.MaxWait = n, maxWait }
}

// WithOrder sets who goes first among those that wait. It needs WithQueue.
//
// Default: FIFO.
func WithOrder(o Order) Option { return func(s *settings) { s.Order = o } }

// WithAging lets more important calls go first, by sluice.WithPriority, as far as
// they come no more than d later for each class between them; 0 ignores priorities.
// In a full queue they take the room of the call that would be served last. It needs
// WithQueue.
//
// Default: 0, all calls are equal.
func WithAging(d time.Duration) Option { return func(s *settings) { s.Aging = d } }

// WithCoDel shortens the wait in overload: a call that comes when the queue has not
// been empty for interval waits for at most target. A target of 0 is off; interval
// is what AdaptiveLIFO takes for overload too. It needs WithQueue.
//
// Default: off, and an interval of 100 ms.
func WithCoDel(target, interval time.Duration) Option {
	return func(s *settings) { s.CoDelTarget, s.CoDelInterval = target, interval }
}

// WithLimit sets the limit of one key in WithOverride. It is an error in New and
// NewGroup, which take the limit as an argument.
//
// Default: the Group's.
func WithLimit(limit int) Option {
	return func(s *settings) {
		if s.limited {
			s.errs = append(s.errs, errors.New("bulkhead: WithLimit is for WithOverride: the limit is an argument"))
		}
		s.Limit = limit
	}
}

// WithConfig replaces all data set so far by c, so it comes first. A Limit in c must
// be the one given to New or NewGroup, or -1; in WithOverride it may be another.
//
// Default: DefaultConfig.
func WithConfig(c Config) Option {
	return func(s *settings) {
		if c.Limit == unset {
			c.Limit = s.Limit
		}
		if s.limited && c.Limit != s.Limit {
			s.errs = append(s.errs, fmt.Errorf("bulkhead: WithConfig has Limit %d, and the argument is %d", c.Limit, s.Limit))
		}
		s.Config = c
	}
}

// settings is what the options fill in.
type settings struct {
	Config
	limited bool // Limit is an argument, and not for options to set
	errs    []error
	group   *groupSettings // nil until a group option is used
}

func newSettings(limit int) *settings {
	s := &settings{Config: DefaultConfig(), limited: true}
	s.Limit = limit
	return s
}

func (s *settings) apply(opts []Option) {
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, fmt.Errorf("bulkhead: option %d is nil", i))
			continue
		}
		o(s)
	}
}

// check returns all that is wrong.
func (s *settings) check() error { return errors.Join(append(s.errs, s.Validate())...) }
