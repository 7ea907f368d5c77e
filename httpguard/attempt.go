package httpguard

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/internal/stage"
)

// send hands the request to the base. sent is what the base got: the caller's own
// request unless something of it had to be another.
func (t *Transport) send(ctx context.Context, req *http.Request, probe bool) (sent *http.Request, resp *http.Response, err error) {
	if probe {
		ctx = stage.WithProbe(ctx)
	}
	if t.derives {
		return t.attempt(ctx, req)
	}
	sent = t.outgoing(ctx, probe, req)
	resp, err = t.base.RoundTrip(sent)
	resp, err = t.usable(req, resp, err)
	return sent, resp, err
}

// attempt is send with a context of its own, which is cancelled when the time limit
// is over before the headers are there, and else when the response body ends. A
// deadline could not be taken back at the headers; a timer can.
func (t *Transport) attempt(ctx context.Context, req *http.Request) (sent *http.Request, resp *http.Response, err error) {
	ctx, release := context.WithCancelCause(ctx)
	held := false
	defer func() {
		if !held {
			release(nil)
		}
	}()
	sent = t.outgoing(ctx, true, req)
	var timer *time.Timer
	if t.limit != nil {
		timer = time.AfterFunc(t.limit.after, func() { release(sluice.ErrTimeout) })
		defer timer.Stop() // for a base that panics
	}
	resp, err = t.base.RoundTrip(sent)
	if timer != nil && !timer.Stop() && endedByLimit(ctx, release) {
		// Even if the base was just in time: its context is dead, and so is a body.
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return sent, nil, t.limit
	}
	if resp, err = t.usable(req, resp, err); err == nil {
		held = hold(req, resp, release)
	}
	return sent, resp, err
}

// endedByLimit reports whether it was the limit that ended ctx, once its timer has
// fired: the caller may have been faster.
func endedByLimit(ctx context.Context, release context.CancelCauseFunc) bool {
	release(sluice.ErrTimeout) // what the timer is about to do, or has done
	return context.Cause(ctx) == sluice.ErrTimeout
}

// outgoing returns what the base is given. own tells that ctx is not the request's.
func (t *Transport) outgoing(ctx context.Context, own bool, req *http.Request) *http.Request {
	watch := t.judges && req.GetBody == nil && req.Body != nil && req.Body != http.NoBody
	if !own && !watch {
		return req
	}
	sent := req.WithContext(ctx)
	if watch {
		sent.Body = &upload{ReadCloser: req.Body, want: req.ContentLength}
	}
	return sent
}

// usable turns what a base should not return into what the caller can rely on: a
// response with a body, or an error.
func (t *Transport) usable(req *http.Request, resp *http.Response, err error) (*http.Response, error) {
	switch {
	case err != nil:
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return nil, err
	case resp == nil:
		return nil, fmt.Errorf("httpguard: %T returned neither a response nor an error", t.base)
	case resp.Body == nil && resp.ContentLength > 0 && req.Method != http.MethodHead:
		return nil, fmt.Errorf("httpguard: %T returned a response of %d bytes without a body", t.base, resp.ContentLength)
	case resp.Body == nil:
		resp.Body = http.NoBody
	}
	return resp, nil
}

// limitError says that an attempt ran out of time. There is one for each Transport.
type limitError struct{ after time.Duration }

func (e *limitError) Error() string {
	return fmt.Sprintf("httpguard: no response headers within %v", e.after)
}

// Unwrap makes it match sluice.ErrTimeout and context.DeadlineExceeded.
func (e *limitError) Unwrap() error { return sluice.ErrTimeout }

// Timeout and Temporary make it a net.Error, which url.Error.Timeout looks for.
func (e *limitError) Timeout() bool   { return true }
func (e *limitError) Temporary() bool { return true }
