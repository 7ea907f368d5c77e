package storetest

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// A Check finds out whether a store keeps one rule. It holds no state and may run
// many times, also at once.
type Check struct {
	Name string // one word, such as "StartsFull"
	Rule string // what must hold, and what goes wrong otherwise

	run func(t *trial)
}

// ErrDoesNotApply matches the error of a check that the subject lacks the means for.
var ErrDoesNotApply = errors.New("does not apply")

// A Failure is the error of a check that a store failed.
type Failure struct {
	Check, Rule string
	Seen        []string // what went wrong, in the order in which it did
}

// Error tells the rule and what was seen.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s\n\tseen: %s\n\trule: %s", f.Check, strings.Join(f.Seen, "\n\t      "), f.Rule)
}

// Checks returns all checks.
func Checks() []Check {
	return slices.Concat(takes(), clocks(), returns(), keys(), faults())
}

// Run examines s. It returns nil if the rule is kept, an error that matches
// ErrDoesNotApply, or a *Failure, which is also what a panic of the store leads to.
// With short it takes less time where it can.
func (c Check) Run(s Subject, short bool) error {
	t := newTrial(s, short)
	t.try(c.run)
	switch {
	case len(t.seen) > 0:
		return &Failure{c.Name, c.Rule, t.seen}
	case t.lacks != "":
		return fmt.Errorf("storetest: %s: %w: the Subject has no %s", c.Name, ErrDoesNotApply, t.lacks)
	}
	return nil
}

// Run runs every check as a subtest, each on a subject of its own.
func Run(t *testing.T, subject func(t *testing.T) Subject) {
	t.Helper()
	each(t, func(t *testing.T, examine func(*testing.T)) { examine(t) }, subject)
}

// RunInBubble is Run with each subtest in a testing/synctest bubble of its own, in
// which no time is lost: for a store that does nothing but compute in this process,
// and is made by subject, in there.
func RunInBubble(t *testing.T, subject func(t *testing.T) Subject) {
	t.Helper()
	each(t, synctest.Test, subject)
}

func each(t *testing.T, within func(*testing.T, func(*testing.T)), subject func(*testing.T) Subject) {
	t.Helper()
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			within(t, func(t *testing.T) {
				switch err := c.Run(subject(t), testing.Short()); {
				case errors.Is(err, ErrDoesNotApply):
					t.Skip(err)
				case err != nil:
					t.Error(err)
				}
			})
		})
	}
}

// try runs f to its end or to the first fatalf or need.
func (t *trial) try(f func(*trial)) {
	defer func() {
		switch p := recover(); p.(type) {
		case nil, over:
		default:
			t.errorf("it panics: %v\n%s", p, debug.Stack())
		}
	}()
	f(t)
}

// over is the panic that ends a check early.
type over struct{}
