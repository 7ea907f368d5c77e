package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
)

const intro = `# Experiments

Written by ` + "`make experiments`" + `; do not edit.

Each experiment simulates clients, servers and their queues in virtual time and drives the real code with them. It is a test that runs with all others: its figures are those of fixed random numbers, the same each time, and bands in the test hold them to what is said here. The other rules and libraries named are their published formulas written anew in these tests, and not their code.
`

// page is the page: each experiment with its claim, its table and where it is.
func page(all []experiment, tables map[string]*table) ([]byte, error) {
	var out bytes.Buffer
	var errs []error
	out.WriteString(intro)
	for i, e := range all {
		alone := (i == 0 || all[i-1].number != e.number) && (i+1 == len(all) || all[i+1].number != e.number)
		switch {
		case alone:
			fmt.Fprintf(&out, "\n## E%d: %s\n", e.number, e.heading())
		case i == 0 || all[i-1].number != e.number:
			fmt.Fprintf(&out, "\n## E%d\n", e.number)
			fallthrough
		default:
			fmt.Fprintf(&out, "\n### %s\n", e.heading())
		}
		fmt.Fprintf(&out, "\n%s\n\n", paragraphs(e.claim))
		t := tables[e.test]
		if err := t.check(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.test, err))
			continue
		}
		t.write(&out)
		fmt.Fprintf(&out, "\n`%s` in [%s](../%s)\n", e.test, e.path(), e.path())
	}
	return out.Bytes(), errors.Join(errs...)
}

// heading names what the experiment is about.
func (e experiment) heading() string {
	if e.about == "" {
		return e.title
	}
	return e.about + ": " + strings.ToLower(e.title[:1]) + e.title[1:]
}

func (e experiment) path() string { return e.folder + "/" + e.file }

// paragraphs is a comment without its line breaks, but for blank lines, and with a
// capital letter.
func paragraphs(comment string) string {
	all := strings.Split(comment, "\n\n")
	for i, p := range all {
		all[i] = strings.Join(strings.Fields(p), " ")
	}
	text := strings.Join(all, "\n\n")
	return strings.ToUpper(text[:1]) + text[1:]
}

// check reports what is wrong with a table.
func (t *table) check() error {
	switch {
	case t == nil:
		return errors.New("was not run")
	case len(t.columns) == 0:
		return errors.New("tells no columns")
	case len(t.rows) == 0:
		return errors.New("tells no row")
	}
	for _, r := range t.rows {
		if len(r.cells) != len(t.columns) {
			return fmt.Errorf("%d cells in %d columns: %q", len(r.cells), len(t.columns), r.cells)
		}
	}
	return nil
}

// write writes a table in Markdown. Numbers are easier to compare when they are on the
// right, so that is where all columns but the first are.
func (t *table) write(out *bytes.Buffer) {
	fmt.Fprintf(out, "| %s |\n|---|%s\n", strings.Join(t.columns, " | "), strings.Repeat("---:|", len(t.columns)-1))
	for _, r := range t.rows {
		fmt.Fprintf(out, "| %s |\n", strings.Join(r.cells, " | "))
	}
}
