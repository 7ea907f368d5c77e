package main

import (
	"fmt"
	"strings"
)

// The machine that the bars were set on: ns of one reading of the clock and of
// one atomic addition that nobody else wants.
const (
	refClock  = 24
	refAtomic = 5
)

var (
	clock  = of("Floor/clock/serial", "ns/op")
	atomic = of("Floor/atomic/serial", "ns/op")
)

// reads says how often an operation of ours reads the clock, which is most of
// what it costs.
var reads = map[string]float64{
	"BreakerClosed/sluice":                2,
	"BreakerClosed/sluice-do":             2,
	"BreakerClosed/sluice-errors-only":    1,
	"BreakerClosed/sluice-errors-only-do": 1,
	"BreakerOpen/sluice":                  1,
	"BreakerFailing/sluice":               2,
	"BreakerFailing/sluice-errors-only":   1,
	"Call/sluice-call":                    2,
	"Call/sluice-chain3":                  2,
	"WindowRecord/sluice-counts":          1,
	"WindowRecord/sluice-leaparray":       1,
	"WindowRecord/sluice-ring":            0,
	"Transport/sluice":                    2,
	"Transport/sluice-body":               2,
	"Middleware/sluice":                   2,
	"Bulkhead/sluice":                     0,
	"Bulkhead/sluice-do":                  0,
	"BulkheadFull/sluice":                 0,
	"Timeout/value":                       0,
	"Timeout/begin-done":                  2,
	"ConcurrencyLimit/sluice":             2,
	"ConcurrencyLimitFull/sluice":         0,
	"System/sluice-allow":                 0,
	"System/sluice-timed":                 2,
	"CanaryPick/sluice":                   0,
	"CanaryPick/sluice-uuid":              0,
	"CanaryPick/sluice-counted":           0,
	"CanaryPick/sluice-counted-uuid":      0,
	"CanaryPick/sluice-decide":            0,
	"Retry/sluice":                        0,
	"Retry/sluice-budget":                 0,
	"LimitAllow/sluice":                   1,
	"LimitAllow/sluice-uncounted":         1,
	"LimitDeny/sluice":                    1,
	"LimitDeny/sluice-uncounted":          1,
	"Keyed1K/sluice":                      1,
	"Keyed1K/sluice-uncounted":            1,
	"Keyed/sluice":                        1,
	"Keyed/sluice-uncounted":              1,
	"Layers/sluice":                       1,
	"Layers/sluice-uncounted":             1,
	"Layers/sluice-refused":               1,
	"Layers/sluice-refused-uncounted":     1,
}

// A pace is a bar for one goroutine: at most so many ns on the reference machine,
// beyond those of above if that is named.
type pace struct {
	what, bench string
	ns          float64
	above       string
}

// figure is what is measured by the bar.
func (p pace) figure() figure {
	f := of(p.bench+"/serial", "ns/op")
	if p.above != "" {
		f = f.less(1, of(p.above+"/serial", "ns/op"))
	}
	return f
}

var paces = []pace{
	{"closed, three rules: Allow + Done", "BreakerClosed/sluice", 62, ""},
	{"closed, three rules: Do", "BreakerClosed/sluice-do", 65, ""},
	{"closed, error rules only: Allow + Done", "BreakerClosed/sluice-errors-only", 37, ""},
	{"closed, error rules only: Do", "BreakerClosed/sluice-errors-only-do", 39, ""},
	{"open: a call refused and counted", "BreakerOpen/sluice", 32, ""},
	{"a failing call, classified and judged", "BreakerFailing/sluice", 100, ""},
	{"`Call` through a Guard", "Call/sluice-call", 69, ""},
	{"`Call` through a chain of three", "Call/sluice-chain3", 95, ""},
	{"`Transport` at the headers, above bare", "Transport/sluice", 80, "Transport/bare"},
	{"`Transport` at the headers, above bare: never more", "Transport/sluice", 300, "Transport/bare"},
	{"`Transport` at the body, above bare", "Transport/sluice-body", 115, "Transport/bare"},
	{"bulkhead: a place taken and given back", "Bulkhead/sluice", 15, ""},
	{"bulkhead: a call refused", "BulkheadFull/sluice", 8, ""},
	{"adaptive timeout: Value", "Timeout/value", 1, ""},
	{"adaptive timeout: Begin + Done", "Timeout/begin-done", 60, ""},
	{"concurrency limit: a place taken, and given back with its verdict", "ConcurrencyLimit/sluice", 80, ""},
	{"system protection, calm, no rule on time: Allow", "System/sluice-allow", 15, ""},
	{"system protection, calm, with a rule on time: Allow + Done", "System/sluice-timed", 70, ""},
	{"canary: Pick, 16 bytes, uncounted", "CanaryPick/sluice", 8, ""},
	{"canary: Pick, 36 bytes, uncounted", "CanaryPick/sluice-uuid", 12, ""},
	{"canary: Pick, 16 bytes, counted", "CanaryPick/sluice-counted", 10, ""},
	{"canary: Pick, 36 bytes, counted", "CanaryPick/sluice-counted-uuid", 14, ""},
	{"canary: Decide, 16 bytes", "CanaryPick/sluice-decide", 25, ""},
	{"retry around a success, without a budget", "Retry/sluice", 6, ""},
	{"retry around a success, with a budget", "Retry/sluice-budget", 10, ""},
	{"limiter: a token taken and counted", "LimitAllow/sluice", 40, ""},
	{"limiter: a token taken, uncounted", "LimitAllow/sluice-uncounted", 33, ""},
	{"limiter: a call refused and counted", "LimitDeny/sluice", 35, ""},
	{"limiter: a call refused, uncounted", "LimitDeny/sluice-uncounted", 29, ""},
	{"keyed, 1 000 keys: a token taken, uncounted", "Keyed1K/sluice-uncounted", 42, ""},
	{"keyed, 100 000 keys: a token taken, uncounted", "Keyed/sluice-uncounted", 64, ""},
	{"three layers: a token of each, uncounted", "Layers/sluice-uncounted", 52, ""},
	{"three layers: a call refused by the last, uncounted", "Layers/sluice-refused-uncounted", 30, ""},
}

// A limit is a bar on a plain number, which does not depend on the machine.
type limit struct {
	what string
	measured
	most float64
}

// measured is a figure and where it stands.
type measured struct {
	bench string
	figure
}

// twice is the ns of two goroutines over those of one. 0.5 is two that do not
// disturb each other, 1 is two that take turns.
func twice(bench string) measured {
	return measured{bench, of(bench+"/parallel", "ns/op").over(of(bench+"/serial", "ns/op"))}
}

func allocs(bench string) measured { return measured{bench, of(bench+"/serial", "allocs/op")} }

// allocsAbove are those beyond the ones of another benchmark.
func allocsAbove(bench, other string) measured {
	return measured{bench, allocs(bench).less(1, allocs(other).figure)}
}

func idle(bench, unit string) measured { return measured{bench, of(bench, unit)} }

// besides is the ns of one goroutine over those of the quickest of some peers.
func besides(bench string, peers ...string) measured {
	quickest := func(r round) (float64, bool) {
		best, found := 0.0, false
		for _, peer := range peers {
			if v, ok := of(peer+"/serial", "ns/op")(r); ok && (!found || v < best) {
				best, found = v, true
			}
		}
		return best, found
	}
	return measured{bench, of(bench+"/serial", "ns/op").over(quickest)}
}

// rivals are bars on how long we take beside others.
var rivals = []limit{
	{"bulkhead: a place taken and given back, x/sync", besides("Bulkhead/sluice", "Bulkhead/xsync"), 0.6},
	{"limiter: a token taken, uncounted, the best of x/time, failsafe-go and uber", besides("LimitAllow/sluice-uncounted", "LimitAllow/xtime", "LimitAllow/failsafe", "LimitAllow/uber"), 0.85},
	{"keyed, 1 000 000 keys: a token taken, uncounted, a reading of the clock and of one word", besides("Keyed1M/sluice-uncounted", "Keyed1M/floor"), 1.15},
	{"keyed, 1 000 000 keys: a token taken, uncounted, go-limiter", besides("Keyed1M/sluice-uncounted", "Keyed1M/golimiter"), 0.75},
}

var contended = []limit{
	{"closed, three rules: Allow + Done", twice("BreakerClosed/sluice"), 0.65},
	{"closed, three rules: Do", twice("BreakerClosed/sluice-do"), 0.65},
	{"closed, error rules only: Allow + Done", twice("BreakerClosed/sluice-errors-only"), 0.65},
	{"closed, error rules only: Do", twice("BreakerClosed/sluice-errors-only-do"), 0.65},
	{"open: a call refused and counted", twice("BreakerOpen/sluice"), 0.55},
	{"`Transport` at the headers", twice("Transport/sluice"), 0.8},
	{"adaptive timeout: Begin + Done", twice("Timeout/begin-done"), 0.75},
	{"limiter: a token taken and counted", twice("LimitAllow/sluice"), 0.8},
	{"limiter: a call refused and counted", twice("LimitDeny/sluice"), 0.55},
	{"three layers: a token of each, uncounted", twice("Layers/sluice-uncounted"), 1},
	{"three layers: a call refused by the last, uncounted", twice("Layers/sluice-refused-uncounted"), 0.55},
	{"canary: Pick, 16 bytes, uncounted", twice("CanaryPick/sluice"), 0.55},
}

var space = []limit{
	{"allocations, closed, three rules: Allow + Done", allocs("BreakerClosed/sluice"), 0},
	{"allocations, closed, three rules: Do", allocs("BreakerClosed/sluice-do"), 0},
	{"allocations, closed, error rules only: Allow + Done", allocs("BreakerClosed/sluice-errors-only"), 0},
	{"allocations, closed, error rules only: Do", allocs("BreakerClosed/sluice-errors-only-do"), 0},
	{"allocations, open: a call refused", allocs("BreakerOpen/sluice"), 0},
	{"allocations, `Call` through a Guard", allocs("Call/sluice-call"), 0},
	{"allocations, `Call` through a chain of three", allocs("Call/sluice-chain3"), 0},
	{"allocations, `Transport` at the headers, above bare", allocsAbove("Transport/sluice", "Transport/bare"), 0},
	{"allocations, `Transport` at the body, above bare", allocsAbove("Transport/sluice-body", "Transport/bare"), 1},
	{"allocations, `Middleware` with breakers, above bare", allocsAbove("Middleware/sluice", "Middleware/bare"), 1},
	{"allocations, bulkhead: a place taken and given back", allocs("Bulkhead/sluice"), 0},
	{"allocations, bulkhead: a call refused", allocs("BulkheadFull/sluice"), 0},
	{"allocations, adaptive timeout: Begin + Done", allocs("Timeout/begin-done"), 0},
	{"allocations, concurrency limit: a place taken and given back", allocs("ConcurrencyLimit/sluice"), 0},
	{"allocations, concurrency limit: a call refused", allocs("ConcurrencyLimitFull/sluice"), 0},
	{"allocations, system protection: Allow + Done", allocs("System/sluice-timed"), 0},
	{"allocations, system protection: a call refused", allocs("SystemRefuse/sluice"), 0},
	{"allocations, canary: Decide", allocs("CanaryPick/sluice-decide"), 0},
	{"allocations, retry around a success, with a budget", allocs("Retry/sluice-budget"), 0},
	{"allocations, limiter: a token taken and counted", allocs("LimitAllow/sluice"), 0},
	{"allocations, limiter: a call refused and counted", allocs("LimitDeny/sluice"), 0},
	{"allocations, keyed, 1 000 000 keys: a token taken", allocs("Keyed1M/sluice"), 0},
	{"allocations, three layers: a token of each", allocs("Layers/sluice"), 0},
	{"allocations, three layers: a call refused by the last", allocs("Layers/sluice-refused"), 0},
	{"10 000 idle breakers: MiB", idle("IdleBreakers/sluice", "MiB"), 9},
	{"10 000 idle breakers: goroutines", idle("IdleBreakers/sluice", "goroutines"), 0},
	{"an idle `Counts` of 10 buckets: bytes", idle("IdleWindow/sluice-counts", "B/window"), 400},
}

// scale is how much slower than the reference machine this one does what is no
// reading of the clock: by its atomic addition or by its clock, whichever says
// less, so that a slow reading of one of them flatters nobody.
func scale(r round) (float64, bool) {
	c, okc := clock(r)
	a, oka := atomic(r)
	return min(c/refClock, a/refAtomic), okc && oka
}

// rest is what the bar leaves beside the readings of the clock.
func (p pace) rest() float64 { return p.ns - refClock*reads[p.bench] }

// here is the bar on this machine, in one round.
func (p pace) here(r round) (float64, bool) {
	c, okc := clock(r)
	s, oks := scale(r)
	return reads[p.bench]*c + p.rest()*s, okc && oks
}

// verdict says how the shares of a bar in all rounds stand to it: by their median,
// and in how many rounds if not in all.
func verdict(shares spread) string {
	if len(shares) == 0 {
		return "not measured"
	}
	within := 0
	for _, share := range shares {
		if share <= 1 {
			within++
		}
	}
	var word strings.Builder
	if over := shares.median() - 1; over <= 0 {
		word.WriteString("met")
	} else {
		fmt.Fprintf(&word, "**not met**, %s %% over", number(100*over))
	}
	if within > 0 && within < len(shares) {
		fmt.Fprintf(&word, " (within in %d of %d rounds)", within, len(shares))
	}
	return word.String()
}

// share is the measured figure over the limit. A limit of 0 is kept by 0 alone.
func (l limit) share(r round) (float64, bool) {
	v, ok := l.figure(r)
	if l.most == 0 {
		return 1 + v, ok
	}
	return v / l.most, ok
}
