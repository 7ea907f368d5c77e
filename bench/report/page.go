package main

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/template"
)

//go:embed results.md.tmpl
var layout string

// page is all that the layout shows.
type page struct {
	place
	Floors   []row
	Families []family
	Idle     []idleRow

	RefClock, RefAtomic float64
	Clock, Scale        spread
	Paces               []barRow
	Rivals              []barRow
	Contended, Space    []barRow
	All, Met            int
	Missed, Unmeasured  []string

	PingPong spread // all readings of all rounds
	Busy     bool   // other work was running, so the figures are worth little
}

// family is one table: an operation, done by us and by peers.
type family struct {
	Title string
	Rows  []row
}

// row is one line of a family's table.
type row struct {
	Name                    string
	Serial, Parallel, Twice spread
	Allocs, Bytes           spread
	Clocks                  string
	OverPeer                spread
	PingPong                spread
}

// idleRow is what 10 000 idle breakers of one library take.
type idleRow struct {
	Name            string
	MiB, Goroutines spread
}

// barRow is one line of a table of bars.
type barRow struct {
	What        string
	Measured    spread
	Clocks, Bar string // as readings of the clock and a rest
	Here, Share spread
	PingPong    spread
	Verdict     string
	Raw         float64
	RawVerdict  string
}

// titles are the benchmarks that get a table, in the order of the page.
var titles = [][2]string{
	{"BreakerClosed", "A call that succeeds, through a closed breaker"},
	{"BreakerOpen", "A call that an open breaker refuses"},
	{"BreakerFailing", "A call that fails and is judged"},
	{"Call", "A call with a value, through an interface"},
	{"WindowRecord", "One record in a window"},
	{"Transport", "A call through a RoundTripper, over one that answers at once"},
	{"Middleware", "A request through a middleware that has to know the status"},
	{"Loopback", "A call to a server on loopback and back (not judged)"},
	{"Bulkhead", "A place in a bulkhead, taken and given back"},
	{"BulkheadFull", "A call that a full bulkhead refuses"},
	{"PoolHandoff", "A task in a goroutine of a pool, and in the caller's own behind a bulkhead"},
	{"LimitAllow", "A token taken from a limiter"},
	{"LimitDeny", "A call that a limiter refuses"},
	{"Layers", "A token of each of three limiters, or of none"},
	{"Keyed1K", "A token of one of 1 000 keys"},
	{"Keyed", "A token of one of 100 000 keys"},
	{"Keyed1M", "A token of one of 1 000 000 keys"},
	{"Timeout", "An adaptive timeout: what it is now, a call timed, a call with a context"},
	{"ConcurrencyLimit", "A call under a limit that follows how long calls take"},
	{"ConcurrencyLimitFull", "A call that such a limit refuses"},
	{"System", "A call into a process that has nothing to complain of"},
	{"SystemRefuse", "A call that a process refuses which has too much"},
	{"CanaryPick", "Which version serves an identity"},
	{"Upstreams", "Which instance serves an identity"},
	{"Judge", "What the judge of a canary is told of a call"},
	{"Retry", "A call that succeeds at once, through a retry"},
	{"RetryOnce", "A call that fails once, and succeeds when it is repeated at once"},
	{"RetryBudget", "A budget for retries"},
	{"Hedge", "A call that may be hedged and is not"},
}

// write puts the results on paper.
func write(w io.Writer, where place, all rounds) error {
	t, err := template.New("results").Parse(layout)
	if err != nil {
		return err
	}
	return t.Execute(w, newPage(where, all))
}

func newPage(where place, all rounds) *page {
	p := &page{
		place:    where,
		Floors:   all.rows("Floor"),
		RefClock: refClock, RefAtomic: refAtomic,
		Clock: all.spread(clock), Scale: all.spread(scale),
	}
	for _, t := range titles {
		if rows := all.rows(t[0]); len(rows) > 0 {
			p.Families = append(p.Families, family{t[1], rows})
		}
	}
	for _, name := range all.under("IdleBreakers") {
		bench := "IdleBreakers/" + name
		p.Idle = append(p.Idle, idleRow{name, all.spread(of(bench, "MiB")), all.spread(of(bench, "goroutines"))})
	}
	for _, bar := range paces {
		p.Paces = append(p.Paces, p.judge("ns", bar.row(all)))
	}
	for _, bar := range rivals {
		p.Rivals = append(p.Rivals, p.judge("beside others", bar.row(all)))
	}
	for _, bar := range contended {
		p.Contended = append(p.Contended, p.judge("two goroutines", bar.row(all)))
	}
	for _, bar := range space {
		p.Space = append(p.Space, p.judge("memory", bar.row(all)))
	}
	for _, name := range all.names() {
		p.PingPong = append(p.PingPong, all.spread(of(name, "pingpong-ns"))...)
	}
	slices.Sort(p.PingPong)
	p.Busy = busy(p.Clock, p.PingPong)
	return p
}

// busy reports signs of other work on the machine: serial figures that differ by
// a quarter from round to round, or a cache line that took longer to come back
// than it takes between the farthest cores.
func busy(clock, pingPong spread) bool {
	uneven := len(clock) > 0 && clock[len(clock)-1] > 1.25*clock[0]
	return uneven || len(pingPong) > 0 && pingPong[len(pingPong)-1] > 2000
}

// judge counts a bar of one of the tables and returns it.
func (p *page) judge(table string, bar barRow) barRow {
	p.All++
	name := table + ", " + bar.What
	switch {
	case len(bar.Share) == 0:
		p.Unmeasured = append(p.Unmeasured, name)
	case bar.Share.median() <= 1:
		p.Met++
	default:
		p.Missed = append(p.Missed, name)
	}
	return bar
}

// under are the names of a benchmark's variants.
func (rs rounds) under(bench string) []string {
	var variants []string
	for _, name := range rs.names() {
		if rest, ok := strings.CutPrefix(name, bench+"/"); ok {
			variant, _, _ := strings.Cut(rest, "/")
			if !slices.Contains(variants, variant) {
				variants = append(variants, variant)
			}
		}
	}
	return variants
}

// rows are a benchmark's variants with all that is to be said of each.
func (rs rounds) rows(bench string) []row {
	var rows []row
	variants := rs.under(bench)
	for _, variant := range variants {
		name := bench + "/" + variant
		serial, parallel := name+"/serial", name+"/parallel"
		r := row{
			Name:     variant,
			Serial:   rs.spread(of(serial, "ns/op")),
			Parallel: rs.spread(of(parallel, "ns/op")),
			Twice:    rs.spread(twice(name).figure),
			Allocs:   rs.spread(of(serial, "allocs/op")),
			Bytes:    rs.spread(of(serial, "B/op")),
			Clocks:   rs.clocks(name, of(serial, "ns/op")),
			PingPong: rs.spread(of(parallel, "pingpong-ns")),
		}
		if peer := rs.bestPeer(bench, variants); peer != "" {
			r.OverPeer = rs.spread(of(serial, "ns/op").over(of(peer+"/serial", "ns/op")))
		}
		rows = append(rows, r)
	}
	return rows
}

// bestPeer is the fastest variant that is not ours, or "".
func (rs rounds) bestPeer(bench string, variants []string) string {
	best, bestTime := "", 0.0
	for _, variant := range variants {
		s := rs.spread(of(bench+"/"+variant+"/serial", "ns/op"))
		if strings.HasPrefix(variant, "sluice") || len(s) == 0 {
			continue
		}
		if best == "" || s.median() < bestTime {
			best, bestTime = bench+"/"+variant, s.median()
		}
	}
	return best
}

// clocks writes a figure of a benchmark as readings of the clock and what is left,
// where it is known how often it is read, and as a multiple of one reading otherwise.
func (rs rounds) clocks(name string, serial figure) string {
	if len(rs.spread(serial.over(clock))) == 0 {
		return "–"
	}
	if k, known := reads[name]; known {
		rest, sign := rs.spread(serial.less(k, clock)).median(), "+"
		if rest < 0 {
			rest, sign = -rest, "−"
		}
		return fmt.Sprintf("%s %s %s", number(k), sign, number(rest))
	}
	return fmt.Sprintf("× %v", rs.spread(serial.over(clock)))
}

// row judges a pace.
func (p pace) row(rs rounds) barRow {
	measured := p.figure()
	share := rs.spread(measured.over(p.here))
	raw := rs.spread(func(r round) (float64, bool) {
		v, ok := measured(r)
		return v / p.ns, ok
	})
	return barRow{
		What:       p.what,
		Measured:   rs.spread(measured),
		Clocks:     rs.clocks(p.bench, measured),
		Bar:        fmt.Sprintf("%s + %s", number(reads[p.bench]), number(p.rest())),
		Here:       rs.spread(p.here),
		Share:      share,
		Verdict:    verdict(share),
		Raw:        p.ns,
		RawVerdict: verdict(raw),
	}
}

// row judges a limit.
func (l limit) row(rs rounds) barRow {
	share := rs.spread(l.share)
	return barRow{
		What:     l.what,
		Measured: rs.spread(l.figure),
		Bar:      number(l.most),
		Share:    share,
		PingPong: rs.spread(of(l.bench+"/parallel", "pingpong-ns")),
		Verdict:  verdict(share),
	}
}
