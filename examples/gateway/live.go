package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	frameNotes   = 8  // newest notes in the frame
	frameSeconds = 60 // newest seconds
)

// live is the screen for a terminal: a frame of up to 21 lines that is drawn over
// itself. When an act ends its last frame stays.
type live struct {
	w     io.Writer
	color bool

	act    *act
	at     time.Duration
	phase  phase
	slots  int
	last   []row
	good   map[string][]rune // a sign for each of the newest seconds of a service
	told   []string
	height int // of the frame that is on the terminal
}

func (l *live) begin(a *act) {
	*l = live{w: l.w, color: l.color, act: a, good: map[string][]rune{}}
}

func (l *live) note(at time.Duration, text string) {
	l.told = append(l.told, fmt.Sprintf("%5s > %s", clock(at), text))
	l.draw()
}

func (l *live) rows(rows []row) {
	l.last = rows
	for _, r := range rows {
		seconds := append(l.good[r.service], sign(r.second))
		l.good[r.service] = seconds[max(0, len(seconds)-frameSeconds):]
	}
}

func (l *live) refresh(at time.Duration, now phase, slots int) {
	l.at, l.phase, l.slots = at, now, slots
	l.draw()
}

func (l *live) end() { fmt.Fprintln(l.w) }

// sign is one character for the share of good answers among all; a dot if nobody
// was answered.
func sign(s second) rune {
	answers := s.ok + s.refused + s.failed
	if answers == 0 {
		return '·'
	}
	signs := []rune("▁▂▃▄▅▆▇█")
	return signs[s.ok*(len(signs)-1)/answers]
}

// draw writes the frame in one piece. Lines do not wrap meanwhile, so that the way
// back up is right on a narrow terminal, too.
func (l *live) draw() {
	var b strings.Builder
	b.WriteString("\x1b[?7l\r") // the echo of a key may have moved the cursor
	if l.height > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", l.height)
	}
	frame := l.frame()
	for _, line := range frame {
		b.WriteString("\x1b[K" + line + "\n")
	}
	b.WriteString("\x1b[J\x1b[?7h")
	l.height = len(frame)
	io.WriteString(l.w, b.String())
}

func (l *live) frame() []string {
	length, slots := l.act.plan.length(l.act.protected), l.act.plan.slots
	frame := []string{
		l.act.title(),
		"",
		fmt.Sprintf("%s  %s of %s, %v", bar(float64(l.at)/float64(length)), clock(l.at), clock(length), l.phase),
		fmt.Sprintf("%s  %d of %d slots", bar(float64(l.slots)/float64(slots)), l.slots, slots),
		"",
		head,
	}
	for _, r := range l.last {
		frame = append(frame, l.paint(r))
	}
	if len(l.last) > 0 {
		frame = append(frame, "", "good answers, second by second")
	}
	for _, r := range l.last {
		frame = append(frame, fmt.Sprintf("%-13s %s", r.service, string(l.good[r.service])))
	}
	frame = append(frame, "")
	return slices.Concat(frame, l.told[max(0, len(l.told)-frameNotes):])
}

// bar is a bar of which the share full is filled.
func bar(full float64) string {
	const width = 40
	n := int(max(0, min(full, 1)) * width)
	return strings.Repeat("█", n) + strings.Repeat("░", width-n)
}

// paint colours the state of a row.
func (l *live) paint(r row) string {
	code := map[string]int{"closed": 32, "half_open": 33, "open": 31}[r.state]
	if !l.color || code == 0 {
		return r.String()
	}
	state := fmt.Sprintf("%-9s", r.state)
	return strings.Replace(r.String(), state, fmt.Sprintf("\x1b[%dm%s\x1b[m", code, state), 1)
}
