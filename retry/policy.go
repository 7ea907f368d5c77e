package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stripe"
)

// Policy repeats calls that fail: so many times, after waits that grow and that
// chance spreads, as far as the deadline of the caller and a Budget allow.
//
// It repeats what sluice.Classify calls a failure of the dependency, or throttled;
// never what was refused locally, what the caller abandoned, or what somebody further
// in has repeated already. It promises that call never runs twice at once, that Do
// returns when the last attempt has, that a wait which the dependency asked for is
// kept in full, and that a wait which would not end before the deadline is not begun.
//
// Most callers want Do, or sluice.Call for a result. Begin and Attempts are for code
// that cannot put its call into a function.
//
// A call that succeeds at once costs no lock and no allocation, unless attempts have
// a time limit of their own, which takes a context each. Waits, errors and further
// attempts allocate; a wait has a timer of its own. A Policy starts no goroutine and
// needs no closing. It is safe for concurrent use and must not be copied. A nil
// *Policy makes each call once; the zero Policy is of no use, make one with New.
type Policy struct {
	// plan is what is decided on. Written by New and Update.
	plan atomic.Pointer[plan]
	// budget is nil if there is none.
	budget    *Budget
	ownBudget bool // nobody else has it, so the policy shows it
	name      string
	classify  func(ctx context.Context, err error) sluice.Outcome // nil without one
	random    func() float64                                      // in [0, 1)

	_ [stripe.Line]byte // what follows is written by calls that fail, what is above read by all
	tally
}

// plan is a Config and what follows from it. It never changes.
type plan struct {
	Config
	limited bool // attempts have a time limit
}

// New returns a policy for calls to the dependency of that name, which must not be
// empty. It returns every complaint about the options at once.
//
// For package variables there is sluice.Must.
func New(name string, opts ...Option) (*Policy, error) {
	s := newSettings(opts)
	if name == "" {
		s.errs = append(s.errs, errNoName)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if s.ownBudget {
		s.budget = newBudget(name, DefaultBudgetConfig(), clock.Now())
	}
	p := &Policy{budget: s.budget, ownBudget: s.ownBudget, name: name, classify: s.classify, random: rand.Float64}
	p.plan.Store(newPlan(s.Config))
	return p, nil
}

func newPlan(c Config) *plan {
	return &plan{Config: c, limited: c.AttemptTimeout > 0 || c.SplitDeadline}
}

// Name returns the name given to New.
func (p *Policy) Name() string {
	if p == nil {
		return ""
	}
	return p.name
}

// Budget returns the budget that retries are taken from, nil if there is none.
func (p *Policy) Budget() *Budget {
	if p == nil {
		return nil
	}
	return p.budget
}

// Do runs call until it succeeds or there shall be no further attempt. An error that
// would have been worth another attempt is returned as an *Error, which tells why
// there was none and unwraps to the last that call returned; every other is returned
// as it is. A panic or runtime.Goexit in call goes on and is not repeated.
//
// The ctx of an attempt ends when the attempt returns, if it is not the ctx given to
// Do itself.
func (p *Policy) Do(ctx context.Context, call func(context.Context) error) error {
	if p == nil {
		return call(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	plan := p.plan.Load()
	if plan.limited || p.budget.isHedged() {
		return p.derive(ctx, call)
	}
	err := call(ctx)
	if err != nil {
		return p.goOn(ctx, plan, call, err)
	}
	p.budget.Deposit()
	return nil
}

// Config returns what the policy decides on.
func (p *Policy) Config() Config {
	if p == nil {
		return Config{}
	}
	return p.plan.Load().Config
}

// Update changes what the policy decides on, for calls that begin afterwards. The
// budget and the counts stay. A Config that does not validate is returned as an error
// and changes nothing.
func (p *Policy) Update(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if p != nil {
		p.plan.Store(newPlan(c))
	}
	return nil
}

// derive is Do where the first attempt needs a ctx of its own.
func (p *Policy) derive(ctx context.Context, call func(context.Context) error) error {
	var a Attempts
	a.begin(ctx, p)
	return a.repeat(ctx, call, a.attempt(ctx, call))
}

// goOn is Do after a first attempt that ended with err. It stands apart so that only
// calls which come here pay for the Attempts.
func (p *Policy) goOn(ctx context.Context, plan *plan, call func(context.Context) error, err error) error {
	a := Attempts{policy: p, plan: plan}
	return a.repeat(ctx, call, err)
}

// outcome is what err, which is no local refusal, means.
func (p *Policy) outcome(ctx context.Context, err error) sluice.Outcome {
	if p.classify != nil {
		if o := p.classify(ctx, err); o != 0 {
			return o
		}
	}
	return sluice.Classify(ctx, err)
}

// refused reports whether an error is a local refusal: no call was made.
func refused(err error) bool { return errors.Is(err, sluice.ErrRejected) }
