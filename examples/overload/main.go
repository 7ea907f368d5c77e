// The overload example burns all cores beside an HTTP server that gets more calls than it
// can serve, once with an adaptive.System in front of it and once without, and shows how
// many answers came within their deadline. The server is a process of its own, on
// loopback; everything ends by itself.
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

const (
	calmly = 0.5 // of the capacity come, before and after the burst
	tooFar = 1.5 // in it
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	if len(os.Args) > 1 && os.Args[1] == "serve" {
		runtime.GOMAXPROCS(cores())
		err = serve(ctx, os.Args[2:], os.Stdin, os.Stdout)
	} else {
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
	capacity, err := t.capacity(ctx, rounds)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d cores, %v of work for a call: %.0f answers a second are the capacity.\n", cores(), t.work, capacity)
	fmt.Fprintf(out, "Calls come at %.0f %% of it, and at %.0f %% for %v, while something else burns the cores too.\n\n", 100*calmly, 100*tooFar, t.burst)
	for _, k := range kinds {
		fmt.Fprintf(out, "%8s: %s\n", k.name, k.about)
	}
	var good [len(kinds)][]int64
	for i, k := range kinds {
		if good[i], err = t.against(ctx, k, rounds, capacity); err != nil {
			return err
		}
	}
	t.report(out, capacity, good)
	return nil
}

// parts are what the report has a line for.
func (t trial) parts() []part {
	parts := []part{{"before", t.calm, calmly}}
	for rest := t.burst; rest > 0; rest -= time.Second {
		parts = append(parts, part{"burnt", min(rest, time.Second), tooFar})
	}
	for rest := t.after; rest > 0; rest -= time.Second {
		parts = append(parts, part{"after", min(rest, time.Second), calmly})
	}
	return parts
}

// report writes a line for each part, and one for all in which the cores were burnt.
func (t trial) report(out io.Writer, capacity float64, good [len(kinds)][]int64) {
	fmt.Fprintf(out, "\n%% of the capacity     calls   answered within %v:", t.deadline)
	for _, k := range kinds {
		fmt.Fprintf(out, "%8s", k.name)
	}
	fmt.Fprintln(out)
	line := func(name, when string, load float64, long time.Duration, answers [len(kinds)]int64) {
		fmt.Fprintf(out, "%-10s %7s s %5.0f %24s", name, when, 100*load, "")
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
			if p.load == tooFar {
				burnt[k] += answers[k]
			}
		}
		line(p.name, fmt.Sprintf("%v–%v", begin.Seconds(), (begin+p.long).Seconds()), p.load, p.long, answers)
		begin += p.long
	}
	line("burnt, all", fmt.Sprint(t.burst.Seconds()), tooFar, t.burst, burnt)
}
