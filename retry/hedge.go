package retry

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/clock"
	"github.com/sluicego/sluice/internal/stage"
)

// Hedge runs call, and runs it once more at the same time if the first attempt takes
// longer than h's delay. It returns what the first one to succeed returned; the other
// is cancelled, and what it returns all the same is given to discard, once. AttemptOf
// is 2 in the ctx of the second, which should go to another replica.
//
// call must be safe to run twice, at the same time: it returns its result, and writes
// to no variable of its caller. An error that is marked as a Success is an answer and
// wins as well. Any other error of one attempt leaves it to the other: a second attempt
// that is refused, throttled or not allowed at all costs nothing but the hope. If both
// fail, the first one's error counts, unless it was a local refusal. An attempt that
// fails before the delay is over ends the call: to repeat what fails is a Policy's job.
//
// When ctx ends, Hedge returns its error at once. An attempt that ignores its ctx then
// runs on by itself, and so does a loser that does.
//
// discard is for a T that has to be given back, such as a response with a body; one that
// comes with an error, even with one that is an answer, counts as none. The
// ctx of the attempt that has won then lives on until the ctx given to Hedge ends:
// give it one that you end when you are done with T. Without discard (nil) T is a
// plain value, and all that was begun has ended or is told to when Hedge returns.
// discard runs on the goroutine of the attempt that has lost.
//
// A panic or runtime.Goexit in an attempt goes on in the goroutine that called Hedge,
// with the value as it was but without the stack of the attempt. One in an attempt that
// has lost is counted and goes no further.
//
// It starts a goroutine for each attempt. With a nil h, in a further attempt of
// somebody further out, in a half-open probe, with a ctx of sluice.Bypass, and while no
// delay is known, call just runs here.
//
// The idea is the hedged request of Dean and Barroso, "The Tail at Scale".
func Hedge[T any](ctx context.Context, h *Hedger, call func(context.Context) (T, error), discard func(T)) (T, error) {
	if h == nil || stage.Bypassed(ctx) {
		return call(ctx)
	}
	if err := ctx.Err(); err != nil {
		var none T
		return none, err
	}
	delay := h.delay(ctx)
	if delay == 0 {
		v, err := call(ctx)
		if !refused(err) {
			h.deposit(ctx)
		}
		return v, err
	}
	r := &race[T]{h: h, call: call, discard: discard, results: make(chan result[T], attempts), kept: -1}
	return r.run(ctx, delay)
}

// attempts is how many there are in a race at most.
const attempts = 2

// errLost is the cause of the ctx of an attempt whose result nobody wants any more.
var errLost = errors.New("retry: another attempt has won")

// race is one hedged call. What the attempts share with the caller does not change
// once it has begun, or is made for that.
type race[T any] struct {
	h       *Hedger
	call    func(context.Context) (T, error)
	discard func(T)
	// results has a place for every attempt, so that none ever waits.
	results chan result[T]
	// decided is set once: by the attempt that wins, which then sends its result, or
	// by the caller when it leaves without one. Whoever succeeds and finds it set
	// discards its own result.
	decided atomic.Bool
	// charged is when the budget was charged for the second attempt. Written before
	// that begins.
	charged int64

	// What follows is the caller's own.
	deposited bool
	cancel    [attempts]context.CancelCauseFunc // nil if not begun
	failed    [attempts]*result[T]              // nil if not ended
	settled   bool                              // it has a result, or has left without
	kept      int                               // the attempt whose ctx lives on, −1 if none
}

// result is how an attempt ended.
type result[T any] struct {
	attempt int // from 0
	value   T
	err     error
	// wins says that there is nothing to wait for any more.
	wins     bool
	manner   manner
	panicked any
}

// manner is how a call came to its end.
type manner uint8

const (
	exited manner = iota // its goroutine is ending
	panicked
	returned
)

// run makes the call, on the goroutine of the caller.
func (r *race[T]) run(ctx context.Context, delay time.Duration) (T, error) {
	defer r.leave()
	timer := time.NewTimer(delay)
	defer timer.Stop()
	r.begin(ctx, 0)
	for {
		select {
		case res := <-r.results:
			if res.wins {
				return r.end(ctx, res)
			}
			failed := res
			r.failed[res.attempt] = &failed
			if last := r.loser(); last != nil {
				return r.end(ctx, *last)
			}
		case <-timer.C:
			if len(r.results) == 0 { // else the first has ended in this moment
				r.second(ctx)
			}
		case <-ctx.Done():
			if !r.decided.CompareAndSwap(false, true) {
				return r.end(ctx, r.winner())
			}
			var none T
			return none, r.abandoned(ctx)
		}
	}
}

// second starts the second attempt if it may be.
func (r *race[T]) second(ctx context.Context) {
	r.deposit(ctx)
	if now := clock.Now(); r.h.mayHedge(now) {
		r.charged = now
		r.begin(ctx, 1)
	}
}

// begin starts an attempt.
func (r *race[T]) begin(ctx context.Context, i int) {
	ctx, r.cancel[i] = context.WithCancelCause(ctx)
	if r.h.budget != nil {
		ctx = withDeposit(ctx, r.h.budget)
	}
	if i > 0 {
		ctx = withAttempt(ctx, i+1)
	}
	go r.attempt(ctx, i)
}

// attempt makes one attempt, on a goroutine of its own.
func (r *race[T]) attempt(ctx context.Context, i int) {
	res := result[T]{attempt: i, wins: true}
	defer func() {
		if res.manner == exited {
			if p := recover(); p != nil {
				res.manner, res.panicked = panicked, p
			}
		}
		r.arrive(res)
	}()
	v, err := r.call(ctx)
	wins := err == nil
	if !wins { // which runs foreign code: the methods of err
		wins = sluice.Classify(context.Background(), err) == sluice.Success
		if i > 0 && refused(err) {
			r.h.budget.giveBack(r.charged)
		}
	}
	res.value, res.err, res.wins, res.manner = v, err, wins, returned
}

// arrive hands a result to the caller, unless another has won before. It runs on the
// goroutine of the attempt.
func (r *race[T]) arrive(res result[T]) {
	if !res.wins || r.decided.CompareAndSwap(false, true) {
		r.results <- res
		return
	}
	r.drop(res)
}

// drop is for a result that nobody wants.
func (r *race[T]) drop(res result[T]) {
	defer func() {
		if recover() != nil {
			r.h.panics.Add(1)
		}
	}()
	switch {
	case res.manner == panicked:
		r.h.panics.Add(1)
	case res.manner == returned && res.err == nil && r.discard != nil:
		r.discard(res.value)
	}
}

// loser returns the failure that ends the race, nil while an attempt is out.
func (r *race[T]) loser() *result[T] {
	first, second := r.failed[0], r.failed[1]
	switch {
	case r.cancel[1] == nil:
		return first
	case first == nil || second == nil:
		return nil
	case refused(first.err):
		return second
	}
	return first
}

// winner waits for the result of the attempt that has won. That is there, or on its
// way.
func (r *race[T]) winner() result[T] {
	for {
		if res := <-r.results; res.wins {
			return res
		}
	}
}

// end lets the call end as an attempt did.
func (r *race[T]) end(ctx context.Context, res result[T]) (T, error) {
	r.settled = true
	if !refused(res.err) {
		r.deposit(ctx)
	}
	if res.wins && res.manner == returned && res.attempt > 0 {
		r.h.won.Add(1)
	}
	switch res.manner {
	case panicked:
		panic(res.panicked)
	case exited:
		runtime.Goexit()
	}
	if r.discard != nil && res.err == nil {
		r.kept = res.attempt
	}
	return res.value, res.err
}

// abandoned is the error of a call whose ctx has ended before it.
func (r *race[T]) abandoned(ctx context.Context) error {
	r.settled = true
	r.deposit(ctx)
	for _, f := range r.failed {
		if f != nil && !refused(f.err) {
			return fmt.Errorf("%w (%w)", ctx.Err(), f.err)
		}
	}
	return ctx.Err()
}

// deposit counts the call, once.
func (r *race[T]) deposit(ctx context.Context) {
	if !r.deposited {
		r.deposited = true
		r.h.deposit(ctx)
	}
}

// leave tells whoever is still out that nobody waits. When it runs because foreign
// code panics on the goroutine of the caller, an attempt may have won unseen.
func (r *race[T]) leave() {
	if !r.settled && !r.decided.CompareAndSwap(false, true) {
		r.drop(r.winner())
	}
	for i, cancel := range r.cancel {
		if cancel != nil && i != r.kept {
			cancel(errLost)
		}
	}
}
