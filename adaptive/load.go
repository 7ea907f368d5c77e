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
	before  []uint64 // the counts of the last read
	last    reading  // what the last read found by itself
}

func newRunQueue() *runQueue {
	q := new(runQueue)
	q.samples[0].Name = "/sched/latencies:seconds"
	q.samples[1].Name = "/sched/goroutines/runnable:goroutines"
	q.samples[2].Name = "/sched/goroutines/running:goroutines"
	return q
}

// read returns what it found since the last read: the delay that one goroutine in a
// hundred exceeded, in seconds, and the number of goroutines that want to run.
//
// A garbage collection or a burst lets some goroutines wait, and is over by itself. So
// the delay is the smaller one of the last two reads: a queue that is there to stay is
// in both (that is CoDel's rule, RFC 8289: the least delay of an interval counts).
func (q *runQueue) read() (delay, load reading) {
	metrics.Read(q.samples[:])
	now := reading{}
	if q.samples[0].Value.Kind() == metrics.KindFloat64Histogram {
		h := q.samples[0].Value.Float64Histogram()
		now = q.grown(h.Counts, h.Buckets)
	}
	if q.samples[1].Value.Kind() == metrics.KindUint64 && q.samples[2].Value.Kind() == metrics.KindUint64 {
		load = known(float64(q.samples[1].Value.Uint64() + q.samples[2].Value.Uint64()))
	}
	return q.lasting(now), load
}

// lasting is the delay that both now and the last read found; unknown if one does not
// know.
func (q *runQueue) lasting(now reading) reading {
	before := q.last
	q.last = now
	if !before.known || !now.known {
		return reading{}
	}
	return known(min(before.value, now.value))
}

// fewest is how many goroutines must have been seen for a delay: of fewer, a single
// unlucky one would be the one in a hundred. The runtime looks at one in eight.
const fewest = 20

// grown is the 99th percentile of what has come to the counts since the last time.
func (q *runQueue) grown(counts []uint64, edges []float64) reading {
	if len(q.before) != len(counts) {
		q.before = append(q.before[:0], counts...)
		return reading{}
	}
	var n, above uint64
	for i, c := range counts {
		n += c - q.before[i]
	}
	delay := reading{}
	for i := len(counts) - 1; i >= 0; i-- {
		above += counts[i] - q.before[i]
		if !delay.known && above*100 > n {
			delay = known(max(edges[i], 0)) // the lower edge: the last bucket has no upper one
		}
	}
	copy(q.before, counts)
	if n < fewest {
		return reading{}
	}
	return delay
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
