package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A round is what one run of go test -bench measured. A benchmark is named
// without its "Benchmark" and without the number of processors.
type round struct {
	cpu    string   // the processor as go test names it
	names  []string // in the order of the run
	values map[string]map[string]float64
}

// parse reads the output of go test -bench. Lines that are no result are passed
// over, as they are by everybody who reads this format; a result that cannot be
// read is an error.
func parse(in io.Reader) (round, error) {
	r := round{values: map[string]map[string]float64{}}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if cpu, ok := strings.CutPrefix(line, "cpu: "); ok {
			r.cpu = cpu
		}
		fields := strings.Fields(line)
		if !strings.HasPrefix(line, "Benchmark") || len(fields) < 4 {
			continue
		}
		if len(fields)%2 != 0 {
			return round{}, fmt.Errorf("result %q has a value without a unit", line)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(fields[0], "Benchmark"), "-"+procs)
		units := map[string]float64{}
		for i := 2; i < len(fields); i += 2 {
			v, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return round{}, fmt.Errorf("result %q: %w", line, err)
			}
			units[fields[i+1]] = v
		}
		if r.values[name] != nil {
			return round{}, fmt.Errorf("result %q is the second of its name in one round", line)
		}
		r.names, r.values[name] = append(r.names, name), units
	}
	return r, lines.Err()
}

// A figure works something out of one round, if the round has it.
type figure func(r round) (float64, bool)

// of is what a benchmark measured in a unit.
func of(name, unit string) figure {
	return func(r round) (float64, bool) {
		v, ok := r.values[name][unit]
		return v, ok
	}
}

// over is f divided by g, both of one round.
func (f figure) over(g figure) figure {
	return func(r round) (float64, bool) {
		a, oka := f(r)
		b, okb := g(r)
		return a / b, oka && okb && b != 0
	}
}

// less is f − k times g, both of one round.
func (f figure) less(k float64, g figure) figure {
	return func(r round) (float64, bool) {
		a, oka := f(r)
		b, okb := g(r)
		return a - k*b, oka && okb
	}
}

// rounds are all that was measured.
type rounds []round

// names are the benchmarks of all rounds, in the order of the run.
func (rs rounds) names() []string {
	var names []string
	for _, r := range rs {
		for _, name := range r.names {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// A spread is one figure in all rounds that have it, sorted.
type spread []float64

func (rs rounds) spread(f figure) spread {
	var s spread
	for _, r := range rs {
		if v, ok := f(r); ok {
			s = append(s, v)
		}
	}
	slices.Sort(s)
	return s
}

// median is the middle one, or the mean of the two in the middle.
func (s spread) median() float64 {
	n := len(s)
	return (s[(n-1)/2] + s[n/2]) / 2
}

// String is the median, or a dash.
func (s spread) String() string {
	if len(s) == 0 {
		return "–"
	}
	return number(s.median())
}

// Range is the median with the least and the most, if they differ.
func (s spread) Range() string {
	if len(s) == 0 || number(s[0]) == number(s[len(s)-1]) {
		return s.String()
	}
	return fmt.Sprintf("%v (%s–%s)", s, number(s[0]), number(s[len(s)-1]))
}

// number writes v with three digits, and whole numbers as such.
func number(v float64) string {
	switch {
	case v == float64(int64(v)), v >= 100, v <= -100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10, v <= -10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
