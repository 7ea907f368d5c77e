package bulkhead

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
	"github.com/sluicego/sluice/internal/waitq"
)

// ErrGoexit is how a submitted task ends that ended its goroutine by runtime.Goexit,
// as the FailNow of a test does.
var ErrGoexit = errors.New("bulkhead: the task ended its goroutine")

// PanicError is what a panic in a task of a Pool becomes.
type PanicError struct {
	Value any    // what the task panicked with
	Stack []byte // of the task, as runtime/debug.Stack returns it
}

// Error has the value and the stack.
func (e *PanicError) Error() string {
	return fmt.Sprintf("bulkhead: a task panicked: %v\n\n%s", e.Value, e.Stack)
}

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// manner is how a task ended.
type manner uint8

const (
	returned manner = iota
	panicked
	exited
	gaveUp  // its ctx ended before it began
	shutOut // the pool was closed before it began
	manners = 5
)

// A task is a call on its way through a Pool.
type task struct {
	waitq.Entry[*task]
	// ctx and call are read by run alone, and gone when the task has ended.
	ctx  context.Context
	call func(context.Context) error
	// stop ends the watch over ctx while the task is queued; nil if nobody watches.
	// Written by watched, read by whoever took the task off the queue.
	stop func() bool

	// err and manner are written before done is closed, by whoever has t then, and
	// never again.
	err    error
	manner manner
	done   chan struct{}
}

func newTask(ctx context.Context, call func(context.Context) error) *task {
	t := &task{ctx: ctx, call: call, done: make(chan struct{})}
	t.Owner = t
	return t
}

// run makes the call, unless its ctx is done, and finds out how it ended. It returns
// unless the call ended the goroutine.
func (t *task) run() {
	if t.stop != nil {
		t.stop()
	}
	if t.err = t.ctx.Err(); t.err != nil {
		t.manner = gaveUp
		return
	}
	t.manner, t.err = exited, ErrGoexit
	defer func() {
		if t.manner == returned {
			return
		}
		if v := recover(); v != nil {
			t.manner, t.err = panicked, &PanicError{v, debug.Stack()}
		}
	}()
	t.err = t.call(t.ctx)
	t.manner = returned
}

// enter gives t to a worker, to a new one if need be and possible, or puts it into
// the queue. The error is a refusal.
func (p *Pool) enter(t *task) (queued bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed() {
		return false, p.refuse(refusedClosed)
	}
	if n := len(p.idle); n > 0 {
		w := p.idle[n-1]
		p.idle[n-1] = nil
		p.idle = p.idle[:n-1]
		p.quiet = min(p.quiet, n-1)
		w.tasks <- t
		return false, nil
	}
	c := p.config.Load()
	if p.workers < c.Workers {
		p.hire(t)
		return false, nil
	}
	if c.MaxQueue == 0 {
		return false, p.refuse(refusedFull)
	}
	if p.queue.Push(&t.Entry, 0, clock.Now()) != nil {
		return false, p.refuse(refusedQueueFull)
	}
	return true, nil
}

// leave takes t off the queue because ctx, its own, is done, and reports whether it
// was there.
func (p *Pool) leave(ctx context.Context, t *task) bool {
	err := stage.EndOf(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if !t.Queued() {
		return false
	}
	p.queue.Remove(&t.Entry)
	t.manner, t.err = gaveUp, err
	p.end(t)
	return true
}

// watch has t, which was put into the queue, leave it when ctx, its own, is done:
// nobody waits for it who would see to that.
func (p *Pool) watch(ctx context.Context, t *task) {
	if ctx.Done() == nil {
		return
	}
	stop := context.AfterFunc(ctx, func() { p.leave(ctx, t) })
	if !p.watched(t, stop) {
		stop()
	}
}

// watched leaves stop to whoever takes t off the queue, and reports false if somebody
// has already.
func (p *Pool) watched(t *task, stop func() bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.Queued() {
		t.stop = stop
	}
	return t.Queued()
}

// end counts t, which has run or come off the queue, and tells those that wait for
// it. The caller holds p.mu, so nobody knows that a task has ended before its worker
// is free again.
func (p *Pool) end(t *task) {
	p.totals.ended[t.manner]++
	t.finish()
}

// finish tells those that wait for t that it has ended. Its future may be kept for
// long, so only the result stays.
func (t *task) finish() {
	t.ctx, t.call, t.stop = nil, nil, nil
	close(t.done)
}

// refuse counts a refusal and returns it. The caller holds p.mu.
func (p *Pool) refuse(r reason) error {
	p.totals.refused[r]++
	return &p.refusals[r]
}
