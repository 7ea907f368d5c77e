package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sluicego/sluice/breaker"
)

// A screen shows an act while it runs. Only one goroutine uses it.
type screen interface {
	begin(a *act)
	// note tells something as it happens.
	note(at time.Duration, text string)
	// rows shows the second that has just ended.
	rows(rows []row)
	// refresh is called a few times a second.
	refresh(at time.Duration, now phase, slots int)
	end()
}

// newScreen returns a screen on w: drawn over itself on a terminal, lines elsewhere.
func newScreen(w io.Writer, terminal bool) screen {
	if terminal {
		return &live{w: w, color: os.Getenv("NO_COLOR") == ""}
	}
	return &lines{w: w}
}

// isTerminal reports whether f is one that knows the usual escape sequences.
func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	term := os.Getenv("TERM")
	return term != "" && term != "dumb"
}

// A row is one second of one service.
type row struct {
	at      time.Duration
	service string
	state   string // of its breaker
	second
	slots int64 // that it holds
}

const (
	headFormat = "%5s %-13s %-9s %8s %3s %6s %7s %4s %5s %5s %5s"
	rowFormat  = "%5s %-13s %-9s %8d %3d %6d %7d %4s %5s %5s %5d"
)

// head is the line above the rows; they are 80 columns wide.
var head = fmt.Sprintf(headFormat, "time", "service", "state", "requests", "ok", "failed", "refused", "slow", "p50", "p99", "slots")

func (r row) String() string {
	return fmt.Sprintf(rowFormat, clock(r.at), r.service, r.state,
		r.requests, r.ok, r.failed, r.refused, fmt.Sprintf("%.0f%%", 100*r.slowRatio()), r.within(0.50), r.within(0.99), r.slots)
}

// within is a quantile in five columns.
func (s second) within(q float64) string {
	d, ok := s.quantile(q)
	switch {
	case !ok:
		return "-"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 10*time.Second:
		return fmt.Sprintf("%.2fs", d.Seconds())
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}

// clock is the time since the act began.
func clock(at time.Duration) string { return fmt.Sprintf("%.1fs", at.Seconds()) }

// explain says a change of state, and why.
func explain(e breaker.Event) string {
	change := fmt.Sprintf("%v → %v", e.From, e.To)
	if e.To == breaker.Open {
		change += fmt.Sprintf(" for %.1fs", e.OpenFor.Seconds())
	}
	c := e.Cause
	why := strings.ReplaceAll(c.Reason.String(), "_", " ")
	if c.Reason == breaker.RuleTripped {
		why = fmt.Sprintf("%d of %d calls failed", c.Bad, c.Total)
		if c.Rule.Kind == breaker.SlowCallRatio {
			why = fmt.Sprintf("%d of %d calls took over %v", c.Bad, c.Total, c.Rule.SlowerThan)
		}
	}
	return change + ", " + why
}
