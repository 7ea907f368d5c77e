package main

import (
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/template"
)

//go:embed conformance.md.tmpl
var layout string

// page is all that the layout shows.
type page struct {
	Go     string
	Repeat int
	Tables []table
}

// table is one of the two: of clients, or of servers.
type table struct {
	Title   string
	Columns []column
	Rows    []row
}

// column is a library, with all that it failed.
type column struct {
	Head, Version, Setup string
	Passed, Failed, None int
	Failures             []note
}

// row is a rule and how it went in each column.
type row struct {
	Check, Rule string
	Cells       []string
}

// note tells of one rule that was broken.
type note struct{ Check, Seen string }

// write puts what was found on paper. found is in the order of the libraries.
func write(w io.Writer, repeat int, all []library, found [][]result) error {
	t, err := template.New("conformance").Parse(layout)
	if err != nil {
		return err
	}
	p := page{Go: runtime.Version(), Repeat: repeat}
	clients, servers := table{Title: "Clients"}, table{Title: "Servers"}
	for i, l := range all {
		if l.client != nil {
			clients.add(l, found[i])
		} else {
			servers.add(l, found[i])
		}
	}
	p.Tables = []table{clients, servers}
	return t.Execute(w, p)
}

// add puts a column at the right.
func (t *table) add(l library, results []result) {
	c := column{Head: head(l.name), Version: version(l.module), Setup: l.setup}
	for i := 0; i < len(results); {
		over := results[i : i+1] // all protocols of one check
		for i++; i < len(results) && results[i].Check == over[0].Check; i++ {
			over = results[i-len(over) : i+1]
		}
		cell, seen := judge(l, over)
		switch {
		case cell == string(passed):
			c.Passed++
		case cell == string(inapplicable):
			c.None++
		default:
			c.Failed++
			c.Failures = append(c.Failures, note{over[0].Check, seen})
		}
		t.put(over[0], len(t.Columns), cell)
	}
	t.Columns = append(t.Columns, c)
}

// put fills in a cell.
func (t *table) put(of result, at int, cell string) {
	i := slices.IndexFunc(t.Rows, func(r row) bool { return r.Check == of.Check })
	if i < 0 {
		i = len(t.Rows)
		t.Rows = append(t.Rows, row{Check: of.Check, Rule: of.Rule})
	}
	for len(t.Rows[i].Cells) < at {
		t.Rows[i].Cells = append(t.Rows[i].Cells, "")
	}
	t.Rows[i].Cells = append(t.Rows[i].Cells, cell)
}

// judge puts the results of one check over its protocols together: what stands in the
// cell, and what was seen.
func judge(l library, over []result) (cell, seen string) {
	var where []string
	for _, r := range over {
		switch {
		case r.Verdict == failed:
			where = append(where, r.Protocol)
			if seen == "" {
				seen = brief(r.Seen)
			}
		case r.Verdict == inapplicable && l.breaker && slices.Contains(needsToTrip, r.Check):
			return string(failed), "it has a breaker, and " + brief(reason(r.Seen))
		}
	}
	switch {
	case len(where) == 0:
		return string(over[0].Verdict), ""
	case len(where) < len(over):
		return fmt.Sprintf("%s (%s)", failed, strings.Join(where, ", ")), seen
	}
	return string(failed), seen
}

// needsToTrip are the checks that fail if a breaker does not trip at all. The other
// ones then have nothing to look at.
var needsToTrip = []string{"FailingStatusesTrip", "FailingHandlerTrips"}

// reason is what stands behind the last colon.
func reason(text string) string {
	return text[strings.LastIndex(text, ": ")+1:]
}

// brief is the first line, and not too much of it.
func brief(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(line)
	line = regexp.MustCompile(`127\.0\.0\.1:\d+`).ReplaceAllString(line, "127.0.0.1") // ports change from run to run
	const most = 160
	if letters := []rune(line); len(letters) > most {
		line = string(letters[:most]) + "…"
	}
	return line
}

// head is a name as the head of a column: without what all of its table have in common.
func head(name string) string {
	name = strings.Replace(name, " client", "", 1)
	return strings.Replace(name, " server", "", 1)
}

// version is the version of a module in this program, or "".
func version(module string) string {
	if module == sluiceModule {
		return "this one"
	}
	info, ok := debug.ReadBuildInfo()
	if !ok || module == "" {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Path + " " + dep.Version
		}
	}
	return module
}
