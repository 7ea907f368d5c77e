package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/sluicego/sluice/httpguard/guardtest"
)

// result is how one check went.
type result struct {
	Check, Protocol, Rule string
	Verdict               verdict
	Seen                  string // what went wrong, or why the check does not apply
}

type verdict string

const (
	begun        verdict = "begun" // and not ended: all that is left of a process that ended
	passed       verdict = "pass"
	failed       verdict = "fail"
	inapplicable verdict = "–"
)

// examineHere runs the checks of one library and writes two results of each: that it
// has begun, and how it ended.
func (p plan) examineHere(ctx context.Context, out io.Writer) error {
	for _, l := range append(clients(), servers()...) {
		switch {
		case l.name != p.examine:
		case l.client != nil:
			return runAll(ctx, p, guardtest.TransportChecks(), l.client, out)
		default:
			return runAll(ctx, p, guardtest.MiddlewareChecks(), l.server, out)
		}
	}
	return fmt.Errorf("-examine %q is no library", p.examine)
}

func runAll[T any](ctx context.Context, p plan, checks []guardtest.Check[T], wrap func(T) T, out io.Writer) error {
	if p.from < 0 || p.from > len(checks) {
		return fmt.Errorf("-from %d is not in [0, %d]", p.from, len(checks))
	}
	lines := json.NewEncoder(out)
	for _, c := range checks[p.from:] {
		r := result{c.Name, c.Protocol, c.Rule, begun, ""}
		if err := lines.Encode(r); err != nil {
			return err
		}
		r.Verdict, r.Seen = runOne(ctx, p, c, wrap)
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// runOne runs a check until it does not pass, and often enough for one that depends on
// luck to show it.
func runOne[T any](ctx context.Context, p plan, c guardtest.Check[T], wrap func(T) T) (verdict, string) {
	for i := range p.repeat {
		err := within(ctx, p.patience, func(ctx context.Context) error { return c.Run(ctx, wrap) })
		var failure *guardtest.Failure
		switch {
		case err == nil:
		case errors.As(err, &failure):
			seen := strings.Join(failure.Seen, "\n")
			if i > 0 {
				seen = "not always: " + seen
			}
			return failed, seen
		default:
			return inapplicable, err.Error()
		}
	}
	return passed, ""
}

func within(ctx context.Context, d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return f(ctx)
}

// examineApart runs the checks of one library in processes of their own: in one, if
// none of them ends it.
func (p plan) examineApart(ctx context.Context, l library) ([]result, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var all []result
	for {
		examiner := exec.CommandContext(ctx, self, "-examine", l.name, "-patience", p.patience.String(), "-repeat", strconv.Itoa(p.repeat), "-from", strconv.Itoa(len(all)))
		var said bytes.Buffer
		examiner.Stderr = &said
		out, ended := examiner.Output()
		results, err := parse(out)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", l.name, err)
		}
		all = append(all, results...)
		last := len(results) - 1
		switch {
		case ended == nil && (last < 0 || results[last].Verdict != begun):
			return all, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case last < 0 || results[last].Verdict != begun:
			return nil, fmt.Errorf("%s: %w: %s", l.name, ended, said.Bytes())
		}
		broke := &all[len(all)-1]
		broke.Verdict, broke.Seen = failed, "it ends the process: "+lastWords(said.String(), ended)
	}
}

// lastWords is what a process said of the panic that ended it.
func lastWords(said string, ended error) string {
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, "panic:") || strings.HasPrefix(line, "fatal error:") {
			return strings.TrimSpace(line)
		}
	}
	return fmt.Sprint(ended)
}

// parse reads the results of a process. One that has begun and not ended can only be
// the last.
func parse(out []byte) ([]result, error) {
	var results []result
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, fmt.Errorf("result %q: %w", lines.Text(), err)
		}
		if n := len(results); n > 0 && results[n-1].Verdict == begun {
			results[n-1] = r
		} else {
			results = append(results, r)
		}
	}
	return results, lines.Err()
}
