package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// A table is what one experiment saw.
type table struct {
	columns []string
	rows    []row
}

// A row is told by a test or one of its parts.
type row struct {
	part  int // when that was begun, which is the order of rows; parts may run at once
	cells []string
}

// run runs the experiments, and returns what they saw by the name of the test.
func run(ctx context.Context, root string, all []experiment) (map[string]*table, error) {
	args := []string{"test", "-json", "-count=1", "-run", `^Test(\w+_)?E[0-9]+_`}
	for _, e := range all {
		if folder := "./" + e.folder; !slices.Contains(args, folder) {
			args = append(args, folder)
		}
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, failed := cmd.Output()
	tables, err := parse(bytes.NewReader(out))
	return tables, cmp.Or(err, failed)
}

// An event is a line of go test -json.
type event struct{ Action, Test, Key, Value, Output string }

// parse reads what go test -json writes. If a test has failed, the error is what it
// has said.
func parse(r io.Reader) (map[string]*table, error) {
	tables := map[string]*table{}
	begun := map[string]int{}
	said := map[string]string{}
	var errs []error
	for d := json.NewDecoder(r); ; {
		var e event
		if err := d.Decode(&e); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		test, _, part := strings.Cut(e.Test, "/")
		switch e.Action {
		case "run":
			begun[e.Test] = len(begun)
			if !part {
				tables[test] = &table{}
			}
		case "output":
			said[e.Test] += e.Output
		case "fail":
			if text := said[e.Test]; text != "" {
				errs = append(errs, errors.New(strings.TrimSpace(text)))
			}
		case "attr":
			cells := strings.Split(e.Value, " | ")
			switch t := tables[test]; {
			case e.Key == "row":
				t.rows = append(t.rows, row{begun[e.Test], cells})
			case e.Key == "columns" && t.columns != nil:
				errs = append(errs, fmt.Errorf("%s tells its columns twice", test))
			case e.Key == "columns":
				t.columns = cells
			}
		}
	}
	for _, t := range tables {
		slices.SortStableFunc(t.rows, func(a, b row) int { return cmp.Compare(a.part, b.part) })
	}
	return tables, errors.Join(errs...)
}
