package httpguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluicego/sluice"
	"github.com/sluicego/sluice/breaker"
	"github.com/sluicego/sluice/internal/stage"
)

// send hands the request to the base. sent is what the base got: the caller's own
// request unless something of it had to be another. body is the response's, if
// somebody waits for its end.
func (t *Transport) send(ctx context.Context, req *http.Request, b *breaker.Breaker, ticket stage.Ticket) (sent *http.Request, resp *http.Response, body *heldBody, err error) {
	probe := ticket.Probe()
	if probe {
		ctx = stage.WithProbe(ctx)
	}
	if t.derives {
		return t.attempt(ctx, req, b, ticket)
	}
	sent = t.outgoing(ctx, probe, req)
	if probe {
		defer t.watchProbe(req, sent, b, ticket)()
	}
	resp, err = t.base.RoundTrip(sent)
	resp, err = t.usable(req, resp, err)
	if err == nil && b != nil && t.settings.finishAt == Body && !bodiless(req, resp) {
		body = hold(resp, &heldBody{t: t, req: req, sent: sent})
	}
	return sent, resp, body, err
}

// attempt is send with a context of its own, which a time limit may end, and else
// the end of the response body. The limit for the headers is a timer, because a
// deadline could not be taken back when they are there.
func (t *Transport) attempt(ctx context.Context, req *http.Request, b *breaker.Breaker, ticket stage.Ticket) (sent *http.Request, resp *http.Response, body *heldBody, err error) {
	ctx, release := t.limits.derive(ctx)
	held := false
	defer func() {
		if !held {
			release(nil)
		}
	}()
	sent = t.outgoing(ctx, true, req)
	if ticket.Probe() {
		defer t.watchProbe(req, sent, b, ticket)()
	}
	var timer *time.Timer
	if limit := t.limits.headers; limit != nil {
		timer = time.AfterFunc(limit.after, func() { release(limit) })
		defer timer.Stop() // for a base that panics
	}
	resp, err = t.base.RoundTrip(sent)
	if timer != nil && !timer.Stop() {
		release(t.limits.headers) // what the timer is about to do, or has done
	}
	if limit := t.limits.ended(ctx); limit != nil {
		// Even if the base was just in time: its context is dead, and so is a body.
		if resp != nil && resp.Body != nil {
			resp.Body.Close()
		}
		return sent, nil, nil, limit
	}
	if resp, err = t.usable(req, resp, err); err == nil && !bodiless(req, resp) {
		body = hold(resp, &heldBody{t: t, req: req, sent: sent, ctx: ctx, release: release})
		held = true
	}
	return sent, resp, body, err
}

// outgoing returns what the base is given. own tells that ctx is not the request's.
func (t *Transport) outgoing(ctx context.Context, own bool, req *http.Request) *http.Request {
	watch := (t.judges || t.derives) && req.GetBody == nil && req.Body != nil && req.Body != http.NoBody
	if !own && !watch {
		return req
	}
	sent := req.WithContext(ctx)
	if watch {
		sent.Body = &upload{ReadCloser: req.Body, ctx: ctx, want: req.ContentLength}
	}
	return sent
}

// watchProbe gives the place of a probe back when its time is over and its own body is
// still to come. A base may wait for that body for as long as it likes, and until the
// probe's lease is over nobody else could try. The result ends the watch.
func (t *Transport) watchProbe(req, sent *http.Request, b *breaker.Breaker, ticket stage.Ticket) func() bool {
	u, ok := sent.Body.(*upload)
	if !ok {
		return func() bool { return true }
	}
	ctx := req.Context()
	return context.AfterFunc(u.ctx, func() {
		if t.limits.ended(u.ctx) == nil && ctx.Err() == nil {
			return // the call has ended
		}
		if u.since.Load() != 0 {
			settle(b, ticket, ctx, sent, errBodyToCome)
		}
	})
}

var errBodyToCome = sluice.Ignore(errors.New("httpguard: the request's own body is still to come"))

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
