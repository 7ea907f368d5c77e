package httpguard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicego/sluice"
)

// ErrDraining is what a request is refused with after Drain.Begin. The refusal
// matches sluice.ErrRejected as well.
var ErrDraining = errors.New("httpguard: draining")

// A Drain takes a server out of service without hurting anybody: after Begin, Gates
// made WithDrain refuse new requests with a 503 that also closes the connection, and
// those that are inside are brought to their end. Exempt requests still pass, so a
// readiness check can tell by Begun.
//
//	drain.Begin()
//	… wait until the load balancer has noticed …
//	drain.Wait(ctx)
//	server.Shutdown(ctx)
//
// It counts the requests of all Gates that it was given to. As for http.Server, a
// connection that a handler has taken over is not one of them.
//
// The zero Drain is ready. It is safe for concurrent use and must not be copied; it
// starts no goroutine, and only Wait blocks.
type Drain struct {
	// state is twice the number of requests inside, plus 1 after Begin. Written by
	// enter, leave and Begin; once it is odd it only goes down, and 1 is the end.
	state atomic.Int64
	mu    sync.Mutex    // guards empty
	empty chan struct{} // closed when state is 1; nil until somebody needs it
}

// Begin refuses requests from now on. It cannot be taken back.
func (d *Drain) Begin() {
	if d.state.Or(1) == 0 {
		d.finish()
	}
}

// Begun reports whether Begin was called.
func (d *Drain) Begun() bool { return d.state.Load()&1 != 0 }

// InFlight returns how many requests are inside.
func (d *Drain) InFlight() int { return int(d.state.Load() >> 1) }

// Wait waits until Begin was called and the last request is out. If ctx is done
// before, it returns an error that says how many were left and matches that of ctx.
func (d *Drain) Wait(ctx context.Context) error {
	select {
	case <-d.end():
		return nil
	case <-ctx.Done():
		if d.state.Load() == 1 {
			return nil
		}
		return fmt.Errorf("httpguard: drain: %d requests in flight: %w", d.InFlight(), ctx.Err())
	}
}

// end returns the channel that is closed at the end.
func (d *Drain) end() chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.empty == nil {
		d.empty = make(chan struct{})
	}
	return d.empty
}

// finish is called once, by whoever brought state to 1.
func (d *Drain) finish() { close(d.end()) }

// enter lets a request in, or reports that it may not come in. A nil Drain lets all
// in.
func (d *Drain) enter() bool {
	if d == nil {
		return true
	}
	for {
		old := d.state.Load()
		if old&1 != 0 {
			return false
		}
		if d.state.CompareAndSwap(old, old+2) {
			return true
		}
	}
}

// leave lets it out.
func (d *Drain) leave() {
	if d != nil && d.state.Add(-2) == 1 {
		d.finish()
	}
}

// drainError is the refusal after Begin. There is one for each Gate.
type drainError struct{ name string }

func (e *drainError) Error() string { return fmt.Sprintf("httpguard %q: draining", e.name) }

// Is makes it match ErrDraining and sluice.ErrRejected.
func (e *drainError) Is(target error) bool {
	return target == ErrDraining || target == sluice.ErrRejected
}

func (e *drainError) Resource() string { return e.name }
func (e *drainError) Policy() string   { return "drain" }
func (e *drainError) Reason() string   { return "draining" }

// RetryAfter is a second: another instance can take the request now.
func (e *drainError) RetryAfter() time.Duration { return time.Second }
