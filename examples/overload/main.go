// The overload example burns all cores beside an HTTP server that gets more calls than it
// can serve, with an adaptive.System in front of it and without, and shows how many
// answers came within their deadline. The server and who burns the cores are processes of
// their own, on loopback; everything ends by itself.
//
//	go run ./examples/overload
//
// What it shows depends on this machine, and on what else runs on it: the capacity is
// what it was a few seconds before.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"
)

// A trial is what is done to each server.
type trial struct {
	calm, burst, after time.Duration // how long each part goes on
	work               time.Duration // what a call needs of one core
	deadline           time.Duration // of each call
}

// load is what comes all the time, of the capacity that the server has when nobody burns
// the cores. When somebody does, that is half as much again as it can serve.
const load = 0.75

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	switch {
	case len(os.Args) > 1 && os.Args[1] == "serve":
		runtime.GOMAXPROCS(cores())
		err = serve(ctx, os.Args[2:], os.Stdin, os.Stdout)
	case len(os.Args) > 1 && os.Args[1] == "burn":
		burn(os.Stdin, os.Stdout)
	default:
		burst := flag.Duration("burst", 3*time.Second, "how long the cores are burnt, up to a minute")
		flag.Parse()
		t := trial{calm: time.Second, burst: min(*burst, time.Minute), after: 3 * time.Second, work: 5 * time.Millisecond, deadline: 500 * time.Millisecond}
		err = t.run(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "overload:", err)
		os.Exit(1)
	}
}

// run measures the capacity, tries both servers and reports.
func (t trial) run(ctx context.Context, out io.Writer) error {
	rounds := calibrate(t.work)
	capacity, err := t.capacity(ctx, rounds, false)
	if err != nil {
		return err
	}
	burnt, err := t.capacity(ctx, rounds, true)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d cores, %v of work for a call: %.0f answers a second are the capacity, and %.0f while\nanother process burns the cores.\n", cores(), t.work, capacity, burnt)
	fmt.Fprintf(out, "Calls come at %.0f a second all the time. The cores burn for %v.\n\n", load*capacity, t.burst)
	for _, k := range kinds {
		fmt.Fprintf(out, "%8s: %s\n", k.name, k.about)
	}
	var good [len(kinds)][]int64
	for i, k := range kinds {
		if good[i], err = t.against(ctx, k, rounds, capacity); err != nil {
			return err
		}
	}
	t.report(out, capacity, burnt, good)
	return nil
}

// parts are what the report has a line for.
func (t trial) parts() []part {
	parts := []part{{"before", t.calm, false}}
	for rest := t.burst; rest > 0; rest -= time.Second {
		parts = append(parts, part{"burnt", min(rest, time.Second), true})
	}
	for rest := t.after; rest > 0; rest -= time.Second {
		parts = append(parts, part{"after", min(rest, time.Second), false})
	}
	return parts
}

// report writes a line for each part, and one for all in which the cores were burnt.
func (t trial) report(out io.Writer, calm, burning float64, good [len(kinds)][]int64) {
	fmt.Fprintf(out, "\n%% of what can be      calls   answered within %v:", t.deadline)
	for _, k := range kinds {
		fmt.Fprintf(out, "%8s", k.name)
	}
	fmt.Fprintln(out)
	line := func(name, when string, burnt bool, long time.Duration, answers [len(kinds)]int64) {
		capacity := calm
		if burnt {
			capacity = burning
		}
		fmt.Fprintf(out, "%-10s %7s s %5.0f %24s", name, when, 100*load*calm/capacity, "")
		for _, n := range answers {
			fmt.Fprintf(out, "%8.0f", 100*float64(n)/(capacity*long.Seconds()))
		}
		fmt.Fprintln(out)
	}
	var burnt [len(kinds)]int64
	var begin time.Duration
	for i, p := range t.parts() {
		var answers [len(kinds)]int64
		for k := range kinds {
			answers[k] = good[k][i]
			if p.burnt {
				burnt[k] += answers[k]
			}
		}
		line(p.name, fmt.Sprintf("%v–%v", begin.Seconds(), (begin+p.long).Seconds()), p.burnt, p.long, answers)
		begin += p.long
	}
	line("burnt, all", fmt.Sprint(t.burst.Seconds()), true, t.burst, burnt)
}
