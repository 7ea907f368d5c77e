// Command conformance runs the checks of httpguard/guardtest on this project's guards
// and on other libraries, and writes what it found to docs/conformance.md. Run it in
// the folder above:
//
//	GOWORK=off go run ./conformance
//
// Each library is examined in a process of its own, because one that breaks a rule may
// leave goroutines behind that hang, or end the process; that is then its result.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"
)

// plan is what to do, from the flags.
type plan struct {
	out      string
	patience time.Duration
	repeat   int
	examine  string // the process is one that examines this library
	from     int    // beginning with this check
}

func main() {
	var p plan
	flag.StringVar(&p.out, "o", "../docs/conformance.md", `the file to write, "-" for standard output`)
	flag.DurationVar(&p.patience, "patience", 10*time.Second, "how long a check may take before it counts as hanging")
	flag.IntVar(&p.repeat, "repeat", 10, "how many times a check has to pass")
	flag.StringVar(&p.examine, "examine", "", "examine only this library, and write lines of JSON to standard output")
	flag.IntVar(&p.from, "from", 0, "with -examine, the number of the check to begin with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := p.run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// run examines and writes. The file is left as it was if anything goes wrong.
func (p plan) run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("argument %q is not wanted: there are only flags", args[0])
	}
	if p.patience <= 0 {
		return fmt.Errorf("-patience %v is not positive", p.patience)
	}
	if p.repeat < 1 {
		return fmt.Errorf("-repeat %d is not at least 1", p.repeat)
	}
	if p.examine != "" {
		return p.examineHere(ctx, os.Stdout)
	}
	all := append(clients(), servers()...)
	found := make([][]result, len(all))
	errs := make([]error, len(all))
	var done sync.WaitGroup
	for i, l := range all { // all at once: what takes long is waiting
		done.Go(func() { found[i], errs[i] = p.examineApart(ctx, l) })
	}
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var text bytes.Buffer
	if err := write(&text, p.repeat, all, found); err != nil {
		return err
	}
	if p.out == "-" {
		_, err := io.Copy(os.Stdout, &text)
		return err
	}
	return os.WriteFile(p.out, text.Bytes(), 0o644)
}
