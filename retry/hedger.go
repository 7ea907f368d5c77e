package retry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/jsontime"
)

// Hedger says when Hedge sends a call a second time: after which delay, if at all. It
// is no sluice.Guard, because the two run at the same time.
//
// It is safe for concurrent use and must not be copied. With a nil *Hedger Hedge
// makes each call once; the zero Hedger is of no use, make one with NewHedger.
type Hedger struct {
	config    atomic.Pointer[HedgerConfig] // written by NewHedger and Update
	budget    *Budget                      // nil if there is none
	ownBudget bool                         // nobody else has it, so the hedger shows it
	name      string
	measured  func() time.Duration // nil without one
	allowed   func() bool          // nil without one
	hedgerTally
}

// hedgerTally is what a Hedger counts. Written by the calls, and by attempts that
// come too late.
type hedgerTally struct {
	hedges, won, throttled, withheld, panics atomic.Int64
}

// HedgerConfig is what a Hedger decides on, as plain data. In JSON it is an object
// with the one key "delay", a duration in text.
type HedgerConfig struct {
	// Delay is how long the first attempt may take before there is a second. With
	// WithHedgeDelay it is the longest that this may be.
	Delay time.Duration
}

// Validate returns what is wrong with c.
func (c HedgerConfig) Validate() error {
	if c.Delay <= 0 {
		return fmt.Errorf("retry: Delay %v is not positive", c.Delay)
	}
	return nil
}

type hedgerJSON struct {
	Delay jsontime.Duration `json:"delay"`
}

// MarshalJSON writes the delay as text.
func (c HedgerConfig) MarshalJSON() ([]byte, error) {
	return json.Marshal(hedgerJSON{jsontime.Duration(c.Delay)})
}

// UnmarshalJSON decodes over c; an unknown key is an error.
func (c *HedgerConfig) UnmarshalJSON(data []byte) error {
	j := hedgerJSON{jsontime.Duration(c.Delay)}
	if err := jsontime.Strict(data, &j); err != nil {
		return err
	}
	c.Delay = time.Duration(j.Delay)
	return nil
}

// HedgerOption sets one thing of a new hedger. The last one wins.
type HedgerOption func(*hedgerSettings)

// hedgerSettings is what the options fill in.
type hedgerSettings struct {
	measured  func() time.Duration
	allowed   func() bool
	budget    *Budget
	ownBudget bool
}

// WithHedgeDelay takes the delay from f, such as the 95th percentile of what was
// measured lately, which sends a twentieth of the calls twice. What f returns counts
// up to the delay given to NewHedger: one bad replica must not drag the percentile up
// until nothing is hedged when it is needed most. If it is not positive, as long as
// nothing was measured, the call is not hedged. f is asked once for each call, on its
// path and with no lock held.
//
// Default: none, the delay is fixed.
func WithHedgeDelay(f func() time.Duration) HedgerOption {
	return func(s *hedgerSettings) { s.measured = f }
}

// WithHedgeIf lets f say whether a second attempt may be sent now: not while a breaker
// is not closed, say, or a limiter is nearly full. f is asked when the delay is over,
// on the path of the call and with no lock held.
//
// Default: none, always.
func WithHedgeIf(f func() bool) HedgerOption {
	return func(s *hedgerSettings) { s.allowed = f }
}

// WithHedgeBudget takes the leave for second attempts from b, which policies and
// other hedgers may share. A nil b is no budget: then a dependency that has become slow
// gets twice its load.
//
// Default: a budget of the hedger's own, as DefaultBudgetConfig has it.
func WithHedgeBudget(b *Budget) HedgerOption {
	return func(s *hedgerSettings) { s.budget, s.ownBudget = b, false }
}

// NewHedger returns a hedger for calls to the dependency of that name, which must not
// be empty. The second attempt is sent after delay, which must be positive: about the
// 95th percentile of how long a call takes. It returns every complaint at once.
//
// For package variables there is sluice.Must.
func NewHedger(name string, delay time.Duration, opts ...HedgerOption) (*Hedger, error) {
	s := hedgerSettings{ownBudget: true}
	var errs []error
	for i, o := range opts {
		if o == nil {
			errs = append(errs, noOption(i))
			continue
		}
		o(&s)
	}
	if name == "" {
		errs = append(errs, errNoName)
	}
	c := HedgerConfig{delay}
	if err := errors.Join(append(errs, c.Validate())...); err != nil {
		return nil, err
	}
	if s.ownBudget {
		s.budget = newBudget(name, DefaultBudgetConfig(), clock.Now())
	}
	if s.budget != nil {
		s.budget.hedged.Store(true)
	}
	h := &Hedger{name: name, budget: s.budget, ownBudget: s.ownBudget, measured: s.measured, allowed: s.allowed}
	h.config.Store(&c)
	return h, nil
}

// Name returns the name given to NewHedger.
func (h *Hedger) Name() string {
	if h == nil {
		return ""
	}
	return h.name
}

// Budget returns the budget that second attempts are taken from, nil if there is none.
func (h *Hedger) Budget() *Budget {
	if h == nil {
		return nil
	}
	return h.budget
}

// Config returns what the hedger decides on.
func (h *Hedger) Config() HedgerConfig {
	if h == nil {
		return HedgerConfig{}
	}
	return *h.config.Load()
}

// Update changes what the hedger decides on, for calls that begin afterwards. A Config
// that does not validate is returned as an error and changes nothing.
func (h *Hedger) Update(c HedgerConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if h != nil {
		h.config.Store(&c)
	}
	return nil
}

// delay is after how long to hedge a call of ctx, 0 if not at all.
func (h *Hedger) delay(ctx context.Context) time.Duration {
	if repeated(ctx) || sluice.IsProbe(ctx) {
		return 0
	}
	d := h.config.Load().Delay
	if h.measured != nil {
		d = min(d, h.measured())
	}
	return max(d, 0)
}

// deposit counts a call of ctx, unless somebody further out has.
func (h *Hedger) deposit(ctx context.Context) {
	if h.budget != nil && !isDeposited(ctx, h.budget) {
		h.budget.Deposit()
	}
}

// mayHedge asks for leave to send a second attempt, and charges it.
func (h *Hedger) mayHedge(now int64) bool {
	if h.allowed != nil && !h.allowed() {
		h.withheld.Add(1)
		return false
	}
	if !h.budget.withdraw(now) {
		h.throttled.Add(1)
		return false
	}
	h.hedges.Add(1)
	return true
}
