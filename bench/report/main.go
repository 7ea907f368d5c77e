package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// procs is the -cpu of every run: the bars for two goroutines are for two.
const procs = "2"

// plan is what to measure, from the flags.
type plan struct {
	count     int
	benchtime string
	bench     string
	out       string
}

func main() {
	var p plan
	flag.IntVar(&p.count, "count", 5, "how many rounds to measure")
	flag.StringVar(&p.benchtime, "benchtime", "200ms", "how long each benchmark runs in a round")
	flag.StringVar(&p.bench, "bench", ".", "which benchmarks to run, as in go test; bars need Floor")
	flag.StringVar(&p.out, "o", "RESULTS.md", `the file to write, "-" for standard output`)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := p.run(ctx, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
}

// run measures and writes. The file is left as it was if anything goes wrong.
func (p plan) run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("argument %q is not wanted: there are only flags", args[0])
	}
	if p.count < 1 {
		return fmt.Errorf("-count %d is not at least 1", p.count)
	}
	where := host(ctx, p)
	var all rounds
	for i := range p.count {
		begin := time.Now()
		r, err := p.measure(ctx)
		if err != nil {
			return err
		}
		if where.CPU == "" {
			where.CPU = r.cpu
		}
		all = append(all, r)
		fmt.Fprintf(os.Stderr, "round %d of %d: %d benchmarks in %v\n", i+1, p.count, len(r.names), time.Since(begin).Round(time.Second))
	}
	var text bytes.Buffer
	if err := write(&text, where, all); err != nil {
		return err
	}
	if p.out == "-" {
		_, err := io.Copy(os.Stdout, &text)
		return err
	}
	return os.WriteFile(p.out, text.Bytes(), 0o644)
}

// measure runs every benchmark once.
func (p plan) measure(ctx context.Context) (round, error) {
	test := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", p.bench, "-benchtime", p.benchtime,
		"-cpu", procs, "-count", "1", "-timeout", "1h", "github.com/sluicego/sluice/bench")
	test.Env = append(os.Environ(), "GOWORK=off")
	test.Stderr = os.Stderr
	out, err := test.Output()
	if err != nil {
		os.Stderr.Write(out)
		return round{}, fmt.Errorf("%v: %w", test, err)
	}
	r, err := parse(bytes.NewReader(out))
	if err == nil && len(r.names) == 0 {
		err = errors.New("no benchmark matches -bench " + p.bench)
	}
	return r, err
}
