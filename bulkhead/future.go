package bulkhead

import (
	"context"

	"github.com/sluicego/sluice/internal/stage"
)

// Future is the result of a submitted task, which comes when the task has ended. It
// is safe for concurrent use: everybody who waits gets the same result.
type Future[T any] struct {
	task  *task
	value T // written by the task, read after it is done
}

// Submit has a worker of p run call, and returns at once with its future. If all
// workers are busy the task is queued; if there is no room in the queue it is
// refused with an error that matches ErrFull. The ctx is the task's: call gets it,
// and if it ends while the task is queued, the task leaves the queue and its future
// has ctx's own error. If ctx is done already, that is returned. So work that is to
// outlive the request that asks for it needs a ctx that does:
// context.WithoutCancel(r.Context()).
//
// A panic in call becomes a *PanicError, and ErrGoexit is what is left of one that
// ends its goroutine; who drops the future sees either in the Snapshot alone. A nil p runs every task on a goroutine of its own.
func Submit[T any](ctx context.Context, p *Pool, call func(context.Context) (T, error)) (*Future[T], error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f := new(Future[T])
	f.task = newTask(ctx, func(ctx context.Context) (err error) {
		f.value, err = call(ctx)
		return err
	})
	if p == nil {
		go f.task.alone()
		return f, nil
	}
	queued, err := p.enter(f.task)
	if err != nil {
		return nil, err
	}
	if queued {
		p.watch(ctx, f.task)
	}
	return f, nil
}

// Done returns a channel that is closed when the task has ended.
func (f *Future[T]) Done() <-chan struct{} { return f.task.done }

// Wait returns the task's result when it has ended, or ctx's own error if ctx ends
// before; the task goes on then, and Wait may be called again.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-f.task.done:
		return f.value, f.task.err
	default:
	}
	select {
	case <-f.task.done:
		return f.value, f.task.err
	case <-ctx.Done():
		var none T
		return none, stage.EndOf(ctx)
	}
}

// alone runs t without a pool.
func (t *task) alone() {
	defer t.finish()
	t.run()
}
