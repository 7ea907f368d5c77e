package retry

import (
	"errors"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/sluicego/sluice/internal/clock"
)

// Budget bounds how much load retries and hedges may add to a dependency: a share of
// the calls that are made for their own sake, and a few a second besides. Give one
// to everything that repeats calls to the same dependency.
//
// It promises that whenever it allows a repetition, those allowed within the last
// Window, this one included, are at most Ratio times the calls within the last
// Window plus MinPerSecond times the Window: exactly, however many goroutines ask at
// once. A repetition is charged when it is decided on, so that those that still wait
// for their turn count too, and is given back if it was never made.
//
// A Policy and a Hedger do all that is needed. Deposit and Withdraw are for a loop
// of your own.
//
// Deposit is an atomic addition; it takes no lock and does not allocate. Withdraw
// takes a mutex for some tens of nanoseconds. A Budget starts no goroutine. It is
// safe for concurrent use and must not be copied. A nil *Budget allows everything;
// the zero Budget is of no use, make one with NewBudget.
//
// The idea is Finagle's RetryBudget.
type Budget struct {
	// deposits counts calls. Written by whoever makes one; it may wrap around.
	deposits atomic.Uint64
	// batch is a power of two less one: a deposit that makes deposits a multiple of
	// it reads the clock for all since. Written by date, under mu.
	batch atomic.Uint64
	// hedged says that a Hedger shares the budget, and that policies have to tell it
	// which calls are deposited already. Written by NewHedger, only to true.
	hedged atomic.Bool
	name   string

	mu     sync.Mutex // guards what follows; no foreign code runs under it
	config BudgetConfig
	ledger ledger
	dated  uint64 // how many of the deposits are in the ledger or were too old for it
	last   int64  // when that was found out: the others came after it
	past   budgetTotals
}

// budgetTotals are counts since NewBudget.
type budgetTotals struct{ withdrawn, returned, refused int64 }

// NewBudget returns a budget for the dependency of that name, which must not be
// empty. It returns every complaint about the options at once.
//
// For package variables there is sluice.Must.
func NewBudget(name string, opts ...BudgetOption) (*Budget, error) {
	s := budgetSettings{BudgetConfig: DefaultBudgetConfig()}
	for i, o := range opts {
		if o == nil {
			s.errs = append(s.errs, noOption(i))
			continue
		}
		o(&s)
	}
	if name == "" {
		s.errs = append(s.errs, errNoName)
	}
	if err := errors.Join(append(s.errs, s.Validate())...); err != nil {
		return nil, err
	}
	return newBudget(name, s.BudgetConfig, clock.Now()), nil
}

func newBudget(name string, c BudgetConfig, now int64) *Budget {
	b := &Budget{name: name, config: c, last: now}
	b.ledger.width = c.width()
	b.ledger.roll(now)
	return b
}

// Name returns the name given to NewBudget.
func (b *Budget) Name() string {
	if b == nil {
		return ""
	}
	return b.name
}

// Deposit counts one call that is made for its own sake and not to repeat another.
// It takes effect at once, but is dated by the last time that somebody read the clock,
// so it may expire too soon, and never too late: by about a fiftieth of the Window, or,
// if there suddenly are far fewer calls than before, the first 64 by up to all of it.
func (b *Budget) Deposit() {
	if b != nil && b.add() {
		b.date(clock.Now())
	}
}

// Withdraw asks for leave to repeat one call, and charges it. Nothing has to follow.
func (b *Budget) Withdraw() bool { return b.withdraw(clock.Now()) }

// Config returns what the budget decides on.
func (b *Budget) Config() BudgetConfig {
	if b == nil {
		return BudgetConfig{}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.config
}

// Update changes what the budget decides on, from the next Withdraw. What is in it
// stays. A Config that does not validate is returned as an error and changes
// nothing.
func (b *Budget) Update(c BudgetConfig) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if b != nil {
		b.update(clock.Now(), c)
	}
	return nil
}

// add is Deposit up to the reading of the clock, and reports whether it is time for
// that.
func (b *Budget) add() bool { return b.deposits.Add(1)&b.batch.Load() == 0 }

// deposit is Deposit at a given time.
func (b *Budget) deposit(now int64) {
	if b != nil && b.add() {
		b.date(now)
	}
}

// withdraw is Withdraw at a given time.
func (b *Budget) withdraw(now int64) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enter(now)
	if b.available() < 1 {
		b.past.refused++
		return false
	}
	b.ledger.withdraw(b.last, 1)
	b.past.withdrawn++
	return true
}

// giveBack takes back a withdrawal of that time, for a repetition that was not made.
// A time of 0 is none.
func (b *Budget) giveBack(at int64) {
	if b == nil || at == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ledger.giveBack(at)
	b.past.returned++
}

// date gives deposits their time. It never waits: if somebody has the mutex, it is left
// to the next.
func (b *Budget) date(now int64) {
	if !b.mu.TryLock() {
		return
	}
	defer b.mu.Unlock()
	took := max(now-b.last, 1)
	fresh := b.enter(now)
	// So many that a batch takes a quarter of a slot: at a few calls a second each
	// one reads the clock, at many a second few do.
	want := min(fresh, 1<<20) * uint64(b.ledger.width/4) / uint64(took)
	b.batch.Store(1<<(bits.Len64(min(max(want, 1), maxBatch))-1) - 1)
}

// maxBatch is how many deposits share a reading of the clock at most.
const maxBatch = 64

// enter writes the deposits that are not in the ledger yet into it, and returns how
// many they are. They came since last, nobody knows when, and are dated then: a
// deposit may count for too short a time, never for too long. The caller holds mu.
func (b *Budget) enter(now int64) (fresh uint64) {
	now = max(now, b.last) // it was read before the mutex was got
	total := b.deposits.Load()
	fresh = total - b.dated
	b.dated = total
	b.ledger.roll(now)
	b.ledger.deposit(b.last, fresh)
	b.last = now
	return fresh
}

// available is how many repetitions are allowed now. The caller holds mu and has
// called enter.
func (b *Budget) available() int64 {
	deposited, withdrawn := b.ledger.sums()
	return b.config.allowance(deposited) - int64(min(withdrawn, 1<<62))
}

func (b *Budget) update(now int64, c BudgetConfig) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.enter(now)
	if c.Window != b.config.Window {
		b.ledger = b.ledger.reshaped(c.width(), b.last)
	}
	b.config = c
}

// isHedged reports whether a Hedger shares the budget.
func (b *Budget) isHedged() bool { return b != nil && b.hedged.Load() }
