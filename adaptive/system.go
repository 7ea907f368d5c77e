package adaptive

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
	"github.com/sluicego/sluice/internal/stripe"
)

// System protects this process from more calls than it can serve: it watches how busy
// the process and its machine are, and refuses calls that come in while that is more
// than it should be. It belongs in front of what serves calls, once in a process, not
// around calls to others.
//
// It promises that unknown is not 0: a signal that is not known refuses nobody, and
// without Run none is known. In the mode Proportional, which is the default, at most
// 95 % of the calls are refused, and a call with sluice.P0 only when nearly all others
// are.
//
// Choosing numbers: QueueDelay is the rule to begin with, since a queue is the first sign
// of an overload; 5 ms suits goroutines, and for a queue that ObserveDelay tells of, take
// half to twice as long as a call takes. CPU says 100 % whether there is a little too
// much to do or far too much, so it finds the right share some seconds later: 0.8 to
// 0.9. For EntryQPS and Concurrency, take what a load test bears.
//
// Most callers want Do, or sluice.Call for a result; Allow and SystemPermit are for code
// that begins and ends a call in different places. Run looks at the signals; start it
// once and leave it running.
//
// Allow, Do and settling take no lock and allocate nothing, nor does refusing. How long
// calls take is measured, and AvgRT and the capacity known, only while a rule asks for
// it: AvgRT, Load1 or the mode BBR. Without these nobody reads the clock for a call. The
// priority in a ctx is looked at only when the call is about to be refused. A System is
// safe for concurrent use and must not be copied. A nil *System lets everything pass;
// the zero System is of no use, make one with NewSystem.
type System struct {
	// verdict is what to do with calls, as of the last tick. Written by tick and Run; what
	// it points to changes in nothing but the entries that it counts.
	verdict atomic.Pointer[verdict]
	name    string
	config  atomic.Pointer[SystemConfig] // written by Update; what it points to never changes
	running atomic.Bool                  // whether a Run is under way
	draw    func() uint32                // a random number; another one in tests
	judge   judge                        // of tick's alone
	delays  delays
	systemTally
}

// NewSystem returns a System of that name, which must not be empty. It returns every
// complaint about the options at once. Beside the rules that the options name, those for
// QueueDelay and Load1 are in force, unless WithQueueDelay(0) and WithLoad1(0) say
// otherwise. Start its Run, or it refuses nobody.
//
// For package variables there is sluice.Must.
func NewSystem(name string, opts ...SystemOption) (*System, error) {
	set := &systemSettings{SystemConfig: DefaultSystemConfig()}
	set.apply(opts)
	if name == "" {
		set.errs = append(set.errs, errors.New("adaptive: the name is empty"))
	}
	if err := set.check(); err != nil {
		return nil, err
	}
	s := &System{name: name, draw: rand.Uint32}
	s.config.Store(&set.SystemConfig)
	s.verdict.Store(new(verdict))
	return s, nil
}

// Name returns the name given to NewSystem.
func (s *System) Name() string {
	if s == nil {
		return ""
	}
	return s.name
}

// Allow asks for leave to serve one call and answers at once. The permit must be settled
// by one of its methods when the call has ended. A refusal matches ErrOverload. If ctx
// is done already, its own error is returned.
func (s *System) Allow(ctx context.Context) (SystemPermit, error) {
	if s == nil {
		return SystemPermit{}, nil
	}
	if err := ctx.Err(); err != nil {
		return SystemPermit{}, err
	}
	if err := s.enter(ctx); err != nil {
		return SystemPermit{}, err
	}
	if !s.verdict.Load().timed {
		return SystemPermit{system: s, ctx: ctx}, nil
	}
	return SystemPermit{system: s, start: clock.Now(), ctx: ctx}, nil
}

// Do runs call if the System admits it. It returns call's error as it is, or a refusal,
// which matches ErrOverload, without having run call. A panic or runtime.Goexit in call
// counts as a failure and goes on.
func (s *System) Do(ctx context.Context, call func(context.Context) error) error {
	p, err := s.Allow(ctx)
	if err != nil {
		return err
	}
	defer p.Close()
	err = call(ctx)
	p.Done(err)
	return err
}

// Admit and Settle let sluice.Call and sluice.Chain run the System in two steps.
func (s *System) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	if s == nil {
		return stage.Ticket{At: now}, nil
	}
	if err := s.enter(ctx); err != nil {
		return stage.Ticket{}, err
	}
	return stage.Ticket{Ref: s, At: now}, nil
}

// Settle is the second step after Admit.
func (s *System) Settle(t stage.Ticket, ctx context.Context, now int64, err error, completed bool) {
	s, ok := t.Ref.(*System)
	switch {
	case !ok:
	case completed:
		s.done(ctx, t.At, now, err)
	default:
		s.settle(t.At, now, abandoned(ctx))
	}
}

// enter lets a call in, or returns why not.
func (s *System) enter(ctx context.Context) error {
	v := s.verdict.Load()
	if v.watchful {
		return s.examine(ctx, v)
	}
	s.passed[stripe.Index()].entered.Add(1)
	return nil
}

// examine is enter while there is something to look at.
func (s *System) examine(ctx context.Context, v *verdict) error {
	if v.all != nil {
		return s.refuse(v.all)
	}
	if v.most > 0 {
		if drawn := uint64(s.draw()); drawn < v.most {
			c := classOf(ctx)
			s.sample(c)
			if drawn < v.shed[c] {
				return s.refuse(v.share)
			}
		}
	}
	if v.crowd != nil && s.underWay() >= v.bound {
		return s.refuse(v.crowd)
	}
	// Whoever counts himself first and all others after that finds too many, if there are;
	// of those that come at once this may be all. Then none of them leaves a mark.
	entered := &s.passed[stripe.Index()].entered
	entered.Add(1)
	if v.crowd != nil && s.underWay() > v.bound {
		entered.Add(-1)
		return s.refuse(v.crowd)
	}
	if v.rush != nil && v.entries.Add(1) > v.budget {
		entered.Add(-1)
		return s.refuse(v.rush)
	}
	return nil
}

// classes is how many kinds of calls are told apart when they are refused.
const classes = int(sluice.P2-sluice.P0) + 1

// classOf is the class of ctx's calls, the most important first; priorities beyond P0
// and P2 count as these.
func classOf(ctx context.Context) int {
	return int(min(max(sluice.PriorityOf(ctx), sluice.P0), sluice.P2) - sluice.P0)
}
