package bulkhead

import (
	"time"

	"github.com/sluicego/sluice/metrics"
)

// PoolSnapshot is what a pool looks like at one moment, as plain data.
type PoolSnapshot struct {
	Name string `json:"name"`
	// Workers is how many there are now, MaxWorkers how many there may be.
	Workers    int                `json:"workers"`
	MaxWorkers int                `json:"max_workers"`
	Busy       int                `json:"busy"`
	Queued     int                `json:"queued"`
	MaxQueue   int                `json:"max_queue"`
	Closed     bool               `json:"closed"`
	Totals     PoolTotalsSnapshot `json:"totals"`
	Refused    RefusedSnapshot    `json:"refused"`
}

// PoolTotalsSnapshot counts tasks since NewPool; the numbers never go down.
type PoolTotalsSnapshot struct {
	Done     int64 `json:"done"` // they have returned, with an error or without
	Panicked int64 `json:"panicked"`
	Exited   int64 `json:"exited"` // they ended their goroutine
	// Waited counts tasks that a worker took off the queue, WaitTime how long they had
	// been there together.
	Waited   int64         `json:"waited"`
	WaitTime time.Duration `json:"wait_time"`
	// GaveUp counts tasks whose ctx ended before they began.
	GaveUp int64 `json:"gave_up"`
}

// poolTotals is what a Pool counts, under its mutex.
type poolTotals struct {
	PoolTotalsSnapshot
	ended   [manners]int64
	refused [reasons]int64
}

// Snapshot returns what the pool looks like now. It has no side effect; it takes the
// pool's mutex for a moment.
func (p *Pool) Snapshot() PoolSnapshot {
	if p == nil {
		return PoolSnapshot{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	c, t := p.config.Load(), p.totals
	t.Done, t.Panicked, t.Exited, t.GaveUp = t.ended[returned], t.ended[panicked], t.ended[exited], t.ended[gaveUp]
	return PoolSnapshot{
		Name: p.name, Workers: p.workers, MaxWorkers: c.Workers, Busy: p.workers - len(p.idle),
		Queued: p.queue.Len(), MaxQueue: c.MaxQueue, Closed: p.closed(),
		Totals:  t.PoolTotalsSnapshot,
		Refused: RefusedSnapshot{Full: t.refused[refusedFull], QueueFull: t.refused[refusedQueueFull], Closed: t.refused[refusedClosed]},
	}
}

var (
	descWorkers  = metrics.Desc{Name: "pool_workers", Help: "Goroutines that there are, by whether they have a task.", Unit: "{worker}", Kind: metrics.Gauge, Labels: []string{"resource", "state"}}
	descQueued   = metrics.Desc{Name: "pool_queued", Help: "Tasks that wait for a worker.", Unit: "{task}", Kind: metrics.Gauge, Labels: []string{"resource"}}
	descTasks    = metrics.Desc{Name: "pool_tasks", Help: "Tasks that have ended, by how.", Unit: "{task}", Kind: metrics.Counter, Labels: []string{"resource", "end"}}
	descPoolWait = metrics.Desc{Name: "pool_wait_seconds", Help: "How long tasks that ran had been queued, together.", Unit: "s", Kind: metrics.Counter, Labels: []string{"resource"}}
	descPoolHeld = metrics.Desc{Name: "pool_waits", Help: "Tasks that ran after they had been queued.", Unit: "{task}", Kind: metrics.Counter, Labels: []string{"resource"}}
)

// Collect yields the pool's figures, for metrics.Set. Counters never go down.
func (p *Pool) Collect(yield func(metrics.Sample) bool) {
	if p == nil {
		return
	}
	s := p.Snapshot()
	for _, m := range []struct {
		desc   *metrics.Desc
		labels []string
		value  float64
	}{
		{&descWorkers, []string{"busy"}, float64(s.Busy)},
		{&descWorkers, []string{"idle"}, float64(s.Workers - s.Busy)},
		{&descQueued, nil, float64(s.Queued)},
		{&descTasks, []string{"done"}, float64(s.Totals.Done)},
		{&descTasks, []string{"panicked"}, float64(s.Totals.Panicked)},
		{&descTasks, []string{"exited"}, float64(s.Totals.Exited)},
		{&descTasks, []string{"abandoned"}, float64(s.Totals.GaveUp)},
		{&descPoolHeld, nil, float64(s.Totals.Waited)},
		{&descPoolWait, nil, s.Totals.WaitTime.Seconds()},
		{&descRefused, []string{"pool", ReasonFull}, float64(s.Refused.Full)},
		{&descRefused, []string{"pool", ReasonQueueFull}, float64(s.Refused.QueueFull)},
		{&descRefused, []string{"pool", ReasonClosed}, float64(s.Refused.Closed)},
	} {
		if !yield(metrics.Sample{Desc: m.desc, Labels: append([]string{p.name}, m.labels...), Value: m.value}) {
			return
		}
	}
}

// View returns the Snapshot, for metrics.Set.
func (p *Pool) View() any { return p.Snapshot() }
