// The canary example releases two new versions of a service, on loopback and with real
// HTTP: a gateway in front of the instances of each version, and virtual users who call
// it, each with an id. The first release is good and goes up its ladder to all users. The
// second fails for every eighth user, and is rolled back by itself before many have seen
// it. At each step it tells who has moved, and how many users each version really serves.
//
//	go run ./examples/canary
//	go run ./examples/canary -duration 5s -users 2000
//
// It exits with 0 if all it claims was so: nobody moved who had not to, users stayed where
// they were, the bad release was rolled back, and nobody reached it any more.
//
// The part worth copying is gateway.go: how a request gets its version and its instance,
// and what the judge is told. A service would call Controller.Run instead of Tick, and
// hold each step for minutes; here a step is one call of each user, so that it comes out
// the same wherever it runs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

// errUsage is returned when the command line was wrong, and this has been said.
var errUsage = errors.New("usage")

const (
	fullLength  = 18 * time.Second
	mostUsers   = 1_000_000
	fewestUsers = 1000 // of whom ten see the first step
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "canary:", err)
		os.Exit(1)
	}
}

// run is main without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("canary", flag.ContinueOnError)
	flags.SetOutput(stderr)
	length := flags.Duration("duration", fullLength, "about how long all of it takes; 0 is as fast as it can")
	users := flags.Int("users", 4000, fmt.Sprintf("how many virtual users there are, %d to %d", fewestUsers, mostUsers))
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return errUsage
	}
	var err error
	switch {
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case *length < 0 || *length > time.Hour:
		err = fmt.Errorf("-duration %v is not in [0, %v]", *length, time.Hour)
	case *users < fewestUsers || *users > mostUsers:
		err = fmt.Errorf("-users %d is not in [%d, %d]", *users, fewestUsers, mostUsers)
	}
	if err != nil {
		fmt.Fprintln(stderr, "canary:", err)
		return errUsage
	}
	return play(ctx, *length, *users, stdout)
}
