package main

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
)

// What the demonstration claims of user-service while order-service hangs.
const (
	claimWithout = 0.600 // available for less than this without protection
	claimWith    = 0.999 // and for at least this with it
)

// A result is what was measured in one act.
type result struct {
	sent, ok  int   // user-service's requests during the incident, and those that ended well
	slots     int   // there were
	mostSlots int64 // taken at once
	hung      int64 // requests that reached the sick backend

	// With protection only: order-service's breaker.
	tripped  bool          // it opened during the incident
	hungOpen int64         // requests that reached the sick backend after that
	closed   bool          // it closed after the recovery, and stayed so
	toClosed time.Duration // so long after the recovery
	state    string        // at the end
}

// availability is the share of user-service's requests that ended well.
func (r result) availability() float64 { return float64(r.ok) / float64(max(r.sent, 1)) }

// A summary compares the acts.
type summary struct{ without, with result }

func (s summary) String() string {
	var b strings.Builder
	line := func(what, without, with string) { fmt.Fprintf(&b, "%-40s%20s%20s\n", what, without, with) }
	line("while order-service hung", "without protection", "with protection")
	line("availability of user-service", percent(s.without), percent(s.with))
	line("requests answered well", count(s.without), count(s.with))
	line(fmt.Sprintf("most slots taken, of %d", s.without.slots), fmt.Sprint(s.without.mostSlots), fmt.Sprint(s.with.mostSlots))
	line("requests that reached the sick backend", fmt.Sprint(s.without.hung), fmt.Sprint(s.with.hung))
	line("  of these, after the breaker opened", "-", fmt.Sprint(s.with.hungOpen))
	line("from recovery to CLOSED", "-", s.toClosed())
	return b.String()
}

// percent is an availability that is never rounded up.
func percent(r result) string {
	return fmt.Sprintf("%.1f %%", math.Floor(1000*r.availability())/10)
}

func count(r result) string { return fmt.Sprintf("%d of %d", r.ok, r.sent) }

func (s summary) toClosed() string {
	if !s.with.closed {
		return "never"
	}
	return fmt.Sprintf("%.2fs", s.with.toClosed.Seconds())
}

// judge returns what these acts did not show of the claim, nil if they showed all.
func (s summary) judge() error {
	var errs []error
	if s.without.sent == 0 || s.with.sent == 0 {
		errs = append(errs, errors.New("user-service had no requests during the incident"))
	}
	if a := s.without.availability(); a >= claimWithout {
		errs = append(errs, fmt.Errorf("without protection user-service was available for %s of its requests, not below %.0f %%", percent(s.without), 100*claimWithout))
	}
	if a := s.with.availability(); a < claimWith {
		errs = append(errs, fmt.Errorf("with protection user-service was available for %s of its requests, less than %.1f %%", percent(s.with), 100*claimWith))
	}
	if !s.with.tripped {
		errs = append(errs, errors.New("order-service's breaker did not open during the incident"))
	}
	if !s.with.closed {
		errs = append(errs, fmt.Errorf("order-service's breaker did not reach CLOSED after the recovery: it is %s", s.with.state))
	}
	return errors.Join(errs...)
}
