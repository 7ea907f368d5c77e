package bulkhead

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice/internal/stage"
	"github.com/sluicego/sluice/internal/waitq"
)

// Pool runs tasks on a bounded number of goroutines of its own, its workers, with a
// bounded queue before them.
//
// It promises that no more tasks run at once than there are workers; that each task
// runs once, or not at all and then its caller gets an error; that a task whose ctx
// ends while it is queued leaves the queue at once; and that a panic in one task
// harms no other.
//
// Most callers want a Bulkhead instead: see the package's documentation for what a
// pool still buys. Submit runs a task in the background, Do runs one and waits for
// it. A task that waits for another task of the same pool may wait for ever.
//
// Workers are started when there is work and end when they have been idle for some
// time, so a Pool that nobody uses has no goroutine. Close ends them all at once and
// waits for what they do. Handing a task over takes a mutex for a few instructions
// and allocates. A Pool is safe for concurrent use and must not be copied. A nil
// *Pool bounds nothing; the zero Pool is of no use, make one with NewPool.
type Pool struct {
	name     string
	refusals *[reasons]FullError
	config   atomic.Pointer[PoolConfig] // written under mu; what it points to never changes

	mu      sync.Mutex // guards what follows; no task runs under it
	queue   waitq.Queue[*task]
	workers int
	// idle are workers without a task, the longest idle first. The first quiet of them
	// have been so since sweeper was set, which is nil while there is none to look for.
	idle    []*worker
	quiet   int
	sweeper *time.Timer
	gone    chan struct{} // made by Close, and closed when the last worker has ended
	totals  poolTotals
}

// NewPool returns a pool of that name, which must not be empty, with up to so many
// workers. It returns every complaint about the options at once.
//
// For package variables there is sluice.Must.
func NewPool(name string, workers int, opts ...PoolOption) (*Pool, error) {
	s := newPoolSettings(workers)
	s.apply(opts)
	if name == "" {
		s.errs = append(s.errs, errors.New("bulkhead: the name is empty"))
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	c := s.PoolConfig
	p := &Pool{name: name, refusals: newRefusals(name, "pool")}
	p.config.Store(&c)
	p.queue.SetPolicy(c.policy())
	return p, nil
}

// Name returns the name given to NewPool.
func (p *Pool) Name() string {
	if p == nil {
		return ""
	}
	return p.name
}

// Do runs call on a worker and returns its error when it has returned. If all workers
// are busy it waits in the queue, as long as ctx lives; then it returns ctx's own
// error without having run call. A refusal matches ErrFull. Once call is running, Do
// waits for it to return, whatever becomes of ctx, which is call's too.
//
// If call panics, Do panics with a *PanicError, which has the stack of call; if call
// ends its goroutine, Do ends its caller's.
func (p *Pool) Do(ctx context.Context, call func(context.Context) error) error {
	if p == nil {
		return call(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	t := newTask(ctx, call)
	if _, err := p.enter(t); err != nil {
		return err
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		if p.leave(ctx, t) {
			return stage.EndOf(ctx)
		}
		<-t.done
	}
	switch t.manner {
	case panicked:
		panic(t.err)
	case exited:
		runtime.Goexit()
	}
	return t.err
}

// Close lets no new task in, lets the workers finish what they do and what is queued,
// and returns when all of them have ended. If ctx is done before, Close refuses what
// is still queued and returns ctx's own error; tasks that are running go on, with the
// ctx that they were given. It may be called again, to wait on.
func (p *Pool) Close(ctx context.Context) error {
	if p == nil {
		return nil
	}
	gone := p.shut()
	select {
	case <-gone:
		return nil
	default:
	}
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		p.empty()
		return stage.EndOf(ctx)
	}
}

// shut closes the pool, and returns what is closed when the last worker has ended.
// Idle workers end at once; while one is idle, nothing is queued.
func (p *Pool) shut() (gone <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed() {
		return p.gone
	}
	p.gone = make(chan struct{})
	if p.workers == 0 {
		close(p.gone)
	}
	p.retire(len(p.idle))
	if p.sweeper != nil {
		p.sweeper.Stop()
		p.sweeper = nil
	}
	return p.gone
}

// closed reports whether Close has been called. The caller holds p.mu.
func (p *Pool) closed() bool { return p.gone != nil }

// empty refuses what is queued.
func (p *Pool) empty() {
	for more := true; more; {
		var stop func() bool
		if stop, more = p.refuseNext(); stop != nil {
			stop()
		}
	}
}

// refuseNext refuses the task that is next, if there is one, and returns what ends the
// watch over its ctx, if that is watched.
func (p *Pool) refuseNext() (stop func() bool, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.dequeue(0)
	if t == nil {
		return nil, false
	}
	stop = t.stop
	t.manner, t.err = shutOut, p.refuse(refusedClosed)
	p.end(t)
	return stop, true
}
