package metrics

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WriteText writes one line per sample for people to read, in columns, in one
// Write: name{label="value"}, the value, its unit. Integers are written in full
// and other values to six digits; whatever cannot be printed in a label value is
// escaped as in Go. Faults of Sources follow, each behind a #. It returns the
// error of w.
func (s *Set) WriteText(w io.Writer) error {
	type line struct{ series, value, unit string }
	var lines []line
	var faults bytes.Buffer
	left, right := 0, 0 // the widths of the columns
	s.collect(func(sample Sample) bool {
		l := line{series(sample), number(sample.Value), sample.Desc.Unit}
		left = max(left, utf8.RuneCountInString(l.series))
		right = max(right, len(l.value))
		lines = append(lines, l)
		return true
	}, func(name string, fault any) {
		fmt.Fprintf(&faults, "# %q: %s\n", name, clean(fmt.Sprint(fault)))
	})
	var out bytes.Buffer
	for _, l := range lines {
		text := fmt.Sprintf("%-*s  %*s %s", left, l.series, right, l.value, l.unit)
		out.WriteString(strings.TrimRight(text, " "))
		out.WriteByte('\n')
	}
	out.Write(faults.Bytes())
	_, err := w.Write(out.Bytes())
	return err
}

// series is a sample's name and labels.
func series(s Sample) string {
	if len(s.Labels) == 0 {
		return s.Desc.Name
	}
	var out strings.Builder
	out.WriteString(s.Desc.Name)
	sep := byte('{')
	for i, label := range s.Desc.Labels {
		out.WriteByte(sep)
		out.WriteString(label)
		out.WriteByte('=')
		out.WriteString(strconv.Quote(s.Labels[i]))
		sep = ','
	}
	out.WriteByte('}')
	return out.String()
}

// number writes every integer that a float64 holds exactly in full.
func number(v float64) string {
	if v == math.Trunc(v) && math.Abs(v) <= 1<<53 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 6, 64)
}

// clean escapes what could break a line or steer a terminal.
func clean(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}
