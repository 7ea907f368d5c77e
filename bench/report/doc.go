// Command report measures several rounds of all benchmarks and writes what it
// found to RESULTS.md: the machine, the floors, a table for each benchmark, and
// how the figures stand to the bars that the project has set itself. Run it in
// the folder above:
//
//	GOWORK=off go run ./report
//
// Each round is a run of its own, so that one state of the machine does not fall
// on one benchmark alone; each figure is the median of the rounds.
package main
