package bulkhead

import (
	"slices"
	"time"

	"github.com/sluicego/sluice/internal/clock"
)

// A worker is a goroutine of a Pool.
type worker struct {
	pool *Pool
	// tasks has room for one: whoever takes the worker from the idle ones gives it a
	// task, or nil to end it.
	tasks chan *task
}

// hire starts a worker with t. The caller holds p.mu.
func (p *Pool) hire(t *task) {
	p.workers++
	w := &worker{p, make(chan *task, 1)}
	go w.work(t)
}

// work runs t, and one task after another until there is no use for the worker.
func (w *worker) work(t *task) {
	retired := false
	defer func() {
		if !retired {
			w.pool.bury(t)
		}
	}()
	for t != nil {
		t.run()
		next, idle := w.pool.turn(w, t)
		t = next // nil if idle, so that nothing is kept of what has been done
		if idle {
			t = <-w.tasks
		}
	}
	retired = true
}

// turn ends t, which w has run, and gives w the next task. If there is none, w is
// idle, or has to end.
func (p *Pool) turn(w *worker, t *task) (next *task, idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(t)
	c := p.config.Load()
	surplus := p.workers > c.Workers
	if p.queue.Len() > 0 && !surplus {
		return p.begin(), false
	}
	if surplus || p.closed() || c.KeepAlive == 0 {
		p.dismiss(1)
		return nil, false
	}
	p.idle = append(p.idle, w)
	p.sweepAfter(c.KeepAlive)
	return nil, true
}

// bury ends t, which has ended its worker too, and has another take that one's place
// if there is work.
func (p *Pool) bury(t *task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(t)
	p.dismiss(1)
}

// begin takes the task that is next off the queue, to run it. The caller holds p.mu.
func (p *Pool) begin() *task {
	now := clock.Now()
	t := p.dequeue(now)
	p.totals.Waited++
	p.totals.WaitTime += time.Duration(max(0, now-t.At()))
	return t
}

// dequeue takes the task that is next off the queue, nil if there is none. The
// caller holds p.mu.
func (p *Pool) dequeue(now int64) *task {
	e := p.queue.Next(now)
	if e == nil {
		return nil
	}
	p.queue.Serve(e)
	return e.Owner
}

// staff starts workers for what is queued, as many as there may be. The caller holds
// p.mu.
func (p *Pool) staff() {
	for p.queue.Len() > 0 && p.workers < p.config.Load().Workers {
		p.hire(p.begin())
	}
}

// dismiss counts n workers that end, at least 1. The caller holds p.mu.
func (p *Pool) dismiss(n int) {
	p.workers -= n
	p.staff()
	if p.closed() && p.workers == 0 {
		close(p.gone)
	}
}

// retire ends the n longest idle workers. The caller holds p.mu.
func (p *Pool) retire(n int) {
	if n == 0 {
		return
	}
	for _, w := range p.idle[:n] {
		w.tasks <- nil
	}
	p.idle = slices.Delete(p.idle, 0, n)
	p.quiet = max(0, p.quiet-n)
	p.dismiss(n)
}

// sweepAfter has idle workers looked for after that time, unless that is already so.
// The caller holds p.mu.
func (p *Pool) sweepAfter(keepAlive time.Duration) {
	if p.sweeper == nil {
		p.quiet = len(p.idle)
		p.sweeper = time.AfterFunc(keepAlive, p.sweep)
	}
}

// sweepAnew has those that are idle now looked for after another time than has been
// set. A sweep that has begun goes by the old one, and sets the new one itself. The
// caller holds p.mu.
func (p *Pool) sweepAnew(keepAlive time.Duration) {
	if p.sweeper == nil || !p.sweeper.Stop() {
		return
	}
	p.sweeper = nil
	if len(p.idle) > 0 {
		p.sweepAfter(keepAlive)
	}
}

// sweep ends the workers that have been idle since it was last set. They are the
// first of the idle ones, because the last are given work first. So no worker needs
// a timer of its own, which would cost more than handing over a task does.
func (p *Pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retire(p.quiet)
	p.sweeper = nil
	if len(p.idle) > 0 {
		p.sweepAfter(p.config.Load().KeepAlive)
	}
}
