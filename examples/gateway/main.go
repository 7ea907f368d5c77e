package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// errUsage is returned when the command line was wrong, and this has been said.
var errUsage = errors.New("usage")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

// run is main without the process around it.
func run(ctx context.Context, args []string, stdout *os.File, stderr io.Writer) error {
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	flags.SetOutput(stderr)
	total := flags.Duration("duration", fullLength, "length of both acts together, at least "+shortest.String()+";\nphases, slots, window and open time scale with it")
	listen := flags.String("listen", "127.0.0.1:0", "`address` of the gateway")
	file := flags.String("config", "", "`file` for a gateway to real upstreams, without the demonstration;\nexamples/gateway/gateway.json is one")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return errUsage
	}
	plan, err := newPlan(*total)
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case given["config"] && len(given) > 1:
		err = errors.New("-duration and -listen are for the demonstration: with -config, the file has the address")
	}
	if err != nil {
		fmt.Fprintln(stderr, "gateway:", err)
		return errUsage
	}
	if given["config"] {
		return operate(ctx, *file, stderr)
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	out := &output{to: stdout, broken: cancel}
	return demonstrate(ctx, plan, sockets(), *listen, out, newScreen(out, isTerminal(stdout)))
}

// operate is the gateway for real upstreams, until ctx is done.
func operate(ctx context.Context, file string, stderr io.Writer) error {
	c, err := loadConfig(file)
	if err != nil {
		return err
	}
	d, err := newDaemon(c, slog.New(slog.NewTextHandler(stderr, nil)))
	if err != nil {
		return err
	}
	if err := d.listen(); err != nil {
		return err
	}
	return d.serve(ctx)
}

// An output ends the demonstration when nobody can see it any more.
type output struct {
	to     io.Writer
	broken context.CancelCauseFunc
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.to.Write(b)
	if err != nil {
		o.broken(err)
	}
	return n, err
}
