package guardtest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// The protocols that a check may need servers of.
const (
	HTTP1 = "HTTP/1.1"
	HTTP2 = "HTTP/2" // without TLS, which makes no difference to a wrapper
)

// A Check finds out whether a wrapper of T keeps one rule; T is http.RoundTripper
// or http.Handler. It holds no state and may run many times, also at once.
type Check[T any] struct {
	Name     string // one word, such as "TrailersArrive"
	Protocol string // of the servers it starts, HTTP1 or HTTP2; "" if it needs none
	Rule     string // what must hold, and what goes wrong otherwise

	run func(t *trial, wrap func(T) T)
}

// ErrDoesNotApply matches the error of a check that a wrapper can neither pass nor
// fail, most often because it never refuses a call.
var ErrDoesNotApply = errors.New("does not apply")

// A Failure is the error of a check that a wrapper failed.
type Failure struct {
	Check, Protocol, Rule string
	Seen                  []string // what went wrong, in the order in which it did
}

// Error tells the rule and what was seen.
func (f *Failure) Error() string {
	return fmt.Sprintf("%s\n\tseen: %s\n\trule: %s", title(f.Check, f.Protocol), strings.Join(f.Seen, "\n\t      "), f.Rule)
}

// String is the name of the check's subtest, such as "TrailersArrive/HTTP2".
func (c Check[T]) String() string { return title(c.Name, c.Protocol) }

func title(name, protocol string) string {
	switch protocol {
	case HTTP1:
		return name + "/HTTP1"
	case HTTP2:
		return name + "/HTTP2"
	}
	return name
}

// Run examines wrap. It returns nil if the rule is kept, an error that matches
// ErrDoesNotApply, or a *Failure, which is also what a panic or a call that has not
// returned when ctx is done leads to. In the last case the goroutines that hang are
// left behind. ctx should give it some seconds.
func (c Check[T]) Run(ctx context.Context, wrap func(T) T) error {
	t := newTrial(ctx, c.Protocol)
	defer t.over()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer t.finish()
		c.run(t, wrap)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
		// What waits with ctx now says what for, and ends.
		select {
		case <-ended:
		case <-time.After(grace):
			t.errorf("hangs: it does not return, though its context is done")
		}
	}
	seen, inapplicable := t.result()
	if len(seen) == 0 && ctx.Err() != nil { // what ended it may have been that
		seen = []string{"hangs: it took until its context was done"}
	}
	switch {
	case len(seen) > 0:
		return &Failure{c.Name, c.Protocol, c.Rule, seen}
	case inapplicable != "":
		return fmt.Errorf("guardtest: %v: %w: %s", c, ErrDoesNotApply, inapplicable)
	}
	return nil
}

const (
	grace    = 2 * time.Second  // for a check to end once its ctx is done
	patience = 30 * time.Second // with a check in a test; far more than any takes on a slow machine
)

// TestTransport runs TransportChecks on wrap, each as a subtest. What wrap is given
// is the base that the wrapper is to use, an *http.Transport in most checks.
func TestTransport(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) {
	t.Helper()
	test(t, TransportChecks(), wrap)
}

// TestMiddleware runs MiddlewareChecks on wrap, each as a subtest. What wrap is
// given is the handler that the wrapper is to call.
func TestMiddleware(t *testing.T, wrap func(http.Handler) http.Handler) {
	t.Helper()
	test(t, MiddlewareChecks(), wrap)
}

func test[T any](t *testing.T, checks []Check[T], wrap func(T) T) {
	t.Helper()
	for _, c := range checks {
		t.Run(c.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := c.Run(ctx, wrap)
			switch {
			case errors.Is(err, ErrDoesNotApply):
				t.Skip(err)
			case err != nil:
				t.Error(err)
			}
		})
	}
}

// A rule is one row of the tables of checks: those without protocols need no server.
type rule[T any] struct {
	name string
	over []string
	text string
	run  func(t *trial, wrap func(T) T)
}

// each makes a check of a rule for each of its protocols.
func each[T any](tables ...[]rule[T]) []Check[T] {
	var checks []Check[T]
	for _, table := range tables {
		for _, r := range table {
			over := r.over
			if len(over) == 0 {
				over = []string{""}
			}
			for _, protocol := range over {
				checks = append(checks, Check[T]{r.name, protocol, r.text, r.run})
			}
		}
	}
	return checks
}

func both() []string  { return []string{HTTP1, HTTP2} }
func http1() []string { return []string{HTTP1} }
