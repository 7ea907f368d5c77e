package sluice_test

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// An act is what a guard or a call does when its turn comes.
type act int

const (
	pass act = iota
	refuse
	fails
	panics
	exits // ends its goroutine
)

func (a act) String() string {
	return [...]string{"passes", "refuses", "fails", "panics", "exits"}[a]
}

// A journal is where guards and calls write down what happens, one line each. Its
// lines are the trace that a test compares.
type journal struct {
	lines []string
	// began is when times in the lines count from; 0 leaves them out.
	began int64
}

func (j *journal) write(who, what string) { j.lines = append(j.lines, who+" "+what) }

// does plays an act out, and returns the error of one that has it.
func (j *journal) does(a act, who string, refusal error) error {
	if a == pass {
		return nil
	}
	j.write(who, a.String())
	switch a {
	case refuse:
		return refusal
	case panics:
		panic(who)
	case exits:
		runtime.Goexit()
	}
	return errDown
}

// entry says how ctx and the time look to one on the way in.
func (j *journal) entry(what string, ctx context.Context, now int64) string {
	if sluice.IsProbe(ctx) {
		what += " a probe"
	}
	return what + j.at(now)
}

func (j *journal) at(now int64) string {
	if j.began == 0 {
		return ""
	}
	return fmt.Sprint(" at ", time.Duration(now-j.began))
}

// doing returns a call that does what a says, and takes an hour where time counts.
func (j *journal) doing(a act) func(context.Context) error {
	return func(ctx context.Context) error {
		j.lines = append(j.lines, j.entry("call", ctx, clock.Now()))
		if j.began != 0 {
			time.Sleep(time.Hour)
		}
		return j.does(a, "call", nil)
	}
}

// A toll is a stage, as the guards of this module are. It can only be driven in
// two steps, so a test that uses it shows that it is.
type toll struct {
	j               *journal
	name            string
	admits, settles act
	refusal         *rejection
	probe           bool
	waits           time.Duration
	hears           func(ctx context.Context, now int64) // both steps, if not nil
}

// toll makes a stage from what it does when it admits and when it settles.
func (j *journal) toll(name string, acts ...act) *toll {
	acts = append(acts, pass, pass)
	return &toll{j: j, name: name, refusal: &rejection{name: name}, admits: acts[0], settles: acts[1]}
}

// ticketOf is what a toll finds again when it settles.
type ticketOf struct {
	toll    *toll
	settled bool
}

func (s *toll) Do(context.Context, func(context.Context) error) error {
	panic("a stage is to be run in two steps")
}

func (s *toll) Admit(ctx context.Context, now int64) (stage.Ticket, error) {
	if s == nil {
		return stage.Ticket{At: now}, nil
	}
	if s.hears != nil {
		s.hears(ctx, now)
	}
	if err := s.j.does(s.admits, s.name, s.refusal); err != nil {
		return stage.Ticket{}, err
	}
	s.j.write(s.name, s.j.entry("admits", ctx, now))
	if s.waits > 0 {
		time.Sleep(s.waits)
	}
	t := stage.Ticket{Ref: &ticketOf{toll: s}, At: clock.After(now, s.waits)}
	if s.probe {
		t.Mark = stage.ProbeMark
	}
	return t, nil
}

func (s *toll) Settle(t stage.Ticket, ctx context.Context, now int64, err error, completed bool) {
	if s == nil {
		return
	}
	if s.hears != nil {
		s.hears(ctx, now)
	}
	if mine := t.Ref.(*ticketOf); mine.toll != s || mine.settled {
		s.j.write(s.name, "settles a ticket that is not out")
	} else {
		mine.settled = true
	}
	s.j.write(s.name, "settles: "+result(err, completed)+s.j.at(now))
	_ = s.j.does(s.settles, s.name, nil)
}

func result(err error, completed bool) string {
	switch {
	case !completed:
		return "cut off"
	case err != nil:
		return err.Error()
	}
	return "ok"
}

// A foreign is a Guard as a user writes one: it knows only Do.
type foreign struct {
	j             *journal
	name          string
	before, after act
	refusal       *rejection
	retries       bool // once
}

// foreign makes a Guard from what it does before the call and after it.
func (j *journal) foreign(name string, acts ...act) *foreign {
	acts = append(acts, pass, pass)
	return &foreign{j: j, name: name, refusal: &rejection{name: name}, before: acts[0], after: acts[1]}
}

func (f *foreign) Do(ctx context.Context, call func(context.Context) error) error {
	if f == nil {
		return call(ctx)
	}
	if err := f.j.does(f.before, f.name, f.refusal); err != nil {
		return err
	}
	f.j.write(f.name, f.j.entry("enters", ctx, clock.Now()))
	err := call(ctx)
	if err != nil && f.retries {
		f.j.write(f.name, "retries")
		err = call(ctx)
	}
	f.j.write(f.name, "leaves: "+result(err, true))
	if own := f.j.does(f.after, f.name, f.refusal); own != nil {
		return own
	}
	return err
}

// ending tells how f ends: "returned", "exited", or with which panic.
func ending(f func()) (how string) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		how = "exited"
		defer func() {
			if v := recover(); v != nil {
				how = fmt.Sprint("panicked: ", v)
			}
		}()
		f()
		how = "returned"
	}()
	<-done
	return how
}
