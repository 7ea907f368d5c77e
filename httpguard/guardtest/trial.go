package guardtest

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

// trial is one run of a check. What it offers is what a test has of testing.TB, and
// waits that end when the trial does.
type trial struct {
	ctx      context.Context // done when the check has taken too long, or is over
	over     context.CancelFunc
	limit    context.Context // done when the check has taken too long
	protocol string

	mu           sync.Mutex
	ended        bool     // nobody will look at the rest any more
	seen         []string // what went wrong
	inapplicable string   // why the check does not apply
	cleanups     []func() // the last is called first
}

func newTrial(ctx context.Context, protocol string) *trial {
	t := &trial{limit: ctx, protocol: protocol}
	t.ctx, t.over = context.WithCancel(ctx)
	return t
}

// errorf notes that the rule is broken. Any goroutine may call it.
func (t *trial) errorf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	if len(t.seen) == 0 && t.limit.Err() != nil {
		// What it ran into first is chance: everything ends with the context.
		t.seen = append(t.seen, "hangs: it took until its context was done")
	}
	t.seen = append(t.seen, fmt.Sprintf(format, args...))
}

// fatalf is errorf and ends the check. Only the check's own goroutine may call it.
func (t *trial) fatalf(format string, args ...any) {
	t.errorf(format, args...)
	runtime.Goexit()
}

// skipf ends the check: there is nothing to examine. Only the check's own goroutine
// may call it.
func (t *trial) skipf(format string, args ...any) {
	t.mu.Lock()
	t.inapplicable = fmt.Sprintf(format, args...)
	t.mu.Unlock()
	runtime.Goexit()
}

// cleanup has f called at the end of the check.
func (t *trial) cleanup(f func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cleanups = append(t.cleanups, f)
}

// finish ends the trial, at the end of the check's goroutine.
func (t *trial) finish() {
	if p := recover(); p != nil {
		t.errorf("it panics: %v\n%s", p, debug.Stack())
	}
	t.over()
	for {
		t.mu.Lock()
		n := len(t.cleanups)
		if n == 0 {
			t.mu.Unlock()
			return
		}
		last := t.cleanups[n-1]
		t.cleanups = t.cleanups[:n-1]
		t.mu.Unlock()
		last()
	}
}

// result says what went wrong, and closes the books.
func (t *trial) result() (seen []string, inapplicable string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	return t.seen, t.inapplicable
}

// reached waits for ch to be closed or to have a value, and notes that it waited in
// vain for what if that does not come. Any goroutine may call it.
func (t *trial) reached(ch <-chan struct{}, what string) bool {
	select {
	case <-ch:
	case <-t.ctx.Done():
	}
	if t.ctx.Err() != nil { // then it may be that which ch tells
		t.errorf("waited in vain for %s", what)
		return false
	}
	return true
}

// await is reached, and ends the check if it was in vain.
func (t *trial) await(ch <-chan struct{}, what string) {
	if !t.reached(ch, what) {
		runtime.Goexit()
	}
}

// eventually waits for cond to become true, which it asks again and again.
func (t *trial) eventually(cond func() bool, what string) {
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		became := cond()
		switch {
		case t.ctx.Err() != nil: // which may be why
			t.fatalf("waited in vain for %s", what)
		case became:
			return
		}
		select {
		case <-again.C:
		case <-t.ctx.Done():
		}
	}
}

// apart runs f in a goroutine of its own, which f may end or panic in. returned is
// whether f returned as usual, and panicked what it panicked with if it did.
func (t *trial) apart(f func()) (returned bool, panicked any) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer func() { panicked = recover() }()
		f()
		returned = true
	}()
	select {
	case <-ended:
		return returned, panicked
	case <-t.ctx.Done():
	}
	select { // with its context done, it should
	case <-ended:
	case <-time.After(grace / 2):
		t.fatalf("waited in vain for the goroutine of the call to end")
	}
	return returned, panicked
}
