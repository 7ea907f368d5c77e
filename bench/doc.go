// Package bench measures this project beside other libraries that do the same
// job, in one run on one machine. It holds benchmarks only; nobody imports it.
//
// It is a module of its own and no part of go.work, because the peers bring
// hundreds of packages that no user should wait for. Run it with GOWORK=off:
//
//	GOWORK=off go test -run '^$' -bench Breaker -cpu 2
//	GOWORK=off go run ./report
//
// The second command measures several rounds and writes RESULTS.md, which
// judges them. "make bench" at the root is the same.
//
// Another command, "GOWORK=off go run ./conformance", measures no time: it examines
// by which rules of net/http ours and other wrappers go, and writes
// docs/conformance.md.
//
// # How it is measured
//
// Each benchmark has a serial and a parallel half: one goroutine, and as many as
// -cpu says (two in RESULTS.md) on one shared object. What is measured stands in
// the loop itself and not behind a function value, whose call would add 1 to 2 ns
// to figures of 30.
//
// Most of each figure is the reading of the clock, and two goroutines wait for
// each other's cache lines. So Floor measures those by themselves, and every
// parallel benchmark reports pingpong-ns beside its own figure: the time that one
// cache line took from one core to the other and back, just before and just
// after. Virtual machines are moved about by their host, and then that time
// changes by a factor of four within a minute while serial figures stay as they
// are. Compare parallel figures only where pingpong-ns is alike.
package bench
