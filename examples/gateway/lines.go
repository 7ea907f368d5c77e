package main

import (
	"fmt"
	"io"
	"time"
)

// lines is the screen for a file or a pipe: what happens, line by line.
type lines struct{ w io.Writer }

func (l *lines) begin(a *act) { fmt.Fprintf(l.w, "%s\n\n%s\n", a.title(), head) }

func (l *lines) note(at time.Duration, text string) {
	fmt.Fprintf(l.w, "%5s > %s\n", clock(at), text)
}

func (l *lines) rows(rows []row) {
	for _, r := range rows {
		fmt.Fprintln(l.w, r)
	}
}

func (l *lines) refresh(time.Duration, phase, int) {}

func (l *lines) end() { fmt.Fprintln(l.w) }
