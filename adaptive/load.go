package adaptive

import (
	"bytes"
	"math"
	"os"
	"runtime/metrics"
	"strconv"
	"time"
)

// A reading is what a signal says; the zero reading is that it is not known, which is
// another thing than 0.
type reading struct {
	value float64
	known bool
}

func known(v float64) reading { return reading{v, true} }

// smoothed is an exponential average over time: what is tau old counts 1/e. It knows
// nothing until it has seen three values.
type smoothed struct {
	tau   time.Duration
	value float64
	at    int64
	seen  int
}

func (s *smoothed) add(now int64, v float64) {
	switch {
	case s.seen == 0:
		s.value = v
	case now > s.at:
		s.value += (v - s.value) * (1 - math.Exp(-float64(now-s.at)/float64(s.tau)))
	}
	s.at, s.seen = now, min(s.seen+1, 3)
}

func (s *smoothed) read() reading { return reading{s.value, s.seen >= 3} }

// A runQueue tells how busy the scheduler of Go is, on every operating system: how
// many goroutines run or could, which is what load1 means where there is no other
// process, and how long they wait for a processor before they run. It belongs to one
// goroutine.
type runQueue struct {
	samples [3]metrics.Sample
	before  []uint64 // the counts as they were at since
	since   int64
	last    reading // what the counts said when they were last enough
	delay   reading // what the last two of these say
}

func newRunQueue() *runQueue {
	q := new(runQueue)
	q.samples[0].Name = "/sched/latencies:seconds"
	q.samples[1].Name = "/sched/goroutines/runnable:goroutines"
	q.samples[2].Name = "/sched/goroutines/running:goroutines"
	return q
}

// read returns the delay that one goroutine in a hundred exceeded lately, in seconds,
// and the number of goroutines that want to run.
func (q *runQueue) read(now int64) (delay, load reading) {
	metrics.Read(q.samples[:])
	if q.samples[0].Value.Kind() == metrics.KindFloat64Histogram {
		h := q.samples[0].Value.Float64Histogram()
		q.look(now, h.Counts, h.Buckets)
	}
	if q.samples[1].Value.Kind() == metrics.KindUint64 && q.samples[2].Value.Kind() == metrics.KindUint64 {
		load = known(float64(q.samples[1].Value.Uint64() + q.samples[2].Value.Uint64()))
	}
	return q.delay, load
}

const (
	// fewest is how many goroutines must have been seen for a delay: of fewer, a single
	// unlucky one would be the one in a hundred. The runtime looks at one in eight.
	fewest = 20
	// longest is how long they may take to come. A server whose calls keep a core busy for
	// milliseconds each has few, most of all when it is overloaded.
	longest = int64(time.Second)
)

// look takes the counts at now. While fewer than enough have come, what was found
// before stands, but no longer than longest.
//
// A garbage collection or a burst lets some goroutines wait, and is over by itself. So
// the delay is the smaller one of the last two that were found: a queue that is there to
// stay is in both (that is CoDel's rule, RFC 8289: the least delay of an interval
// counts).
func (q *runQueue) look(now int64, counts []uint64, edges []float64) {
	if len(q.before) == len(counts) {
		switch found, n := q.grown(counts, edges); {
		case n >= fewest && q.last.known:
			q.delay, q.last = known(min(q.last.value, found)), known(found)
		case n >= fewest:
			q.last = known(found)
		case now-q.since < longest:
			return
		default:
			q.delay, q.last = reading{}, reading{}
		}
	}
	q.before, q.since = append(q.before[:0], counts...), now
}

// grown is the 99th percentile of the n that have come to the counts since before.
func (q *runQueue) grown(counts []uint64, edges []float64) (delay float64, n uint64) {
	for i, c := range counts {
		n += c - q.before[i]
	}
	var above uint64
	for i := len(counts) - 1; i >= 0; i-- {
		if above += counts[i] - q.before[i]; above*100 > n {
			return max(edges[i], 0), n // the lower edge: the last bucket has no upper one
		}
	}
	return 0, n
}

// hostLoad is load1 of the host, from /proc/loadavg below root.
func hostLoad(root string) reading {
	text, err := os.ReadFile(root + "/proc/loadavg")
	if err != nil {
		return reading{}
	}
	first, _, _ := bytes.Cut(text, []byte(" "))
	load, err := strconv.ParseFloat(string(bytes.TrimSpace(first)), 64)
	return reading{load, err == nil && load >= 0 && !math.IsInf(load, 0)}
}
