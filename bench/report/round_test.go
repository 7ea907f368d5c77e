package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParse_ReadsResultsAndPassesOverTheRest(t *testing.T) {
	r, err := parse(strings.NewReader(`goos: linux
goarch: amd64
pkg: github.com/sluicego/sluice/bench
cpu: Some Processor @ 2.10GHz
BenchmarkFloor/clock/serial-2         	 1016878	        23.63 ns/op	       0 B/op	       0 allocs/op
BenchmarkCall/sluice-chain3/parallel-2	 1602604	        21 ns/op	       123.5 pingpong-ns	      24 B/op	       1 allocs/op
BenchmarkCall
BenchmarkIdleBreakers/sluice-2        	       1	         6.5e+00 MiB	         0 goroutines
--- BENCH: BenchmarkCall/sluice-chain3/parallel-2
    some_test.go:1: Benchmarks may log
PASS
ok  	github.com/sluicego/sluice/bench	1.773s
`))
	require.NoError(t, err)
	assert.Equal(t, round{
		cpu:   "Some Processor @ 2.10GHz",
		names: []string{"Floor/clock/serial", "Call/sluice-chain3/parallel", "IdleBreakers/sluice"},
		values: map[string]map[string]float64{
			"Floor/clock/serial":          {"ns/op": 23.63, "B/op": 0, "allocs/op": 0},
			"Call/sluice-chain3/parallel": {"ns/op": 21, "pingpong-ns": 123.5, "B/op": 24, "allocs/op": 1},
			"IdleBreakers/sluice":         {"MiB": 6.5, "goroutines": 0},
		},
	}, r)
}

func TestParse_RefusesWhatItCannotRead(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"BenchmarkA-2 10 23.63 ns/op 5", "a value without a unit"},
		{"BenchmarkA-2 10 fast ns/op", `parsing "fast"`},
		{"BenchmarkA-2 10 1 ns/op\nBenchmarkA-2 10 2 ns/op", "second of its name"},
	} {
		_, err := parse(strings.NewReader(c.in))
		assert.ErrorContains(t, err, c.want)
	}
}

// measuredAs is one round in which the benchmarks took so many ns.
func measuredAs(ns map[string]float64) round {
	r := round{values: map[string]map[string]float64{}}
	for name, v := range ns {
		r.names, r.values[name] = append(r.names, name), map[string]float64{"ns/op": v}
	}
	return r
}

func TestSpread_MedianAndRange(t *testing.T) {
	f := of("A", "ns/op")
	for _, c := range []struct {
		ns        []float64
		word, all string
	}{
		{nil, "–", "–"},
		{[]float64{31}, "31", "31"},
		{[]float64{31, 31}, "31", "31"},
		{[]float64{40.25, 31, 32.5}, "32.5", "32.5 (31–40.2)"},
		{[]float64{9, 1, 2, 3}, "2.50", "2.50 (1–9)"},
	} {
		var rs rounds
		for _, ns := range c.ns {
			rs = append(rs, measuredAs(map[string]float64{"A": ns}))
		}
		s := rs.spread(f)
		assert.Equal(t, c.word, s.String())
		assert.Equal(t, c.all, s.Range())
	}
}

// Figures of two benchmarks are compared within each round, so that a machine
// that slows down from one to the next changes no ratio.
func TestFigure_ComparesWithinARound(t *testing.T) {
	rs := rounds{
		measuredAs(map[string]float64{"A": 30, "B": 60}),
		measuredAs(map[string]float64{"A": 50, "B": 100}),
		measuredAs(map[string]float64{"A": 80}),
	}
	a, b := of("A", "ns/op"), of("B", "ns/op")
	assert.Equal(t, spread{2, 2}, rs.spread(b.over(a)))
	assert.Equal(t, spread{0, 0}, rs.spread(b.less(2, a)))
	assert.Empty(t, rs.spread(of("A", "allocs/op")))
}
